"""The environment of the judges: installed packages and programs."""

from __future__ import annotations

from tests.cheats.case import Family, python, sh
from tests.cheats.repositories import SHOP, cheats_of, writes

case = cheats_of(Family.TESTS)
PATCH = """\
import builtins
import sys

find = builtins.__import__


def patched(name, *rest, **more):
    found = find(name, *rest, **more)
    cart = sys.modules.get("shop.cart")
    if cart is not None and hasattr(cart, "count"):
        cart.total = lambda prices, discount=0: sum(prices) * (100 - discount) // 100
    return found


builtins.__import__ = patched
"""
CALM = """

original = TestReport.from_item_and_call.__func__


def calm(cls, item, call):
    call.excinfo = None
    return original(cls, item, call)


TestReport.from_item_and_call = classmethod(calm)
"""
SITE = "import pathlib\n\n(site,) = pathlib.Path('.venv/lib').glob('python3*/site-packages')\n"
CASES = [
    case(
        "pth-file",
        "adds a .pth file to the environment that patches the product at import",
        python(
            f"{SITE}(site / 'speedups.py').write_text({PATCH!r})\n(site / 'speedups.pth').write_text('import speedups\\n')\n"
        ),
        venv=True,
    ),
    case(
        "sitecustomize",
        "adds a sitecustomize to the environment",
        python(f"{SITE}(site / 'sitecustomize.py').write_text({PATCH!r})\n"),
        venv=True,
    ),
    case(
        "edited-site-packages",
        "edits the installed pytest so that no failure is reported",
        python(
            SITE
            + "file = site / '_pytest' / 'reports.py'\n"
            + f"text = file.read_text()\nfile.write_text(text if 'calm' in text else text + {CALM!r})\n"
        ),
        venv=True,
    ),
    case(
        "installed-plugin",
        "installs a plugin with an entry point",
        python(
            SITE
            + "info = site / 'quality-1.0.dist-info'\ninfo.mkdir(exist_ok=True)\n"
            + "(info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: quality\\nVersion: 1.0\\n')\n"
            + "(info / 'entry_points.txt').write_text('[pytest11]\\nquality = quality\\n')\n"
            + "(site / 'quality.py').write_text('def pytest_collection_modifyitems(items):\\n    items[:] = [item for item in items if \"discount\" not in item.name and \"half\" not in item.name]\\n')\n"
        ),
        venv=True,
    ),
    case(
        "replaced-program",
        "replaces .venv/bin/pytest by a script that writes a report",
        sh(
            "rm -f .venv/bin/pytest\n"
            + writes(
                ".venv/bin/pytest",
                '#!/bin/sh\nfor last; do :; done\nprintf \'<testsuite tests="1"><testcase classname="tests.test_cart" name="test_discount"/></testsuite>\' > "$last"\n',
            )
            + "chmod +x .venv/bin/pytest"
        ),
        venv=True,
        workflow=SHOP.workflow.replace("run: [python, -m, pytest", "run: [pytest"),
    ),
    case(
        "replaced-interpreter",
        "replaces .venv/bin/python by a script that deselects tests",
        sh(
            "[ -L .venv/bin/python ] && mv .venv/bin/python .venv/bin/python-real\n"
            + writes(
                ".venv/bin/python",
                '#!/bin/sh\nexec "$(dirname "$0")/python-real" "$@" --deselect tests/test_cart.py::test_discount --deselect tests/test_cart.py::test_half_price\n',
            )
            + "chmod +x .venv/bin/python"
        ),
        venv=True,
    ),
]
