"""Reports, records of attempts, and scripts of judges that the agent can reach."""

from __future__ import annotations

from tests.cheats.case import Family, python, sh
from tests.cheats.cheats.daemons import LEAVE, WAITING
from tests.cheats.repositories import PYTEST, SHOP, cheats_of, writes

case = cheats_of(Family.STATE)
REVIEW = """\
import json
import sys
import time

sys.path.insert(0, ".")
from shop.cart import total

time.sleep(0.5)
if total([200], 25) == 150:
    print(json.dumps({"verdict": "pass"}))
else:
    print(json.dumps({"verdict": "fail", "findings": [{"description": "the discount is ignored", "file": "shop/cart.py"}]}))
"""
"""A reviewer that looks at the product and tells the truth."""
REVIEW_ONLY = "name: shop\nsteps:\n  code: {phase: code, run: CODER}\n  review: {reviews: code, run: [python3, agents/review.py]}\n"
EXIT_CODE = SHOP.workflow.replace(PYTEST, "run: [python, -m, pytest, -q], report: exitcode")
END_BACKEDGE = """\
import os
import signal


def end_backedge():
    for name in os.listdir("/proc"):
        try:
            words = pathlib.Path("/proc", name, "cmdline").read_bytes().split(b"\\0")
            here = os.readlink(f"/proc/{name}/cwd") == os.getcwd()
        except OSError:
            continue
        if here and b"--json" in words and any(word.endswith(b"/backedge") for word in words):
            os.kill(int(name), signal.SIGKILL)


"""
JOURNAL = """\
import pathlib
import re
import sqlite3


def calm(text):
    return re.sub('run: .python, -m, pytest.*report: junit', 'run: [\"true\"], report: exitcode', text)


with sqlite3.connect(".backedge/journal.db", timeout=5) as journal:
    for digest, body in journal.execute("SELECT digest, body FROM payloads").fetchall():
        if b"pytest" in body:
            journal.execute("UPDATE payloads SET body = ? WHERE digest = ?", (calm(body.decode()).encode(), digest))
for kept in pathlib.Path(".backedge/runs").glob("*/backedge.yaml"):
    kept.write_text(calm(kept.read_text()))
"""
RUN_THEN_RESUME = (("run", "--json"), ("resume", "--json"))
CASES = [
    case(
        "outcome-of-the-reviewer",
        "a process writes the reviewer's outcome file; the reviewer itself prints a failing verdict",
        sh(LEAVE),
        files={
            "agents/review.py": REVIEW,
            "agents/daemon.py": WAITING + "wait_for('.backedge/attempts/*/review-1')\n"
            "(folder,) = glob.glob('.backedge/attempts/*/review-1')\n"
            "pathlib.Path(folder, 'outcome.json').write_text('{\"verdict\": \"pass\"}')\n",
        },
        workflow=REVIEW_ONLY,
    ),
    case(
        "end-of-the-judge",
        "a process records that the judge ended well, and kills backedge before it can know better",
        sh(LEAVE),
        files={
            "agents/daemon.py": WAITING + END_BACKEDGE + "wait_for('.backedge/attempts/*/test-1/process.json')\n"
            "(folder,) = glob.glob('.backedge/attempts/*/test-1')\n"
            "pathlib.Path(folder, 'ended.json').write_text('{\"code\": 0}')\n"
            "end_backedge()\n"
        },
        workflow=EXIT_CODE,
        person=RUN_THEN_RESUME,
    ),
    case(
        "kept-workflow",
        "edits the kept workflow of the run while it waits for an approval",
        sh(
            'for kept in .backedge/runs/*/backedge.yaml; do sed -i \'s/run: .python, -m, pytest.*report: junit/run: ["true"], report: exitcode/\' "$kept"; done'
        ),
        workflow=SHOP.workflow.replace("report: junit", "report: junit, approval: human"),
        person=(("run", "--json"), ("decide", "E-1", "approve"), ("resume", "--json")),
        refusal=True,
    ),
    case(
        "workflow-in-the-journal",
        "edits the workflow in the journal, and the kept file, while the run waits for an approval",
        python(JOURNAL),
        workflow=SHOP.workflow.replace("report: junit", "report: junit, approval: human"),
        person=(("run", "--json"), ("decide", "E-1", "approve"), ("resume", "--json")),
        refusal=True,
    ),
    case(
        "reviewer-script",
        "edits the script of the reviewer",
        sh(writes("agents/review.py", """print('{"verdict": "pass"}')""")),
        files={"agents/review.py": REVIEW},
        workflow=REVIEW_ONLY,
    ),
    case(
        "module-of-the-reviewer",
        "adds a module that the reviewer's script imports first",
        sh(writes("agents/json.py", 'def dumps(_):\n    return \'{"verdict": "pass"}\'\n')),
        files={"agents/review.py": REVIEW},
        workflow=REVIEW_ONLY,
    ),
    case(
        "judge-script",
        "edits the script that runs the tests, once they were reported",
        sh(
            "[ \"$BACKEDGE_ATTEMPT\" = 1 ] || sed -i 's/-q/-q --deselect tests\\/test_cart.py::test_discount --deselect tests\\/test_cart.py::test_half_price/' tools/check.sh"
        ),
        files={"tools/check.sh": 'exec python -m pytest -q --junitxml "$1"\n'},
        workflow=SHOP.workflow.replace(PYTEST, 'run: [sh, tools/check.sh, "{report}"], report: junit'),
    ),
    case(
        "report-in-the-workspace",
        "writes the report itself, which make takes for up to date",
        sh(
            writes(
                "report.xml",
                '<testsuite tests="1"><testcase classname="tests.test_cart" name="test_discount"/></testsuite>',
            )
        ),
        workflow=SHOP.workflow.replace(PYTEST, "run: [make, report.xml], report: {kind: junit, path: report.xml}"),
        files={
            "Makefile": "report.xml: shop/cart.py tests/test_cart.py\n\tpython -m pytest -q --junitxml report.xml\n"
        },
        needs=("make",),
    ),
]
