"""No test of this folder waits for ever."""

from tests.cli.patience import patience

__all__ = ["patience"]
