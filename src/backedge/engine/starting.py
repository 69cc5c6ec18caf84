"""Before a run is executed: is it given right, and by whom is it done?"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex

import msgspec

from backedge.core import commands as c
from backedge.core.errors import AgentError, IllegalCommand, WorkflowError
from backedge.core.model import HUMAN
from backedge.core.value import Json
from backedge.core.workflow.checks import needs_agent
from backedge.core.workflow.definition import Workflow
from backedge.engine.codec import canonical, digest_of
from backedge.engine.large import INLINE
from backedge.ports import Agent


def new_run_id(now: float) -> str:
    """An id that nobody else has, and that sorts by time."""
    return f"r-{int(now * 1000):011x}{token_hex(3)}"


def require_agents(workflow: Workflow, agents: Mapping[str, Agent]) -> None:
    """Raises WorkflowError, naming every step that nobody can do."""
    missing = [
        f"step {step.name!r} has no agent {name!r}: give one"
        for step in workflow.steps
        for name in step.agents or ("",)
        if name not in agents and name != HUMAN
    ]
    missing += [
        f"{each.name!r} is measured by nobody: give who reads its report or compares its values"
        for each in workflow.measures
        if needs_agent(each) and each.name not in agents
    ]
    if missing:
        raise WorkflowError(tuple(missing))


def start_command(run: str, workflow: Workflow, input: Json, most: int) -> tuple[c.StartRun, dict[str, bytes]]:
    """The command that starts a run, with the input as a large value if it is one. Raises IllegalCommand."""
    try:
        run.encode()
        text = canonical(input, most, "the input")
    except (AgentError, AttributeError, UnicodeEncodeError) as error:
        # What is wrong here was given by the caller, not by an agent.
        wrong = str(error) if isinstance(error, AgentError) else f"the id of the run is {run!r}: expected text"
        raise IllegalCommand(wrong) from error
    if len(text) > INLINE:
        digest = digest_of(text)
        return c.StartRun(run, workflow, None, digest), {digest: text}
    return c.StartRun(run, workflow, msgspec.json.decode(text), None), {}
