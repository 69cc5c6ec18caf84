"""Escalations: what a person is asked, with which options, and what an answer does."""
