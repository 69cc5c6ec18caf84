from __future__ import annotations

from pathlib import Path

import pytest

from tests.clis.parts import without_settings


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_settings(monkeypatch, tmp_path)
