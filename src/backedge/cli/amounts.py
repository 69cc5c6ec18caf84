"""Amounts as people read them."""

from __future__ import annotations


def size_words(count: int) -> str:
    """A number of bytes, in the unit that suits it."""
    amount, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
