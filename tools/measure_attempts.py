"""Measures the CPU time of one attempt of a command, including the program itself.

    python tools/measure_attempts.py [REPEATS]

Each line is the median, the least and the most of REPEATS (default 5) runs, in milliseconds of CPU per attempt: this
process and every process below it. The commands are `sh agent.sh`, which takes about 2 ms by itself. The chain also
says what its first and its later attempts cost: they should cost the same.

It uses only names that have not changed since version 0.1, so you can compare two versions:
`PYTHONPATH=other/src python tools/measure_attempts.py`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median

from backedge import Engine, Step, Workflow
from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.workspace import Workspace

try:
    from backedge.adapters.agents.file_digests import FileDigests
    from backedge.adapters.agents.supervisor import stop_spawner
except ImportError:  # version 0.1 started an interpreter per attempt
    from backedge.adapters.agents.workspace import FileDigests  # type: ignore[attr-defined]

    def stop_spawner() -> None: ...


CHAIN, SHORT_CHAIN, AT_ONCE, FILES = 40, 10, 50, 20_000
SCRIPT = 'echo "{}" > "$BACKEDGE_OUTCOME"\n'


def commands(folder: Path, count: int, chained: bool) -> Workflow:
    """A workflow whose steps are all done by the same command."""
    digests = FileDigests()
    names = [f"s{number}" for number in range(count)]
    return Workflow(
        "measured",
        [
            Step(
                name,
                CommandAgent(["sh", "agent.sh"], folder=folder, state=folder / ".backedge", digests=digests),
                needs=names[at - 1 : at] if chained and at else [],
            )
            for at, name in enumerate(names)
        ],
    )


def cpu() -> float:
    """Milliseconds of CPU that this process and its finished children have used."""
    return 1000 * sum(used.ru_utime + used.ru_stime for used in (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)))


def cost(folder: Path, count: int, chained: bool = True) -> float:
    """The CPU time of a run with this many attempts."""

    async def go() -> None:
        (folder / ".backedge").mkdir(exist_ok=True)
        async with Engine(folder / ".backedge" / "journal.db") as engine:
            report = await (await engine.start(commands(folder, count, chained))).result()
            assert report.outcome == "done" and report.usage.attempts == count, report

    began = cpu()
    asyncio.run(go())
    stop_spawner()  # its CPU time counts only after it has ended
    return cpu() - began


def prepared(folder: Path, repository: bool, files: int = 0) -> Path:
    folder.mkdir()
    (folder / "agent.sh").write_text(SCRIPT)
    for number in range(files):
        inside = folder / f"d{number // 100}"
        inside.mkdir(exist_ok=True)
        (inside / f"f{number}.txt").write_text(f"{number}\n")
    if repository:
        (folder / ".gitignore").write_text(".backedge/\n")
        for words in (("init", "-q"), ("add", "."), ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "c")):
            subprocess.run(["git", "-c", "gc.auto=0", *words], cwd=folder, check=True)
    return folder


def told(name: str, figures: list[float], unit: str = "ms CPU per attempt") -> None:
    print(f"{name:36} {median(figures):7.1f}  ({min(figures):.1f} – {max(figures):.1f}) {unit}", flush=True)


def digest(folder: Path, repeats: int) -> None:
    workspace = Workspace(folder, folder / ".backedge", None, FileDigests())
    taken = []
    for _ in range(repeats + 1):
        began = cpu()
        found = workspace.snapshot(keep=True)
        assert found is not None and found.digest
        taken.append(cpu() - began)
    told(f"digest of {FILES:,} files, first", taken[:1], "ms CPU")
    told(f"digest of {FILES:,} files, again", taken[1:], "ms CPU")


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="backedge-measure-") as name:
        home = Path(name)
        for repository in (False, True):
            where = "inside a repository" if repository else "outside a repository"
            chains, first, later, at_once = [], [], [], []
            for number in range(repeats):
                folder = prepared(home / f"{number}-{repository}", repository)
                short, long = cost(folder, SHORT_CHAIN), cost(folder, CHAIN)
                chains.append(long / CHAIN)
                first.append(short / SHORT_CHAIN)
                later.append((long - short) / (CHAIN - SHORT_CHAIN))
                at_once.append(cost(folder, AT_ONCE, chained=False) / AT_ONCE)
            told(f"chain of {CHAIN}, {where}", chains)
            told(f"  its first {SHORT_CHAIN}", first)
            told("  the others", later)
            told(f"{AT_ONCE} at once, {where}", at_once)
        digest(prepared(home / "large", repository=True, files=FILES), repeats)


if __name__ == "__main__":
    main()
