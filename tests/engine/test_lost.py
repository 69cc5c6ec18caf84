"""A frozen process that has lost its run starts nothing from the journal and records nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from backedge import Engine
from backedge.ports import Claim
from backedge.testing.claims_contract import SOON
from tests.contracts.test_journals import ForcedJournal
from tests.engine.frozen_process import work
from tests.engine.parts import until

PROGRAM = str(Path(__file__).with_name("frozen_process.py"))


class Taken(ForcedJournal):
    """A journal that lets every claim be taken over."""

    async def claim(self, run: str) -> Claim:
        return self.take_over(run)


def test_a_process_that_wakes_up_after_its_run_was_taken_over_starts_and_records_nothing(tmp_path: Path) -> None:
    path, log = tmp_path / "journal.db", tmp_path / "log"
    frozen = subprocess.Popen([sys.executable, PROGRAM, str(path), str(log)], stdout=subprocess.PIPE, text=True)
    assert frozen.stdout is not None

    async def takes_over() -> None:
        journal = Taken(path)
        async with Engine(journal) as engine:
            await engine.resume("r", work(str(log), "second"))
            await until(lambda: len(log.read_text().splitlines()) == 3)
            written = len(await journal.read("r"))
            os.kill(frozen.pid, signal.SIGCONT)
            # It finds two attempts that were started since, one of a step that it has room for.
            asyncio.get_running_loop().call_later(4 * SOON, frozen.kill)
            assert await asyncio.to_thread(line) == "RunLost"
            assert await asyncio.to_thread(frozen.wait) == 0
            assert len(await journal.read("r")) == written
            assert log.read_text().splitlines() == ["first a 1", "second a 2", "second b 1"]
        await journal.close()

    def line() -> str:
        assert frozen.stdout is not None
        return frozen.stdout.readline().strip()

    try:
        assert line() == "working"
        os.kill(frozen.pid, signal.SIGSTOP)
        asyncio.run(takes_over())
    finally:
        frozen.kill()
        frozen.communicate()
