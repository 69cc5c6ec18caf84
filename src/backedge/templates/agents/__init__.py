"""Scripts that stand in for agents: files that are copied, not imported."""
