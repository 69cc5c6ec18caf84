"""A Python function as an agent. A plain one, which is not async, runs on a thread of its own."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from inspect import Parameter
from typing import Any, TypeVar

from msgspec.structs import replace

from backedge.adapters.agents.models import Model
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.model import SIDE_MODES, Decision, Resolution, Usage
from backedge.core.value import Json
from backedge.engine.codec import copied
from backedge.engine.protocol import Outcome, parse_outcome
from backedge.ports import Attempt

Function = Callable[..., Any]
T = TypeVar("T")


class FunctionAgent:
    """Calls a function with the briefing and, if it takes two arguments, the attempt."""

    def __init__(
        self,
        function: Function,
        *,
        judges: bool = False,
        accepts: Mapping[str, Model] | None = None,
        returns: Model | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"the agent is {function!r}: expected a function that takes a briefing")
        self._function = function
        self._judges = judges
        self._accepts = dict(accepts or {})
        self._returns = returns
        self._wants_attempt = _takes_two(function)
        self._is_async = _is_async(function)

    async def work(self, briefing: Briefing, attempt: Attempt) -> Outcome:
        briefing = _own(briefing)
        if self._accepts:
            # A skipped producer has no output: the step runs without it.
            inputs = briefing.inputs
            fitted = {name: model.fitted(inputs[name]) for name, model in self._accepts.items() if name in inputs}
            briefing = replace(briefing, inputs={**briefing.inputs, **fitted})
        if self._is_async:
            returned = await self._function(*((briefing, attempt) if self._wants_attempt else (briefing,)))
        else:
            hands = Blocking(attempt, asyncio.get_running_loop())
            arguments = (briefing, hands) if self._wants_attempt else (briefing,)
            returned = await _off_loop(self._function, arguments, hands)
            if inspect.isawaitable(returned):
                returned = await returned
        if inspect.iscoroutine(returned):
            returned.close()
            raise AgentError("the agent returned a coroutine: expected an output; await it, and return what it gives")
        return self._outcome(returned, briefing.mode)

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return [
            (name, pointer, problem)
            for name, model in self._accepts.items()
            if name in inputs
            for pointer, problem in model.input_errors(inputs[name])
        ]

    def _outcome(self, returned: Any, mode: str) -> Outcome:
        if isinstance(returned, Outcome):
            outcome = returned
        elif mode == "answer":
            outcome = Outcome(answer=returned)
        elif mode == "decide":
            outcome = Outcome(decision=_decision(returned))
        elif self._judges and isinstance(returned, dict):
            outcome = parse_outcome(returned)
        elif self._judges and returned is not None:
            raise AgentError(f"a judge returned {type(returned).__name__}: expected passed(), failed() or an Outcome")
        else:
            outcome = Outcome(output=returned)
        if self._returns is not None and mode not in SIDE_MODES:
            problems = self._returns.input_errors(outcome.output, stored=False)
            if problems:
                where, problem = problems[0]
                wrong = f"the output does not match the type that the step returns: {where or 'the whole'}: {problem}"
                raise AgentError(wrong, usage=outcome.usage)
        return outcome


def _own(briefing: Briefing) -> Briefing:
    """A copy of the briefing that the function may change."""
    return replace(
        briefing,
        input=copied(briefing.input),
        inputs={name: copied(each) for name, each in briefing.inputs.items()},
        previous=copied(briefing.previous),
    )


def _decision(returned: Any) -> Decision | None:
    """The outcome of a function that was asked to choose: it returns a Decision, or just the option."""
    return Decision(returned) if isinstance(returned, str) else returned


class Blocking:
    """The attempt as a plain function gets it: the methods of an Attempt, which block its own thread."""

    def __init__(self, attempt: Attempt, loop: asyncio.AbstractEventLoop) -> None:
        self._attempt, self._loop = attempt, loop
        self._thread = threading.get_ident()
        self._asking: Future[Any] | None = None
        self._over = False
        self._denied = False
        """Whether a wait of the function was ended early because the attempt has to stop."""

    def _let_go(self) -> None:
        """End every wait of the function, now and later, because the attempt has to stop."""
        self._over = True
        if self._asking is not None:
            self._asking.cancel()

    @property
    def inputs(self) -> Mapping[str, Json]:
        """The outputs it works from, by producer; newer than in the briefing if they changed while the attempt
        waited."""
        return self._attempt.inputs

    def spend(self, usage: Usage) -> None:
        """Report usage so far, in addition to the usage in the outcome. It counts no matter how the attempt ends."""
        self._attempt.spend(usage)

    def raise_feedback(self, feedback: object) -> str:
        """Send feedback; returns its loop. Raises FeedbackRefused, with the reason, if it cannot be delivered."""
        return self._asked("raise_feedback", self._attempt.raise_feedback(feedback))

    def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """Wait until the feedback is settled; `inputs` may be newer then."""
        return self._asked("wait_for", self._attempt.wait_for(loop, timeout))

    def _asked(self, what: str, question: Coroutine[Any, Any, T]) -> T:
        if threading.get_ident() == self._thread:
            question.close()
            raise AgentError(
                f"{what} was called on the thread of the event loop, where it would wait for itself: the agent is a plain "
                "function that returns an awaitable; make it an `async def`, and await what the attempt does"
            )
        try:
            self._asking = asking = asyncio.run_coroutine_threadsafe(question, self._loop)
            if self._over:
                asking.cancel()
            return asking.result()
        except CancelledError:
            self._denied = True
            raise
        except RuntimeError:
            question.close()  # the event loop has ended, and the attempt with it
            raise


async def _off_loop(function: Function, arguments: tuple[Any, ...], hands: Blocking) -> Any:
    """Call a plain function on its own thread, where it cannot delay other attempts or the end of the process.

    A thread cannot be stopped. A cancellation waits until the function has ended: what it returned by then counts.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    def call() -> None:
        value, failure = None, None
        try:
            value = context.run(function, *arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the function was called
            failure = RuntimeError("the agent raised StopIteration") if isinstance(error, StopIteration) else error
        with suppress(RuntimeError):  # the event loop has ended: nothing waits for it any more
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=call, daemon=True, name="backedge-agent").start()
    stopped: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            stopped = error
            hands._let_go()
    if stopped is None:
        return future.result()
    if future.exception() is not None or hands._denied:
        raise stopped
    returned = future.result()
    if inspect.isawaitable(returned):
        # The attempt is cancelled: close the awaitable instead of awaiting it.
        if inspect.iscoroutine(returned):
            returned.close()
        raise stopped
    return returned


def _is_async(function: Function) -> bool:
    """Whether calling it gives something to await: an `async def`, a partial of one, an object whose call is one."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _takes_two(function: Function) -> bool:
    """Whether it also takes an attempt. Raises TypeError if it cannot be called with a briefing."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    kinds = [each.kind for each in signature.parameters.values()]
    positional = [kind for kind in kinds if kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    two = len(positional) >= 2 or Parameter.VAR_POSITIONAL in kinds
    try:
        signature.bind(*((None, None) if two else (None,)))
    except TypeError:
        name = getattr(function, "__name__", function)
        raise TypeError(f"agent {name!r} takes {signature}: expected (briefing) or (briefing, attempt)") from None
    return two
