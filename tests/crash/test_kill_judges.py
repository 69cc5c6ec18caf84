"""kill -9 of `backedge run` at random moments while baselines, rooms, judges and reruns are in play; then `resume`.

The moments are random, but each kill aims at a part: it waits until the folder of that part is there, and a little longer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.evidence.places import journal_key

KILLS = 24
PATIENCE = 60.0
RUNNER = """\
echo "judge $$" >> "$LOG"
{ echo '<testsuite>'
  for test in tests/*.sh; do
    name=$(basename "$test" .sh)
    if sh "$test"; then inside=; else inside='<failure message="it fails"/>'; fi
    echo "<testcase classname='tests' name='$name' file='$test'>$inside</testcase>"
  done
  echo '</testsuite>'
} > "$1"
sleep 0.15
"""
CODER = """\
echo "code $BACKEDGE_ATTEMPT" >> "$LOG"
sleep 0.1
case $BACKEDGE_ATTEMPT in
  1) echo 95 > total; echo '# a comment' >> tests/total.sh ;;
  *) echo 90 > total ;;
esac
echo '{"summary": "done"}'
"""
REVIEW = """\
echo "review $BACKEDGE_ATTEMPT" >> "$LOG"
sleep 0.1
echo '{"verdict": "pass"}'
"""
WORKFLOW = """\
name: shop
sandbox: off
steps:
  code: {phase: code, run: [sh, agents/code.sh], on_doubt: rerun}
  test:
    tests: code
    run: [sh, agents/runner.sh, "{report}"]
    report: junit
    reruns: 1
  review: {reviews: code, needs: [test], run: [sh, agents/review.sh], on_doubt: rerun}
"""
FILES = {
    "backedge.yaml": WORKFLOW,
    "agents/runner.sh": RUNNER,
    "agents/code.sh": CODER,
    "agents/review.sh": REVIEW,
    "total": "100\n",
    "tests/total.sh": '[ "$(cat total)" = 90 ]\n',
    "tests/count.sh": "true\n",
}
AIMS = ("*-0/delivered", "test-*/delivered", "test-*/delivered-rerun-1", "test-*/held", "code-*", "review-*")
"""The folders of the parts at which kills are aimed."""


class Shop:
    """A project in which backedge is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder / "shop", folder / "log"
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "home"),
            "LOG": str(self.log),
            "BACKEDGE_SANDBOX": "off",
        }
        self.home = folder / "home" / "backedge" / journal_key(self.folder / ".backedge" / "journal.db")
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for words in (
            ["init", "-q"],
            ["add", "-A"],
            ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder.parent / "out").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "backedge", *words],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def asked(self, *words: str) -> object:
        done = subprocess.run(
            [sys.executable, "-m", "backedge", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def parts(self) -> set[Path]:
        attempts = self.folder / ".backedge" / "attempts"
        return {path for aim in AIMS for path in attempts.glob(f"*/{aim}") if (path / "starting").exists()}

    def leftovers(self) -> list[str]:
        rooms = [each.name for each in (self.home / "rooms" / "rooms").glob("*")]
        reports = [each.name for each in (self.home / "reports").glob("*")]
        return [*rooms, *reports, *mounts(self.folder), *(str(pid) for pid in processes(self.log))]


def processes(log: Path) -> Iterator[int]:
    """The processes that belong to a test: they have its log in their environment."""
    mark = f"LOG={log}\0".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found = mark in entry.joinpath("environ").read_bytes() + b"\0"
                zombie = entry.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if found and not zombie:
                yield int(entry.name)


def mounts(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]


@pytest.mark.slow
@pytest.mark.xdist_group("crash")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_kills_leave_nothing_behind_and_lose_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("BACKEDGE_SEED", "20261010"))
    print(f"BACKEDGE_SEED={seed}")
    chance, shop = random.Random(seed), Shop(tmp_path)
    kills, met = 0, Counter[str]()
    while kills < KILLS:
        kills += run_with_kills(shop, chance, met)
    print(f"{kills} kills at {dict(met)}")
    assert len(met) >= 4, f"the kills met too few parts: {dict(met)}"
    for store in (shop.home / "runs").glob("*"):
        os.utime(store, (0, 0))  # that of a run which was killed before it started is kept for an hour
    shop.asked("prune", "--keep", "0s", "--json")
    assert not list((shop.home / "runs").glob("*"))


def run_with_kills(shop: Shop, chance: random.Random, met: Counter[str]) -> int:
    """One run from its start to its end, with up to four kills in between. Returns how many there were."""
    for name in ("total", "tests/total.sh"):
        (shop.folder / name).write_text(FILES[name])
    shop.log.write_text("")
    if chance.random() < 0.7:
        shutil.rmtree(shop.home / "baselines", ignore_errors=True)
    kills, words = 0, ["run", "--json"]
    planned = chance.randint(1, 4)
    run = ""
    while True:
        seen, process = shop.parts(), shop.start(*words)
        if kills < planned and killed(shop, process, seen, chance, met):
            kills += 1
            runs: object = shop.asked("runs", "--json")
            assert isinstance(runs, list)
            opened = [each["run"] for each in runs if each["outcome"] not in ("verified", "cancelled")]
            run = opened[0] if opened else ""
            words = ["resume", run, "--json"] if run else ["run", "--json"]
            continue
        code = process.wait(PATIENCE)
        assert code == 0, (shop.folder.parent / "out").read_text()[-3000:]
        break
    check(shop)
    return kills


def killed(
    shop: Shop, process: subprocess.Popen[bytes], seen: set[Path], chance: random.Random, met: Counter[str]
) -> bool:
    """Kill the process some time after a new part has begun; False if it ended before."""
    wanted, give_up = chance.randint(1, 3), time.monotonic() + PATIENCE
    while len(shop.parts() - seen) < wanted and time.monotonic() < give_up and process.poll() is None:
        time.sleep(0.002)
    time.sleep(chance.uniform(0.0, 0.25))
    if process.poll() is not None:
        return False
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for part in shop.parts() - seen:
        met["baseline" if part.parent.name.endswith("-0") else part.name.rstrip("0123456789-")] += 1
    return True


def check(shop: Shop) -> None:
    """Everything is there once, and nothing is left."""
    report = shop.asked("show", "--json")
    assert isinstance(report, dict)
    assert report["outcome"] == "verified"
    assert (shop.folder / "total").read_text() == "90\n"
    executed = Counter(line for line in shop.log.read_text().splitlines() if line.startswith(("code", "review")))
    assert max(executed.values()) == 1, f"an attempt was executed twice: {executed}"
    give_up = time.monotonic() + 10
    while shop.leftovers() and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not shop.leftovers()


@pytest.mark.slow
@pytest.mark.xdist_group("crash")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_cancel_ends_a_judge_that_outlived_backedge(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    runner = shop.folder / "agents/runner.sh"
    runner.write_text(f"{RUNNER}[ $(cat total) = 100 ] || sleep 600\n")
    process, give_up = shop.start("run"), time.monotonic() + PATIENCE
    while not (found := [*shop.folder.glob(".backedge/attempts/*/test-1/delivered/process.json")]):
        assert time.monotonic() < give_up, (shop.folder.parent / "out").read_text()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert [*processes(shop.log)], "the judge is still at work"
    assert shop.start("cancel", found[0].parents[2].name).wait(PATIENCE) == 0
    while [*processes(shop.log)] and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not [*processes(shop.log)]
    assert not shop.leftovers()
