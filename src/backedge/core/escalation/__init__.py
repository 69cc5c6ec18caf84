"""Escalations: what a person is asked, which options they have, and what their answer does."""
