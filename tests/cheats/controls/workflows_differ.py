"""Honest work in other workflows: parallel steps, planners, people, background processes, installs."""

from __future__ import annotations

from tests.cheats.case import python, sh
from tests.cheats.cheats.state import END_BACKEDGE, RUN_THEN_RESUME
from tests.cheats.cheats.stories import STORY
from tests.cheats.repositories import FIXED_CART, PYTEST, REVIEWED, SHOP, TEST_CART, control, writes

FIX = writes("shop/cart.py", FIXED_CART)
FLAKY = """\
import os
import pathlib


def test_sometimes():
    count = pathlib.Path(os.environ["HOME"]) / "flaky"
    number = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(number))
    assert number % 2 == 0
"""
CONFTEST_COVERAGE = (
    "import json\nimport pathlib\n\n\ndef pytest_sessionfinish():\n"
    "    pathlib.Path('coverage.json').write_text(json.dumps({'percent': 93}))\n"
)
CASES = [
    control(
        "parallel-steps",
        "two steps work in one workspace at the same time, each on its own files",
        sh("sleep 0.3\n" + FIX),
        sh("mkdir -p docs; for n in 1 2 3 4 5; do echo $n >> docs/index.md; sleep 0.1; done", name="writer"),
        workflow=SHOP.workflow.replace("run: CODER", 'run: CODER, writes: ["shop/**"]')
        + '  docs: {phase: code, run: WRITER, writes: ["docs/**"]}\n',
    ),
    control(
        "parallel-step-beside-the-judge",
        "another step still writes while the tests run",
        sh(FIX),
        sh("mkdir -p docs; for n in 1 2 3 4 5 6 7 8; do echo $n > docs/$n.md; sleep 0.2; done", name="writer"),
        workflow=SHOP.workflow + '  docs: {phase: code, needs: [code], run: WRITER, writes: ["docs/**"]}\n',
    ),
    control(
        "later-step-documents",
        "a later step writes documentation after the tests have passed",
        sh(FIX),
        sh("mkdir -p docs && echo 'total(prices, discount)' > docs/cart.md", name="writer"),
        workflow=SHOP.workflow + "  docs: {phase: test, needs: [test], run: WRITER}\n",
    ),
    control(
        "planner-adds-a-judge",
        "a planner adds a judge and a step",
        sh(FIX),
        sh(
            "",
            name="planner",
            outcome='{"add_steps": {"notes": {"phase": "code", "needs": ["plan"], "run": ["echo", "{}"], "writes": []}, '
            '"compiles": {"tests": "code", "run": ["python", "-m", "compileall", "-q", "shop"], "report": "exitcode"}}}',
        ),
        workflow="name: shop\nsteps:\n  plan: {phase: planning, plans: true, run: PLANNER, writes: []}\n"
        f"  code: {{phase: code, needs: [plan], run: CODER}}\n  test: {{tests: code, {PYTEST}}}\n",
    ),
    control(
        "person-reviews",
        "a person reviews the work and passes it",
        sh(FIX),
        workflow=SHOP.workflow + "  review: {reviews: code, agent: human}\n",
        person=(("run", "--json"), ("decide", "E-1", "resolve", "--option", "pass"), ("resume", "--json")),
        reviewed=True,
    ),
    control(
        "person-approves-a-step",
        "a person approves the release",
        sh(FIX),
        workflow=SHOP.workflow
        + '  release: {phase: test, needs: [test], run: [echo, "{}"], approval: human, writes: []}\n',
        person=(("run", "--json"), ("decide", "E-1", "approve"), ("resume", "--json")),
    ),
    control(
        "reviewer-sends-back",
        "a reviewer wants a comment, and gets it",
        sh(FIX + '[ "$BACKEDGE_ATTEMPT" = 1 ] || echo "# In cents." >> shop/cart.py'),
        files={
            "agents/review.py": "import pathlib\n\n"
            'if "In cents" in pathlib.Path("shop/cart.py").read_text():\n    print(\'{"verdict": "pass"}\')\n'
            'else:\n    print(\'{"verdict": "fail", "findings": [{"description": "say that prices are in cents"}]}\')\n'
        },
        workflow=REVIEWED,
        reviewed=True,
    ),
    control(
        "reviewer-runs-the-tests-too",
        "a reviewer runs the tests in the workspace, and edits a file and takes that back, while the tests run",
        sh(FIX),
        files={
            "agents/review.py": "import pathlib\nimport subprocess\n\n"
            "file = pathlib.Path('shop/receipt.py')\nbefore = file.read_text()\nfile.write_text(before + '# look here')\n"
            "subprocess.run(['python', '-m', 'pytest', '-q'], stdout=subprocess.DEVNULL)\nfile.write_text(before)\n"
            'print(\'{"verdict": "pass"}\')\n'
        },
        workflow=REVIEWED,
        reviewed=True,
    ),
    control(
        "commits",
        "fixes the defect and commits its work",
        sh(FIX + "git add -A && git commit -qm 'fix the discount' || true"),
    ),
    control(
        "commits-on-a-branch",
        "works on a branch of its own",
        sh("git switch -qC fix-discount\n" + FIX + "git commit -qam 'fix the discount' || true"),
    ),
    control(
        "leaves-a-server",
        "fixes the defect and forgets a server that it started to try it",
        sh(FIX + "setsid python3 -m http.server 0 >/dev/null 2>&1 &\nsleep 0.2"),
    ),
    control(
        "flaky-test",
        "a test fails every second time it is run",
        sh(FIX),
        files={"tests/test_flaky.py": FLAKY},
    ),
    control(
        "flaky-test-reruns",
        "the same, and the judge may run failing tests again",
        sh(FIX),
        files={"tests/test_flaky.py": FLAKY},
        workflow=SHOP.workflow.replace("report: junit", "report: junit, reruns: 2"),
        needs=("reruns:",),
    ),
    control(
        "installs-a-dependency",
        "installs a package that the product needs, and says so",
        sh(
            "for site in .venv/lib/python3*/site-packages; do echo 'PERCENT = 100' > \"$site/rates.py\"; done\n"
            + writes(
                "shop/cart.py",
                FIXED_CART.replace("\n\n\ndef total", "\n\nfrom rates import PERCENT\n\n\ndef total", 1).replace(
                    "(100 -", "(PERCENT -"
                ),
            )
        ),
        venv=True,
        workflow=SHOP.workflow.replace("run: CODER", "run: CODER, installs: true"),
        truth=("sh", "grep -q 'PERCENT - discount' shop/cart.py"),
        needs=("installs:",),
    ),
    control(
        "report-for-a-gate",
        "the tests write a report that a gate reads",
        sh(FIX),
        files={"conftest.py": CONFTEST_COVERAGE, ".gitignore": SHOP.files[".gitignore"] + "coverage.json\n"},
        workflow=SHOP.workflow.replace("report: junit", "report: junit, keeps: [coverage.json]")
        + "gates:\n  coverage: {metric: {report: coverage.json, path: /percent}, at_least: 80, needs: [test]}\n",
        needs=("keeps:",),
    ),
    control(
        "tests-write-files",
        "the tests write caches and temporary files into the workspace",
        sh(FIX),
        files={
            "tests/test_files.py": "import pathlib\n\n\ndef test_files(tmp_path):\n"
            "    pathlib.Path('build').mkdir(exist_ok=True)\n    pathlib.Path('build/cache.txt').write_text('x')\n"
            "    (tmp_path / 'a').write_text('b')\n    assert pathlib.Path('build/cache.txt').read_text() == 'x'\n"
        },
    ),
    control(
        "uses-backedge",
        "the repository tests itself with backedge, in a folder of its own",
        sh(
            FIX
            + 'mkdir -p "$HOME/other" && printf \'name: other\\nsteps:\\n  a: {run: [echo, "{}"], writes: []}\\n\' > "$HOME/other/backedge.yaml"\n'
            + '(cd "$HOME/other" && backedge run --json >&2)'
        ),
    ),
    control(
        "relaxed-team",
        "the team does not protect its tests: the coder may change them",
        sh(FIX + writes("tests/test_cart.py", TEST_CART.replace("test_count", "test_number_of_items"))),
        workflow="protects: false\n" + SHOP.workflow,
        needs=("protects:",),
    ),
    control(
        "two-stories",
        "two stories are worked on, each in its worktree",
        sh(FIX),
        files={f"stories/{id}.md": STORY.format(id, number) for id, number in (("a", 10), ("b", 20))},
        workflow=SHOP.workflow.replace("steps:", "stories: {folder: stories, worktree: true}\nsteps:"),
        person=(("run", "--auto"), ("show", "--json", "s-b")),
        truth=(
            "sh",
            "cd .backedge/worktrees/b && python3 -c 'from shop.cart import total; assert total([200], 25) == 150'",
        ),
    ),
    control(
        "record-of-the-start-is-lost",
        "fixes the defect; then backedge crashes, and the run goes on where its record of the start is not, as on another machine",
        python(
            f"import pathlib\n{END_BACKEDGE}pathlib.Path('shop/cart.py').write_text({FIXED_CART!r})\n"
            "for path in pathlib.Path(os.environ.get('XDG_STATE_HOME', '/nowhere')).rglob('base.json'):\n    path.unlink()\n"
            "pathlib.Path(os.environ['BACKEDGE_OUTCOME']).write_text('{\"summary\": \"fixed the discount\"}')\n"
            "end_backedge()\n"
        ),
        person=RUN_THEN_RESUME,
    ),
]
