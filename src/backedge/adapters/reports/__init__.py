"""Evidence: reports that tools write and backedge reads itself. What an agent claims is not evidence."""

from backedge.adapters.reports.spec import ReportSpec

__all__ = ["ReportSpec"]
