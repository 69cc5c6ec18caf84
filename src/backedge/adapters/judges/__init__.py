"""Judges that cannot be fooled by what they judge, and the eyes on what producers change.

This package connects programs (adapters/agents), their reports (adapters/reports) and evidence (adapters/evidence).
"""
