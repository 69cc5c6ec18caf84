"""Evidence: what tools report of their own accord, read by backedge itself. A claim is not evidence."""

from backedge.adapters.reports.spec import ReportSpec

__all__ = ["ReportSpec"]
