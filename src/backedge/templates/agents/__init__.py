"""Scripts that play agents. They are copied, not imported."""
