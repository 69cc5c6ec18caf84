"""Files that show the state of a run: written again whenever it changes, and never read back."""

from backedge.adapters.views.run_views import PROGRESS, SCRATCHPAD, RunViews

__all__ = ["PROGRESS", "SCRATCHPAD", "RunViews"]
