"""The files that people bring from other systems, and take back to them, each in its own words."""

from backedge.analytics.files.contents import Contents, LoopRecord
from backedge.analytics.files.forms import FORMS, Form, form_of, read

__all__ = ["FORMS", "Contents", "Form", "LoopRecord", "form_of", "read"]
