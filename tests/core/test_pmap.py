from __future__ import annotations

from .play import Play


def test_x() -> None:
    assert Play
