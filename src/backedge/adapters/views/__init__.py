"""Files that show what the journal says: written anew whenever it says more, never read back as the truth."""

from backedge.adapters.views.run_views import PROGRESS, SCRATCHPAD, RunViews

__all__ = ["PROGRESS", "SCRATCHPAD", "RunViews"]
