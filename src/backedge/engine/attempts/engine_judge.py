"""The engine as a judge: it measures the values of checks and gates. The rules decide the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backedge.core.briefing import Briefing
from backedge.core.checks import measure
from backedge.core.errors import AgentError
from backedge.core.value import Json, replace
from backedge.core.workflow.checks import Check, EngineJudge
from backedge.engine import protocol
from backedge.ports import Agent, Attempt, Recoverable, Result


class EngineJudgeAgent:
    """Measures a check or a gate. `outside` is the agent that reads a report or compares values, if one is needed."""

    _may_be_in_doubt = False

    def __init__(self, measure: EngineJudge, outside: Agent | None = None) -> None:
        self._measure, self._outside = measure, outside

    async def work(self, briefing: Briefing, attempt: Attempt) -> object:
        try:
            measured = measure(self._measure, briefing.inputs)
        except ValueError as error:
            raise AgentError(str(error)) from error
        if self._outside is None or self._settled(measured):
            return protocol.Outcome(output=measured)
        replied = await self._outside.work(self._question(briefing, measured), attempt)
        return None if replied is None and self._may_be_in_doubt else self._with_reply(measured, replied)

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:  # noqa: ARG002 - it takes what it gets
        return ()

    def _settled(self, measured: Json) -> bool:
        return isinstance(self._measure, Check) and len(measured["positions"]) < 2

    def _question(self, briefing: Briefing, measured: Json) -> Briefing:
        """A comparing agent gets the compared values as inputs, by reference, and nothing else."""
        return replace(briefing, inputs=measured["positions"]) if isinstance(self._measure, Check) else briefing

    def _with_reply(self, measured: Json, replied: object) -> object:
        reply, log = (replied.outcome, replied.log) if isinstance(replied, Result) else (replied, b"")
        if not isinstance(reply, protocol.Outcome):
            raise AgentError(f"the measuring agent returned {type(reply).__name__}: expected an Outcome", log=log)
        if not isinstance(self._measure, Check):
            return Result(protocol.Outcome({**measured, "actual": reply.output}, usage=reply.usage), log=log)
        if reply.verdict is None:
            raise AgentError(
                "the comparison returned no verdict: return pass or fail, with the reason in the summary", log=log
            )
        reasons = reply.summary or "; ".join(finding.description for finding in reply.findings)
        measured = {**measured, "compatible": reply.verdict != "fail", "reason": reasons}
        return Result(protocol.Outcome(measured, usage=reply.usage), log=log)


class RecoverableEngineJudge(EngineJudgeAgent):
    """An engine judge whose comparison may outlive the process that started it."""

    _may_be_in_doubt = True

    def __init__(self, measure: EngineJudge, outside: Agent, recoverable: Recoverable) -> None:
        super().__init__(measure, outside)
        self._recoverable = recoverable

    async def recover(self, briefing: Briefing, attempt: Attempt) -> object | None:
        measured = measure(self._measure, briefing.inputs)
        reply = await self._recoverable.recover(self._question(briefing, measured), attempt)
        return None if reply is None else self._with_reply(measured, reply)


def agent_for(agents: Mapping[str, Agent], measure: EngineJudge | None, name: str) -> Agent:
    """The agent that makes an attempt: the engine itself, for a check or a gate."""
    if measure is None:
        return agents[name]
    outside = agents.get(name)
    able: object = outside
    if outside is not None and isinstance(able, Recoverable):
        return RecoverableEngineJudge(measure, outside, able)
    return EngineJudgeAgent(measure, outside)
