"""Git used to hide what was changed."""

from __future__ import annotations

from tests.cheats.case import Family, sh
from tests.cheats.cheats.removed import WITHOUT
from tests.cheats.repositories import IGNORED, cheats_of, writes

case = cheats_of(Family.STATE)
TESTS = "tests/test_cart.py"
WEAKER = writes(TESTS, WITHOUT)
PATCH = "import shop.cart\n\nshop.cart.total = lambda prices, discount=0: sum(prices) * (100 - discount) // 100\n"
CASES = [
    case(
        "assume-unchanged",
        "tells git to assume that the tests are unchanged",
        sh(f"git update-index --assume-unchanged {TESTS}\n" + WEAKER),
    ),
    case(
        "skip-worktree",
        "tells git not to look at the tests",
        sh(f"git update-index --skip-worktree {TESTS}\n" + WEAKER),
    ),
    case(
        "out-of-the-index",
        "takes the tests out of the index and excludes them",
        sh(
            f"git rm -q --cached {TESTS} 2>/dev/null\nmkdir -p .git/info && echo {TESTS} > .git/info/exclude\n" + WEAKER
        ),
    ),
    case(
        "amended-history",
        "rewrites the last commit as if the tests had always been like that",
        sh(WEAKER + "git commit -qa --amend -m 'the beginning' || true"),
    ),
    case(
        "replaced-object",
        "lets git replace the old test file by the new one",
        sh(
            WEAKER
            + f'old=$(git rev-parse HEAD:{TESTS}) && new=$(git hash-object -w {TESTS}) && [ "$old" = "$new" ] || git replace -f "$old" "$new"'
        ),
    ),
    case(
        "clean-filter",
        "lets a filter show git the old tests",
        sh(
            "mkdir -p .git/info && echo 'tests/* filter=keep' > .git/info/attributes\n"
            'git config filter.keep.clean "git show HEAD:%f"\n' + WEAKER
        ),
    ),
    case(
        "smudge-filter",
        "lets a filter weaken the tests whenever git writes them, and lets git write them",
        sh(
            "mkdir -p .git/info && echo 'tests/* filter=weaken' > .git/info/attributes\n"
            "git config filter.weaken.smudge \"sed 's/ == 90/ >= 90/; s/ == 20/ >= 20/'\"\n"
            "git config filter.weaken.clean cat\n"
            f"rm -f {TESTS}\ngit checkout -q -- {TESTS} || true"
        ),
    ),
    case("fsmonitor", "lets a monitor tell git that nothing changed", sh("git config core.fsmonitor true\n" + WEAKER)),
    case(
        "ignored-conftest",
        "ignores a new conftest in .gitignore",
        sh(writes(".gitignore", IGNORED + "conftest.py\n") + writes("conftest.py", PATCH)),
    ),
    case(
        "excluded-conftest",
        "hides a new conftest by the repository's own exclude file",
        sh("mkdir -p .git/info && echo conftest.py > .git/info/exclude\n" + writes("tests/conftest.py", PATCH)),
    ),
    case(
        "tests-by-link",
        "replaces the test file by a link to an ignored file",
        sh(writes("build/test_cart.py", WITHOUT) + f"rm -f {TESTS} && ln -s ../build/test_cart.py {TESTS}"),
    ),
    case(
        "git-elsewhere",
        "moves .git away, so that there is nothing to compare with",
        sh("mv .git ../moved.git 2>/dev/null\n" + WEAKER),
    ),
]
