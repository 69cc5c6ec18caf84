"""An agent wrapped so that secrets are removed from everything it reports."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, cast

import msgspec

from backedge.adapters.agents.secrets import Secrets
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.evidence.values import RestoredFiles, RestoreRule
from backedge.core.value import Json
from backedge.ports import Agent, Attempt, Recoverable, Restorable, Result


def redacted(agent: Agent, secrets: Secrets) -> Agent:
    """The agent without secrets in its reports; the agent itself if there are no secrets."""
    if not secrets:
        return agent
    return (
        RecoveringRedactingAgent(agent, secrets) if isinstance(agent, Recoverable) else RedactingAgent(agent, secrets)
    )


class RedactingAgent:
    """Passes on what an agent reports and raises, without secrets."""

    def __init__(self, agent: Agent, secrets: Secrets) -> None:
        self._agent, self._secrets = agent, secrets

    async def work(self, briefing: Briefing, attempt: Attempt) -> object:
        return await self._heard(self._agent.work(briefing, self._hands(attempt)))

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return self._agent.input_errors(inputs)

    def _hands(self, attempt: Attempt) -> Attempt:
        return cast(Attempt, RedactingAttempt(attempt, self._secrets))

    async def _heard(self, work: Awaitable[object]) -> object:
        try:
            returned = await work
            if isinstance(returned, Result):
                outcome, files = self._secrets.value(returned.outcome), self._secrets.value(returned.files)
                return msgspec.structs.replace(
                    returned, outcome=outcome, files=files, log=self._secrets.data(returned.log)
                )
            return self._secrets.value(returned)
        except RecursionError:
            raise AgentError("the outcome is nested too deeply: report flatter JSON") from None
        except AgentError as error:
            shown = AgentError(self._secrets.text(str(error)))
            shown.usage, shown.log, shown.session = error.usage, self._secrets.data(error.log or b""), error.session
            raise shown from None
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            if (shown_words := self._secrets.text(words)) == words:
                raise
            raise AgentError(shown_words) from None


class RecoveringRedactingAgent(RedactingAgent):
    """The same for an agent whose attempts can be recovered after a crash, and undone."""

    async def restore(
        self, run: str, attempts: Sequence[tuple[str, int]], judges: Sequence[str], rule: RestoreRule
    ) -> RestoredFiles:
        if not isinstance(self._agent, Restorable):
            return RestoredFiles(problem="its agent cannot restore files")
        return await self._agent.restore(run, attempts, judges, rule)

    async def recover(self, briefing: Briefing, attempt: Attempt) -> object | None:
        return await self._heard(cast(Recoverable, self._agent).recover(briefing, self._hands(attempt)))


class RedactingAttempt:
    """The attempt as the agent gets it: feedback that it raises while it runs is redacted, too."""

    def __init__(self, attempt: Attempt, secrets: Secrets) -> None:
        self._attempt, self._secrets = attempt, secrets

    async def raise_feedback(self, feedback: object) -> str:
        return await self._attempt.raise_feedback(self._secrets.value(feedback))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attempt, name)
