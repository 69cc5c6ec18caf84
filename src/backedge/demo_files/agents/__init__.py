"""The scripted agents of the demo: each reads its briefing from stdin and prints its outcome."""
