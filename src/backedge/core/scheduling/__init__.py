"""Which steps can start, which are stale or skipped, and what the shell has to do."""
