"""How long a step waits when the provider of its agent has reached a limit: too many requests, overload, a used-up quota.

That is not an error of the agent. The attempt ends, the step waits, visibly, and the attempt is made again. The limit
`provider_wait` bounds how long a step waits in a row; then a person is asked.
"""

from __future__ import annotations

from backedge.core.model import Breach
from backedge.core.state.run import StepState
from backedge.core.text import duration

FIRST = 60.0
LONGEST = 15 * 60.0


def seconds_to_wait(step: StepState, stated: float | None) -> float:
    """How long to wait from now. `stated` is what the provider said; without it, 1, 2, 4 … up to 15 minutes.

    A provider that states a time and refuses again is not believed as readily: then it is at least 1, 2, 4 … minutes.
    """
    if stated is None:
        return _backoff(step.limits_in_a_row)
    if not step.limits_in_a_row:
        return max(stated, 0.0)
    return max(stated, _backoff(step.limits_in_a_row - 1))


def waits_for_provider(step: StepState, now: float) -> bool:
    """Whether a step waits because its provider has reached a limit."""
    return step.limits_in_a_row > 0 and step.running is None and step.retry_at > now


def provider_wait_reason(step: str, message: str, breach: Breach) -> str:
    """Why a person is asked about a step whose provider has reached a limit."""
    return (
        f"the provider of {step!r} has reached a limit for {duration(breach.count)}, and provider_wait allows "
        f"{duration(breach.bound)} in a row: continue tries again at once; it said: {message}"
    )


def _backoff(refusals: int) -> float:
    return min(FIRST * 2.0 ** min(refusals, 10), LONGEST)
