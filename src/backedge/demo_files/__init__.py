"""The small repository of the demo: files that are copied, not imported."""
