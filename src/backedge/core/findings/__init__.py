"""Findings: what makes two reports one finding, what became of it, what a verdict says."""
