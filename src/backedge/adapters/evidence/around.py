"""Settings around a workspace that tools obey: in the folders above it, and in the home folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from backedge.adapters.agents.regular_file import opened
from backedge.adapters.agents.workspace import STATE_FOLDER
from backedge.adapters.evidence.caches import PACKAGES
from backedge.adapters.evidence.git_settings import obeyed
from backedge.adapters.evidence.protected import RUNNERS

ABOVE = (
    *("conftest.py", "pytest.toml", ".pytest.toml", ".gitignore", ".rgignore", ".eslintignore", ".coveragerc"),
    *("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "ruff.toml", ".ruff.toml"),
    *("mypy.ini", ".mypy.ini", ".flake8", ".pylintrc", "pyrightconfig.json", ".ignore", ".env", ".npmrc", ".yarnrc"),
    *("package.json", "tsconfig.json", ".eslintrc", ".eslintrc.json", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.yml"),
    *("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "babel.config.js", "babel.config.json"),
    *("biome.jsonc", ".oxlintrc.json", ".shellcheckrc", ".editorconfig", ".rubocop.yml", ".yamllint", ".clang-tidy"),
    *(
        "pyrefly.toml",
        "ty.toml",
        ".isort.cfg",
        ".babelrc",
        ".swcrc",
        "vitest.config.ts",
        "vitest.config.js",
        "Cargo.toml",
    ),
    *("jest.config.js", "jest.config.ts", "jest.config.json", "go.work", "rust-toolchain", ".cargo/config"),
    *(
        ".yarnrc.yml",
        "biome.json",
        ".mocharc.json",
        ".mocharc.yml",
        ".mocharc.cjs",
        ".cargo/config.toml",
        "rust-toolchain.toml",
    ),
)
"""Files that tools look for in a folder and in all folders above it."""
AT_HOME = (
    *(".npmrc", ".mypy.ini", ".flake8", ".pylintrc", ".pytest.ini", ".cargo/config.toml", ".cargo/config", ".zshenv"),
    *(".yarnrc", ".yarnrc.yml", ".rspec", ".bundle/config", ".mavenrc", ".m2/settings.xml", ".gradle/init.gradle"),
    *(".eslintrc", ".eslintrc.json", ".eslintrc.js", ".bunfig.toml", ".shellcheckrc", ".rubocop.yml", ".mocharc.json"),
    *(".golangci.yml", ".golangci.yaml", ".golangci.toml", ".sqlfluff", ".isort.cfg", ".proverc", ".bazelrc"),
)
IN_CONFIG = (
    *("ruff/ruff.toml", "ruff/.ruff.toml", "ruff/pyproject.toml", "mypy/config", "flake8", "pylintrc", "git/ignore"),
    *("go/env", "pnpm/rc", "rspec/options", "pycodestyle"),
    *(
        "black",
        "sqlfluff",
        "yapf/style",
        "fish/config.fish",
        "shellcheckrc",
        "yamllint/config",
        "rubocop/config.yml",
        "ty/ty.toml",
    ),
)
"""Files in the folder for configuration, usually ~/.config."""
OF_SHELLS = (".bash_profile", ".bash_login", ".profile", ".bashrc", ".zprofile", ".zshrc", ".zlogin")
"""What shells read in the home folder if a judge starts them as `bash -lc`."""
_USERS_PACKAGES = re.compile(r"-[bBdiuvxO]*E[bBdiuvxO]*")
"""Options of Python that let it forget that it must not use the packages of the user."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
LARGEST = 1024 * 1024


def settings_around(folder: str, env: Mapping[str, str]) -> dict[str, str]:
    """A digest for each file that is there and says something, by names such as `../pytest.ini` and `~/.npmrc`."""
    found = {name: _text(path) for name, path in _places(folder, env)}
    return _digests(found) | git_settings_of_user(env)


def git_settings_of_user(env: Mapping[str, str]) -> dict[str, str]:
    """A digest for each file of the user that says something to git in every repository."""
    home, config = _homes(env)
    return _digests(
        {
            "~/.gitconfig": obeyed(_text(f"{home}/.gitconfig")),
            "~/.config/git/config": obeyed(_text(f"{config}/git/config")),
            "~/.config/git/attributes": _text(f"{config}/git/attributes"),
        }
    )


def _digests(found: Mapping[str, bytes]) -> dict[str, str]:
    return {name: sha256(text).hexdigest() for name, text in found.items() if text}


def _places(folder: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    way, here = "..", Path(folder)
    for above in here.parents:
        # The work of a story lies in the folder of the main checkout, whose files others change meanwhile. Tools look there
        # only for what the story itself does not have.
        is_main = here.is_relative_to(above / STATE_FOLDER)
        names = (name for name in ABOVE if not is_main or not os.path.lexists(here / name))
        yield from ((f"{way}/{name}", f"{above}/{name}") for name in names)
        way = f"../{way}"
    home, config = _homes(env)
    yield from ((f"~/{name}", f"{home}/{name}") for name in AT_HOME)
    yield from ((f"~/.config/{name}", f"{config}/{name}") for name in IN_CONFIG)


def places_around(folder: str, argvs: Iterable[Sequence[str]], env: Mapping[str, str]) -> list[str]:
    """The paths of what judges find around a workspace without being told: packages of JavaScript in the folders above it,
    whose programs npm puts before all others, and what a login shell reads first."""
    here, found = Path(folder), list[str]()
    if (here / "package.json").exists():
        above = (each for each in here.parents if not here.is_relative_to(each / STATE_FOLDER))
        found += [os.fspath(each / PACKAGES) for each in above]
    home, given = _homes(env)[0], [tuple(argv) for argv in argvs]
    if any(_starts_login_shell(argv) for argv in given):
        found += [os.fspath(home / name) for name in OF_SHELLS]
    if any(_USERS_PACKAGES.fullmatch(word) for argv in given for word in argv):
        found += [os.fspath(path) for path in sorted(home.glob(".local/lib/python3*/site-packages"))]
    searched = (Path(os.path.normpath(here / each)) for each in env.get("PYTHONPATH", "").split(os.pathsep) if each)
    modules = (path / name for path in searched if not path.is_relative_to(here) for name in sorted(RUNNERS))
    return [*found, *(f"{path}{ending}" for path in modules for ending in (".py", ""))]


def _starts_login_shell(argv: Sequence[str]) -> bool:
    for program, *options in (argv[at:] for at in range(len(argv))):
        if os.path.basename(program) in _SHELLS:
            given = list(takewhile(lambda word: word.startswith("-"), options))
            if "--login" in given or any(word[1:2] != "-" and {"l", "i"} & set(word[1:]) for word in given):
                return True
    return False


def _homes(env: Mapping[str, str]) -> tuple[Path, Path]:
    """The home folder, and the one for configuration."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    return home, Path(env.get("XDG_CONFIG_HOME") or home / ".config")


def _text(path: str) -> bytes:
    if not os.path.exists(path):  # most are not there, which is found out faster this way
        return b""
    try:
        with opened(path) as file:
            return file.read(LARGEST)
    except OSError:
        return b""
