"""Agent CLIs as agents, one file each, over the same attempts as commands. `catalog.py` lists them."""
