"""Checks the inputs and the output of a step against the JSON Schemas in the workflow file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from backedge.adapters.agents.schema import Schema
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.model import SIDE_MODES, Usage
from backedge.core.value import Json
from backedge.engine.codec import plain
from backedge.engine.protocol import Outcome
from backedge.ports import Agent, Attempt


class StepSchemas:
    """The schemas of a step's inputs and output."""

    def __init__(self, accepts: Mapping[str, Json] | None, schema: Json) -> None:
        self._accepts = {producer: Schema(shape) for producer, shape in (accepts or {}).items()}
        self._schema = None if schema is None else Schema(schema)

    def __bool__(self) -> bool:
        return bool(self._accepts) or self._schema is not None

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        """Why inputs do not fit: (producer, JSON pointer, problem). A skipped producer is not checked."""
        return [
            (producer, pointer, problem)
            for producer, shape in self._accepts.items()
            if producer in inputs
            for pointer, problem in shape.input_errors(inputs[producer])
        ]

    def require(self, briefing: Briefing, output: Json, usage: Usage) -> None:
        """Raises AgentError, with the usage, if the output does not fit. Answers and decisions have no output."""
        if self._schema is not None and briefing.mode not in SIDE_MODES:
            for where, problem in self._schema.input_errors(output):
                wrong = f"the output does not match the step's schema: {where or 'the whole'}: {problem}"
                raise AgentError(wrong, usage=usage)


class CheckedAgent:
    """An in-process agent whose inputs and output are checked."""

    def __init__(self, agent: Agent, schemas: StepSchemas) -> None:
        self._agent, self._schemas = agent, schemas

    async def work(self, briefing: Briefing, attempt: Attempt) -> object:
        returned = await self._agent.work(briefing, attempt)
        if isinstance(returned, Outcome):
            self._schemas.require(briefing, _as_json(returned.output), returned.usage)
        return returned

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return self._schemas.input_errors(inputs)


def with_checks(agent: Agent, schemas: StepSchemas) -> Agent:
    """The agent with these checks; the agent itself if there are none."""
    return CheckedAgent(agent, schemas) if schemas else agent


def _as_json(value: Json) -> Json:
    """A value as it will be stored; unchanged if it is not JSON: storing it will report that."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain))
    except (TypeError, ValueError, RecursionError):
        return value
