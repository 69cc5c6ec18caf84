"""backedge itself, on its SQLite journal with its default durability.

`open_engine(folder, variant)` must return a `bench.engine.Engine` whose journal lies in `folder`. How each method maps
to the product:

- One embedded engine and one event loop (`asyncio.Runner`) per instance; agents are the functions of `bench.workload`,
  marked idempotent. The workflow is plan, implement (needs plan), review (reviews implement), test (tests implement).
- `run_each` awaits the runs in turn; `run_together` gathers them, so that their commits are grouped.
- `run_rounds` lifts the limits to `rounds` (rounds_total, rounds_per_loop, same_finding, no_change) and calls `on_round`
  from the review agent, as it is about to return its failing verdict.
- `park` uses the workflow with `rounds_per_loop: 1`, so that the second failing review escalates; the runs stay loaded
  and held by this engine, each with its task waiting.
- `decide` answers the escalation with `continue`, inside the loop; the clock runs from that call to the call of the
  implement agent.
- `resume_all` opens the journal cold, lists what waits, decides and resumes everything at once.
- `await_outsider` runs the loop until the parked run's implement agent is called; `decide_outside` records the decision
  through the journal alone, in a process that does not hold the run.
- `help_command` is `[<scripts folder of sys.executable>/backedge, "--help"]`.
"""

from __future__ import annotations

from pathlib import Path

from bench.engine import Engine, Unsupported


def open_engine(folder: Path, variant: str) -> Engine:
    raise Unsupported("backedge has no public API to measure yet: implement bench/engines/ours.py")
