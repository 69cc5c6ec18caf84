"""The names of the agent CLIs that backedge can start, in the order in which `init` prefers them.

This is the only list of them. The adapter of each is the module of that name in `adapters/agents/clis/`; the workflow
file, `init`, `backedge agents` and the docs take the names from here.
"""

AGENT_CLIS = ("claude", "codex", "gemini", "opencode")
