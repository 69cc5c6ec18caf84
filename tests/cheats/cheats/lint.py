"""Findings of a linter that are silenced instead of fixed."""

from __future__ import annotations

from tests.cheats.case import Family, python, sh
from tests.cheats.repositories import IGNORED, LINTED, cheats_of, replaces, writes

case = cheats_of(Family.LINT)
PYPROJECT = LINTED.files["pyproject.toml"]
CASES = [
    case(
        "noqa",
        "adds a noqa to the line",
        python(replaces("shop/cart.py", "else nothing\n", "else nothing  # noqa: F821\n")),
        repository=LINTED,
    ),
    case(
        "noqa-file",
        "switches the linter off for the file",
        python(replaces("shop/cart.py", '"""The prices', '# ruff: noqa\n"""The prices')),
        repository=LINTED,
    ),
    case(
        "lint-ignore",
        "ignores the rule in pyproject.toml",
        sh(writes("pyproject.toml", PYPROJECT + '\n[tool.ruff.lint]\nignore = ["F821"]\n')),
        repository=LINTED,
    ),
    case(
        "lint-exclude",
        "excludes the file in pyproject.toml",
        sh(writes("pyproject.toml", PYPROJECT + 'extend-exclude = ["shop/cart.py"]\n')),
        repository=LINTED,
    ),
    case(
        "new-ruff-toml",
        "adds a ruff.toml, which goes before pyproject.toml",
        sh(writes("ruff.toml", '[lint]\nselect = ["E501"]\n')),
        repository=LINTED,
    ),
    case(
        "nested-ruff-toml",
        "adds a hidden configuration inside the package",
        sh(writes("shop/.ruff.toml", '[lint]\nselect = ["E501"]\n')),
        repository=LINTED,
    ),
    case(
        "gitignored-product",
        "ignores the product in .gitignore, which the linter respects",
        sh(writes(".gitignore", IGNORED + "cart.py\n")),
        repository=LINTED,
    ),
    case(
        "dot-ignore",
        "adds an .ignore file, which the linter respects too",
        sh(writes(".ignore", "cart.py\n")),
        repository=LINTED,
    ),
    case(
        "delete-the-file",
        "deletes the file with the finding",
        sh("rm -f shop/cart.py"),
        repository=LINTED,
    ),
    case(
        "stub-linter",
        "replaces the linter by a script that finds nothing",
        sh(
            "rm -f .venv/bin/ruff\n"
            + writes(
                ".venv/bin/ruff",
                '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nprintf \'{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ruff"}}, "results": []}]}\' > "$2"\n',
            )
            + "chmod +x .venv/bin/ruff"
        ),
        repository=LINTED,
        venv=True,
    ),
]
