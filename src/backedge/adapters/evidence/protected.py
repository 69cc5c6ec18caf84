"""Which files are evidence: tests, configuration of judges, and the judges themselves.

Only the name of a file decides, and what the run's start says about it, so that the answer never depends on what an agent
does to the disk. Upper and lower case are the same here, as they are on some file systems.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence.caches import ENTRY_POINTS, METADATA
from backedge.adapters.evidence.judge_files import judge_files
from backedge.adapters.evidence.names import path_of

Kind = Literal["test", "config", "judge"]

TEST_FOLDERS = frozenset(
    {
        *("test", "tests", "__tests__", "__test__", "spec", "specs", "__specs__", "e2e", "cypress", "testdata"),
        *("__snapshots__", "__mocks__", "__fixtures__", "__golden__"),
    }
)
"""Folders in which every file is part of the tests."""
TEST_FOLDER = re.compile(
    r".+\.(?:unit|integration|functional|acceptance|ui|api|e2e|system)?[_-]?tests?"
    r"|(?:unit|integration|functional|acceptance|system|api|ui|smoke|regression|component|contract|end-to-end|e2e)(?:[_-]tests?|tests)"
)
"""The same for names of two words."""
DATA_FOLDER = re.compile(r"tests?[_-]?(?:cases|files|fixtures|resources|suites?|data|support|outputs?|expectations?)")
DATA_FOLDERS = frozenset(
    {
        *("snapshots", "golden", "goldens", "fixtures", "expected", "cassettes", "test_data", "test-data", "baselines"),
        *("snapshot", "fixture", "cassette", "expectations", "expected_output", "expected-output"),
        *("expected_outputs", "expected-outputs", "expected_results", "expected-results", "reference_output"),
    }
)
"""Folders in which every file but source code is part of the tests: a product may have a package of that name."""
CODE = re.compile(r".*\.(?:py|pyi|go|rs|rb|java|kt|c|cc|cpp|h|hpp|cs|php|swift|scala|[cm]?[jt]sx?|vue|svelte)")
TEST_NAMES = re.compile(
    r"(?:test_.*|.*_test|tests?|.*_tests)\.(?:py|pyi|go|rs|exs?|lua|dart|c|cc|cpp|sh|rb|js|mjs|cjs|ts|jl|nim|zig)"
    r"|.*[._-](?:test|spec|e2e|cy)\.(?:[cm]?[jt]sx?|vue|svelte|dart)"
    r"|.*_spec\.rb|test-.*\.[cm]?[jt]sx?|.*[_-]unittest\.(?:c|cc|cpp|py)|.*\.t"
    r"|(?:setup[._-]?(?:tests?|jest|vitest|mocha)|(?:tests?|jest|vitest|mocha)[._-]?(?:setup|helpers?|utils?|support))\.[cm]?[jt]sx?"
    r"|.*\.(?:snap|bats|feature|approved\.\w+|expected(?:\.\w+)?|golden(?:\.\w+)?)"
)
"""Names of test files outside such folders, in lower case."""
TEST_CLASSES = re.compile(
    r"(?:Test[A-Z].*|.*(?:Tests?|TestCase|Spec|IT))\.(?:java|kt|kts|scala|groovy|cs|fs|vb|php|swift)"
)
"""Names of files with one class, in their own case: LatestTest.java is a test, Latest.java is not."""
CONFIG_NAMES = re.compile(
    r"conftest\.py[cdo]?|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.(?:cfg|py)|pyproject\.toml|noxfile\.py|\.coveragerc"
    r"|\.?(?:ruff|mypy|flake8|pylintrc|bandit|vulture|semgrep|sqlfluff)(?:\.(?:toml|ini|ya?ml|cfg|rc))?|pyrightconfig\.json"
    r"|\.(?:(?:rg|fd|hg|eslint|prettier|stylelint|semgrep|markdownlint|flake8|trivy|snyk|gitleaks|cspell|biome)?ignore|npmrc|yarnrc(?:\.ya?ml)?|pnpmfile\.cjs|swcrc|rspec)"
    r"|\.pre-commit-config\.ya?ml|(?:site|user)customize\.py[cdo]?"
    r"|\.(?:eslintrc|babelrc|mocharc|nycrc|c8rc|taprc|stylelintrc|prettierrc|jshintrc|lintstagedrc)(?:\.\w+)?"
    r"|(?:eslint|jest|vitest|vite|playwright|cypress|babel|ava|stylelint|prettier|wdio|karma|webdriver)[.-](?:config|conf|setup|workspace|preset)\b.*"
    r"|biome\.jsonc?|tsconfig.*\.json|jsconfig\.json|package\.json|pnpm-workspace\.yaml|lerna\.json|nx\.json|turbo\.json"
    r"|deno\.jsonc?|bunfig\.toml|\.pnp\..*|tslint\.json|eslint-suppressions\.json|(?:psalm|detekt|phpstan)-baseline\.\w+"
    r"|(?:gulp|grunt)file\.\w+|(?:nyc|webpack|rollup|metro|xo|tap|c8|knip)\.config\.\w+|dodo\.py|sconstruct|earthfile|magefile\.go"
    r"|\.?pyre_configuration|pytype\.(?:cfg|toml)|\.pylintrc\.toml|\.secrets\.baseline|\.testmondata"
    r"|(?:gnu)?makefile|.*\.mk|\.?justfile|taskfile\.ya?ml|rakefile|cargo\.toml|\.?clippy\.toml|\.?rustfmt\.toml"
    r"|rust-toolchain(?:\.toml)?|\.golangci\.(?:ya?ml|toml|json)|go\.work|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?"
    r"|\.?(?:shellcheckrc|rubocop(?:_todo)?\.ya?ml|yamllint(?:\.ya?ml)?|hadolint\.ya?ml|luacheckrc|ansible-lint(?:\.ya?ml)?|editorconfig)"
    r"|\.?(?:swiftlint|detekt|markdownlint(?:-cli2)?|textlintrc|htmlhintrc|oxlintrc|codespellrc|pydocstyle|pycodestyle|isort)(?:\.\w+)?"
    r"|\.?(?:_?typos|ty|pyrefly|selene|stylua|taplo|nextest|deny|tarpaulin|mutants|dprint|tflint|importlinter|vale)\.(?:toml|ini|jsonc?|hcl)"
    r"|\.?importlinter|\.clang-(?:tidy|format)|staticcheck\.conf|\.credo\.exs|checkstyle\.xml|psalm\.xml|\.php-cs-fixer(?:\.dist)?\.php"
    r"|\.(?:proverc|busted|luacov|bazelrc|runsettings|perlcriticrc)|.*\.(?:runsettings|[cf]sproj|vbproj)|build\.(?:xml|sbt|zig)"
    r"|directory\.(?:build|packages)\.(?:props|targets)|(?:build|workspace|module)(?:\.bazel)|mix\.exs|rebar\.config|deps\.edn"
    r"|project\.clj|package\.swift|gradle\.properties|cmake(?:user)?presets\.json|makefile\.am|configure\.ac|dune-project"
    r"|(?:docker-)?compose(?:\.[\w-]+)?\.ya?ml"
    r"|cucumber\.(?:ya?ml|js|json)|behat\.ya?ml|\.simplecov|ctestconfig\.cmake|cmakelists\.txt|meson\.build"
    r"|phpunit\.xml(?:\.dist)?|phpstan\.neon(?:\.dist)?|sonar-project\.properties"
    r"|\.git(?:ignore|attributes|modules)|backedge\.ya?ml|\.mcp\.json|opencode\.jsonc?"
    r"|claude(?:\.local)?\.md|agents?\.md|gemini\.md|qwen\.md|copilot-instructions\.md|\.(?:cursor|windsurf|cline)rules|\.goosehints"
    r"|\.(?:python|node|ruby|go)-version|\.nvmrc|\.tool-versions|\.?mise\.toml|\.envrc|\.env(?:\.(?:test|testing|ci|local|test\.local))?|\.flaskenv"
)
"""Names of files that configure test runners, linters, build tools, git, agents or backedge."""
CONFIG_FOLDERS = re.compile(
    r"(?:.*/)?(?:\.(?:claude|codex|gemini|opencode|cursor|cargo|husky)|\.yarn/(?:releases|plugins|sdks|patches))/.*"
    r"|(?:.*/)?\.config/(?:nextest|jest|vitest|pytest|eslint)[^/]*"
)
"""Files that are configuration because of their folder."""
RUNNERS = frozenset(
    {
        *("pytest", "_pytest", "pluggy", "iniconfig", "unittest", "doctest", "nose", "nose2", "coverage", "xdist"),
        *("hypothesis", "mock", "tox", "nox", "ruff", "mypy", "flake8", "pylint", "pyflakes", "pycodestyle", "bandit"),
        *("xmlrunner", "behave", "robot", "sitecustomize", "usercustomize"),
    }
)
"""Python modules that a test run or a linter is made of."""
TEXT_TOOLS = frozenset(
    {
        *("sh", "bash", "dash", "zsh", "env", "diff", "cmp", "grep", "egrep", "fgrep", "sed", "awk", "gawk", "cat"),
        *("echo", "printf", "sort", "uniq", "tr", "cut", "head", "tail", "wc", "xargs", "true", "false", "expr", "tee"),
        *("timeout", "seq", "basename", "dirname", "perl", "find", "comm", "cksum", "md5sum", "sha256sum", "mktemp"),
        *("bc", "dc", "jq", "yq", "rg", "xxd", "od", "hexdump", "sha1sum", "sha512sum", "b2sum", "xmllint", "sqlite3"),
        *("paste", "tac", "nl", "stat", "strings", "iconv", "openssl", "bats", "shellcheck"),
    }
)
"""Programs of the system with which scripts compare."""
PROGRAMS = frozenset(
    {
        *("sleep", "ruby", "python", "python3", "node", "npm", "npx"),
        *("yarn", "pnpm", "deno", "bun", "make", "gmake", "cmake", "ctest", "git", "go", "cargo", "rustc", "gcc", "cc"),
        *("java", "javac", "mvn", "gradle", "tsc", "tsx", "eslint", "jest", "vitest", "mocha", "prove"),
        *("curl", "uv", "uvx", "poetry", "hatch"),
        *TEXT_TOOLS,
    }
)
"""Programs that scripts of judges start by name alone."""
_COLLECTED = re.compile(r"(?:test_.*|.*_test)\.py")
"""Files that pytest loads wherever they are, in one process with all other tests."""
_TEST_MODULE = re.compile(r"test_.*|.*[._-](?:tests?|spec|e2e|cy)\.\w+", re.IGNORECASE)
_SHARED = re.compile(r"(?:conftest|__init__|index)\.\w+")
"""Modules that a folder of tests has beside its tests."""
_FIRST = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "unittest", "doctest", "xdist", "ruff", "mypy", "flake8"}
)
"""Those of them that no product offers under the same name."""
SHADOWING = RUNNERS | (sys.stdlib_module_names - {"test"})
"""Modules that a new file of the same name would replace."""
_MODULE = re.compile(r"(?P<at>(?:.*/)?)(?P<name>(?!__init__)\w+)(?:\.(?:py[cdo]?|so|[\w-]+\.so)|/__init__\.py[cdo]?)")


class Protects(msgspec.Struct, frozen=True, rename={"leave_out": "except"}):
    """What the workflow file says about protected files."""

    add: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    default: bool = True
    """False: nothing is protected."""


class Protected:
    """The protected files of one run."""

    def __init__(
        self,
        protects: Protects | None = None,
        argvs: Iterable[Sequence[str]] = (),
        folder: str | os.PathLike[str] = "",
        base: Collection[str] = (),
        links: Mapping[str, str] | None = None,
        named: Iterable[str] = (),
    ) -> None:
        """`argvs` are the command lines of judges, `base` the names of files that the run began with, `links` the links
        among them with the names that they lead to, in the workspace, and `named` the files that the workflow file names,
        such as prompts."""
        said = protects or Protects()
        self._on = said.default
        self._add, self._leave_out = Globs(said.add), Globs(said.leave_out)
        self._judges = judge_files(argvs, os.path.realpath(folder) if folder else "")
        self._scripts = {path.rpartition("/")[0] for path in self._judges}
        self._base = frozenset(base)
        self._named = frozenset(named)
        self._reported: set[str] = set()
        self._folders = _test_folders(self._base)
        self._loose = _loose_folders(self._base)
        self._answers: dict[str, Kind | None] = {}
        self._links: dict[str, list[str]] = {}
        for link, target in sorted((links or {}).items()):
            self._links.setdefault(target, []).append(link)

    @property
    def judges(self) -> frozenset[str]:
        """The files that command lines name. They count even if an ignore rule matches them."""
        return self._judges

    def add_tests(self, names: Iterable[str]) -> None:
        """Files of tests that only a report shows."""
        self._reported.update(names)
        for name in names:
            self._answers.pop(name, None)

    def kind(self, name: str) -> Kind | None:
        """What a file is evidence for; None if it is product."""
        if name not in self._answers:
            off = not self._on or self._leave_out.match(path_of(name))
            self._answers[name] = None if off else self._kind(name) or self._behind_links(name)
        return self._answers[name]

    def counts(self, name: str) -> bool:
        """Whether a file counts although an ignore rule matches it. A test runner reads conftest.py and test_cart.py whatever
        git thinks of them, but another ignored file among the tests is what they leave behind."""
        if not self._on or self._leave_out.match(path_of(name)):
            return False
        return name in self._judges or is_collected(name) or self._is_read_anyway(name)

    def _kind(self, name: str) -> Kind | None:
        if name in self._judges:
            return "judge"
        plain = name.casefold()
        *folders, last = plain.split("/")
        if self._is_read_anyway(name) or CONFIG_FOLDERS.fullmatch(plain):
            return "config"
        # A file with the name of a test folder is a link in its place, or a script that runs the tests.
        if (
            not TEST_FOLDERS.isdisjoint((*folders, last))
            or any(map(TEST_FOLDER.fullmatch, folders))
            or TEST_NAMES.fullmatch(last)
            or name in self._reported
            or self._add.match(path_of(name))
        ):
            return "test"
        if self._folders and any(name.startswith(folder) for folder in self._folders):
            return "test"
        in_data = not DATA_FOLDERS.isdisjoint(folders) or any(map(DATA_FOLDER.fullmatch, folders))
        is_data = in_data and not CODE.fullmatch(last)
        return "test" if is_data or TEST_CLASSES.fullmatch(name.rpartition("/")[2]) else None

    def _is_read_anyway(self, name: str) -> bool:
        """Whether tools read a file because of its name alone."""
        folder, _, last = name.casefold().rpartition("/")
        announces_plugins = last == ENTRY_POINTS and folder.endswith(METADATA)
        named = name in self._named or CONFIG_NAMES.fullmatch(last) is not None
        return (
            named
            or announces_plugins
            or self._shadows(name)
            or self._replaces_program(name, last)
            or self._hides_module(name)
        )

    def _replaces_program(self, name: str, last: str) -> bool:
        """Whether a new file has the name of a program that judges start: it takes its place if its folder is on the PATH."""
        return (last in PROGRAMS or last in RUNNERS) and name not in self._base

    def _hides_module(self, name: str) -> bool:
        """Whether a new stub is read by type checkers instead of a module that was there."""
        module = name.removesuffix("/__init__.pyi") + ".py" if name.endswith("/__init__.pyi") else name[:-1]
        return name.endswith(".pyi") and module in self._base and name not in self._base

    def _shadows(self, name: str) -> bool:
        """Whether a new file takes the place of a module that judges import. A product that has such a module may change it."""
        found = _MODULE.fullmatch(name)
        if found is None or name in self._base or found["name"] not in SHADOWING:
            return False
        at = found["at"].rstrip("/")
        if found["name"] in _FIRST and at in self._loose:
            return True
        folders = at.casefold().split("/")
        return at in ("", "src", "lib", "python") or at in self._scripts or not TEST_FOLDERS.isdisjoint(folders)

    def _behind_links(self, name: str) -> Kind | None:
        """A file is what the link that leads to it is, or to a folder above it: `tests -> checks` makes checks/ tests."""
        parts = name.split("/")
        for end in range(len(parts), 0, -1):
            for link in self._links.get("/".join(parts[:end]), ()):
                if kind := self._kind("/".join([link, *parts[end:]])):
                    return kind
        return None


def is_collected(name: str) -> bool:
    """Whether pytest loads a file because of its name: a test, or a conftest."""
    last = name.rpartition("/")[2].casefold()
    return last == "conftest.py" or _COLLECTED.fullmatch(last) is not None


def _loose_folders(names: Collection[str]) -> frozenset[str]:
    """The folders of Python that are no packages: it may be told to look for modules there."""
    folders = {name.rpartition("/")[0] for name in names if name.endswith(".py")}
    return frozenset(folder for folder in folders if f"{folder}/__init__.py" not in names)


def _test_folders(names: Iterable[str]) -> tuple[str, ...]:
    """The folders, other than the top, in which all source code is tests: what comes to lie beside them may take the place of
    what they import."""
    tests: dict[str, bool] = {}
    for name in names:
        folder, _, last = name.rpartition("/")
        if folder and CODE.fullmatch(last) and not _SHARED.fullmatch(last):
            tests[folder] = tests.get(folder, True) and _TEST_MODULE.fullmatch(last) is not None
    return tuple(f"{folder}/" for folder, only_tests in sorted(tests.items()) if only_tests)
