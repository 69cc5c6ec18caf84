"""Findings: how a recurring finding is recognised, what became of it, and what a verdict says about it."""
