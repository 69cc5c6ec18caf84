"""What can start now, what is stale or skipped, and what the shell has to do."""
