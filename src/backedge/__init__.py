"""backedge."""
