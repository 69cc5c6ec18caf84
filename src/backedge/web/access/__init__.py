"""Tokens, roles and cookies, and the checks of Host and Origin."""
