"""Agent CLIs as agents: claude, codex, gemini and opencode, one file each, over the same attempts as commands."""
