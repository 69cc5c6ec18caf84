"""Caches of tools are not in the room of a judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.adapters.evidence.stillness import FolderNames
from backedge.adapters.judges.tool_caches import configured_caches, shared_caches, tool_caches


def test_caches_are_found_where_tools_work(tmp_path: Path) -> None:
    for name in (
        ".mypy_cache",
        "packages/web/.ruff_cache",
        "shop/.cart",
        "node_modules/x/.mypy_cache",
        "a/b/c/d/.turbo",
    ):
        (tmp_path / name).mkdir(parents=True)
    for name in (".eslintcache", "packages/web/tsconfig.tsbuildinfo", "shop/cart.py"):
        (tmp_path / name).write_text("")
    found = tool_caches(tmp_path, FolderNames())
    assert sorted(found.folders) == [".mypy_cache", "packages/web/.ruff_cache"]
    assert sorted(found.files) == [".eslintcache", "packages/web/tsconfig.tsbuildinfo"]


def test_a_link_is_taken_away_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / ".ruff_cache").symlink_to("shop")
    assert tool_caches(tmp_path, FolderNames()) == ([], [".ruff_cache"])


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert tool_caches(tmp_path / "gone", FolderNames()) == ([], [])


def test_caches_are_found_where_the_configuration_and_the_command_line_say(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ruff]\ncache-dir = "build/ruff"\n[tool.x]\ncache_dir = "shop"\n')
    (tmp_path / "package.json").write_text('{"jest": {"cacheDirectory": "<rootDir>/build/jest"}}')
    for name in ("build/ruff", "build/jest", "build/eslint", "build/mypy", "shop"):
        (tmp_path / name).mkdir(parents=True)
    argv = ["eslint", "--cache-location", "build/eslint", "--cache-dir=build/mypy", "--cache-file", "../outside"]
    found = configured_caches(argv, tmp_path, ["shop/cart.py"])
    assert list(found) == ["build/eslint", "build/jest", "build/mypy", "build/ruff"]


def test_caches_in_the_folder_for_temporary_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("jest_rs", "tsx-0", "other"):
        (tmp_path / name).mkdir()
    assert shared_caches() == [tmp_path / "jest_rs", tmp_path / "tsx-0"]
