"""Loops: how feedback is raised, routed, delivered, voted on and closed."""
