"""Agent CLIs as agents, one file each, over the same attempts as commands. `agent_clis.py` lists them."""
