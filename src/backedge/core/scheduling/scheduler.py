"""Which steps can start, and why: the correction plan of a run, computed from its state and from nothing else.

A step starts when nothing upstream is due or running and every judge of what it needs has passed the current version. A
rework waits until every judge that can still report on the version has done so, and no consumer is using it. That way
one rework handles everything that was found.
"""

from __future__ import annotations

from collections.abc import Collection

from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import HUMAN, SIDE_MODES, Mode
from backedge.core.scheduling.index import index_of, is_retrying, running_attempts
from backedge.core.scheduling.skipping import condition_pending, is_skipped, must_repeat
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.scheduling.verification import human_feedback_to_verify
from backedge.core.state.fixes import is_judged
from backedge.core.state.run import ASKED, Running, RunState, StepState
from backedge.core.value import Value


class Start(Value, frozen=True):
    """A step can start as soon as a slot is free."""

    step: str
    mode: Mode
    loops: tuple[str, ...] = ()


def ready(state: RunState, now: float, enough: int | None = None) -> list[Start]:
    """The steps that can start now, the most urgent first. With `enough`, the search may stop after so many."""
    if state.ended is not None or state.paused_by is not None:
        return []
    return _Scheduler(state, now).starts(enough)


_WITH_TARGETS = (LoopState.WAITING_RESPONSE, LoopState.RESOLVING)


def start_wanted(state: RunState, name: str) -> Start | None:
    """The start that a step is due for, even if it has to wait; None if it is not due."""
    return _Scheduler(state, float("inf")).wanted_start(name)


def all_reported(state: RunState, names: Collection[str]) -> bool:
    """Whether all judges among these steps have reported on the current versions, as far as they can."""
    return _Scheduler(state, float("inf")).all_reported(names)


class _Scheduler:
    """One scheduling pass, which computes shared facts once.

    It examines the steps that an open loop touches, and the front of the index. Steps behind the front wait for an
    unsettled step, unless a loop exempts them, so they need not be examined. This keeps large runs fast."""

    def __init__(self, state: RunState, now: float) -> None:
        self.state, self.now, self.graph = state, now, state.graph
        self.open = list(state.loops.values())
        self.reworks: dict[str, list[Loop]] = {}
        self.questions: dict[str, list[Loop]] = {}
        self.verifying: set[str] = set()
        self.asking: set[str] = set()
        """The sources of loops that still wait for a fix or an answer."""
        self.unsettled: set[str] = set()
        for loop in self.open:
            self._classify(loop)
        self.skipped = {name for name in state.steps if is_skipped(state, name)} if self.graph.conditions else set()
        self.fresh: dict[str, bool] = {}
        self.due: dict[str, Mode] = {}
        self.awaited = self._awaited() if self.open else {}
        self.index = index_of(state)
        for name in self._touched():
            self._examine(name)
        self.waited_for: set[str] | None = None
        self.waiting_for_person: set[str] = set()
        """The steps that a person was asked to do or to approve."""
        self.escalated: set[str] = set()
        """The steps that an escalated loop holds. They may still answer questions."""
        self.held = self._held()

    def _classify(self, loop: Loop) -> None:
        """Note what an open loop asks of its source and targets."""
        if loop.source != HUMAN and not loop.by_verdict:
            self.unsettled.add(loop.source)
        if loop.state is LoopState.VALIDATING:
            self.verifying.add(loop.source)
            return
        self.asking.add(loop.source)
        if loop.state in _WITH_TARGETS:
            requests = self.questions if loop.answers_only or loop.choosing else self.reworks
            for target, share in loop.shares.items():
                if not share.done and target != HUMAN:
                    requests.setdefault(target, []).append(loop)

    def _touched(self) -> dict[str, None]:
        """The steps that open loops or conditions affect."""
        found = dict.fromkeys((*self.reworks, *self.questions, *self.verifying, *self.awaited, *self.graph.conditional))
        for target in self.reworks:
            found.update(dict.fromkeys(self.graph.judges_of[target]))
        for wanted in self.awaited.values():
            found.update(dict.fromkeys(wanted))
        found.pop(HUMAN, None)
        return found

    def _examine(self, name: str) -> None:
        step = self.state.steps[name]
        self.fresh[name] = is_fresh(self.state, name)
        mode = self._due(name, step) if step.running is None else step.running.mode
        if mode is None:
            return
        if step.running is None:
            self.due[name] = mode
        # An answer or a choice changes no artifact, so no step has to wait for it.
        if mode not in SIDE_MODES or not self._needs_no_run(name):
            self.unsettled.add(name)

    def starts(self, enough: int | None = None) -> list[Start]:
        if self.held is None:
            return []
        found = [start for name in self.due if (start := self._start(name)) is not None]
        found += self._in_front(self.index.front, enough)
        return sorted(found, key=self._urgency) if len(found) > 1 else found

    def _in_front(self, front: tuple[int, ...], enough: int | None) -> list[Start]:
        """The steps of the front that can start and that no loop touches. Steps with an input check do not count towards
        `enough`, because the check may keep them from starting."""
        found: list[Start] = []
        for name in (self.graph.by_urgency[position] for position in front):
            if enough is not None and enough <= 0:
                break
            if name in self.fresh:
                continue
            self._examine(name)
            start = self._start(name)
            if start is not None:
                found.append(start)
                enough = enough - (not self.graph.steps[name].checked) if enough is not None else None
        return found

    def all_reported(self, names: Collection[str]) -> bool:
        """Whether none of these steps is running, and no judge among them can still judge."""
        if any(self.state.steps[name].running is not None for name in names) or self.held is None:
            return False
        judges = [name for name in names if name in self.graph.judges]
        for name in (name for name in judges if name not in self.fresh):
            self._examine(name)
        return not any(name in self.due and self._startable(name, eventually=True) for name in judges)

    def _needs_no_run(self, name: str) -> bool:
        return self.fresh[name] or self.state.steps[name].skipped_by_decision or name in self.skipped

    def _due(self, name: str, step: StepState) -> Mode | None:
        """The mode that a step has to be executed in; None if it does not have to be. The step is not running."""
        if name in self.reworks:
            return "rework" if step.artifact is not None else "work"
        judge = name in self.graph.judges
        if name in self.verifying:
            return "verify" if judge else "work"
        if step.skipped_by_decision:
            return _side_mode(self.questions[name]) if name in self.questions else None
        if step.results_due and name not in self.skipped:
            return "verify" if judge else "work"
        if self.questions and (questions := self._questions_for(name)):
            return _side_mode(questions)
        if name in self.skipped:
            return None
        if not self.fresh[name]:
            return "verify" if judge and (step.open_findings or human_feedback_to_verify(self.state, name)) else "work"
        repeats = name in self.graph.conditional and (
            condition_pending(self.state, name) or must_repeat(self.state, name)
        )
        return "work" if repeats else None

    def _questions_for(self, name: str) -> list[Loop]:
        """The questions that a step can answer now. It does its own work first, unless that work needs the step that asks.
        Then it answers from what it knows, and works when the asking step has continued."""
        questions = self.questions.get(name, [])
        if self._needs_no_run(name):
            return questions
        return [loop for loop in questions if loop.source in self.graph.prerequisites[name]]

    def _held(self) -> set[str] | None:
        """The steps that an open escalation, or a rollback of files, keeps from starting; None means all of them."""
        held: set[str] = set(self.state.restoring.steps) if self.state.restoring is not None else set()
        for packet in self.state.escalations.values():
            loop = self.state.loops.get(packet.loop) if packet.loop else None
            if packet.vote is not None and packet.step is not None:
                self.waiting_for_person.add(packet.step)
            elif packet.step is not None:
                held |= self.graph.downstream[packet.step]
                (self.waiting_for_person if packet.about is not None else held).add(packet.step)
            elif packet.refused or packet.protected or packet.restores:
                continue
            elif loop is None:
                return None
            elif packet.reason != ASKED:
                self.escalated |= self._below(loop)
        paused = False
        for loop in self.open:
            paused = paused or loop.pauses
            if loop.state is LoopState.ESCALATING:
                self.escalated |= self._below(loop)
        if paused:
            self.waited_for = self._waited_for()
        return held

    def _below(self, loop: Loop) -> set[str]:
        below = set().union(*(self.graph.downstream[target] for target in loop.involved if target != HUMAN))
        if loop.source != HUMAN:
            below |= {loop.source} | self.graph.downstream[loop.source]
        return below

    def _waited_for(self) -> set[str]:
        """The steps that open loops wait for: their targets, sources and judges, and everything upstream of these."""
        wanted: set[str] = set()
        for loop in self.open:
            wanted |= {loop.source, *loop.involved}
            wanted.update(
                judge for target in loop.involved if target != HUMAN for judge in self.graph.judges_of[target]
            )
        if self.state.plans:
            wanted |= {name for name, step in self.state.steps.items() if self._added_for_open_loop(step)}
        wanted.discard(HUMAN)
        return wanted.union(*(self.graph.prerequisites[name] for name in wanted))

    def _added_for_open_loop(self, step: StepState) -> bool:
        return any(id in self.state.loops for id in step.added_for)

    def _start(self, name: str) -> Start | None:
        if not self._startable(name):
            return None
        if self.due[name] in SIDE_MODES:
            return self.wanted_start(name)
        if name not in self.graph.judges and self._awaits_comparison(name):
            return None
        # An artifact must not change while a consumer is using it, unless the consumer waits for feedback.
        for consumer in self.graph.consumers[name]:
            running = self.state.steps[consumer].running
            if running is not None and not running.awaits and running.mode not in SIDE_MODES:
                return None
        if name in self.reworks and self.state.steps[name].artifact is not None:
            # All judges that can still report on this version, including people, do so first: one rework for all of it.
            for judge in self.graph.judges_of[name]:
                if judge in self.due and self._startable(judge, eventually=True):
                    return None
            if any(self._may_still_object(other, running, name) for other, running in running_attempts(self.state)):
                return None
        return self.wanted_start(name)

    def _awaits_comparison(self, name: str) -> bool:
        """Whether a fix below or at a step may still be rolled back: then all judges report first, and the files of another
        rollback are restored first."""
        return any(
            name in fix.steps
            and is_judged(self.state, id)
            and (self.state.restoring is not None or not all_reported(self.state, fix.steps))
            for id, fix in (self.state.fixes if self.graph.rolls_back else {}).items()
        )

    def _may_still_object(self, name: str, running: Running, target: str) -> bool:
        """Whether a judge is running downstream of a target: it may report findings against the target too."""
        at_work = not running.awaits and running.mode not in SIDE_MODES
        return at_work and name in self.graph.judges and name in self.graph.downstream[target]

    def wanted_start(self, name: str) -> Start | None:
        """The start that a step is due for; None if it is not due."""
        if name not in self.fresh:
            self._examine(name)
        mode = self.due.get(name)
        if mode is None:
            return None
        if mode == "answer":
            return Start(name, mode, tuple(loop.id for loop in self._questions_for(name) if not loop.choosing))
        if mode == "decide":
            # An outcome holds one decision, so a step makes one choice at a time.
            return Start(name, mode, (self._questions_for(name)[0].id,))
        return Start(name, mode, tuple(loop.id for loop in self.reworks.get(name, ())))

    def _startable(self, name: str, eventually: bool = False) -> bool:
        """Whether a step can start once a slot is free. With `eventually`, also if it still waits for a retry time or for
        the person who was asked to do it."""
        assert self.held is not None
        step = self.state.steps[name]
        if name in self.held or (self.waited_for is not None and name not in self.waited_for):
            return False
        if (name in self.waiting_for_person and not eventually) or (
            name in self.escalated and self.due[name] not in SIDE_MODES
        ):
            return False
        if is_retrying(step) and step.retry_at > self.now and not eventually:
            return False
        if self.due[name] in SIDE_MODES and not self._needs_no_run(name):
            return True
        if self._awaits_feedback(name) and self.due[name] not in SIDE_MODES and name not in self.reworks:
            return False
        upstream, gates = self.graph.upstream[name], self.graph.gates[name]
        if self._settled(upstream) and all(map(self._passing, gates)):
            return True
        exempt = self._exempt(name) if self.open else None
        if not exempt:
            return False
        return self._settled(upstream - exempt) and all(gate in exempt or self._passing(gate) for gate in gates)

    def _settled(self, steps: frozenset[str]) -> bool:
        return steps.isdisjoint(self.unsettled) and self.index.unsettled.keys().isdisjoint(steps)

    def _exempt(self, name: str) -> set[str]:
        """The upstream steps that need not be settled before this one starts."""
        exempt: set[str] = set()
        for subject in self.graph.steps[name].judges:
            # A judge that has not reported on the current version does so before that version is reworked.
            if self.due.get(subject) == "rework" and self.fresh[subject]:
                exempt.add(subject)
        if self.graph.rolls_back and name in self.graph.judges:
            # A judge of a fix that may be rolled back reports before anything above it is reworked.
            fixes = self.state.fixes.items()
            if any(name in fix.steps and is_judged(self.state, id) for id, fix in fixes):
                exempt |= {each for each in self.reworks if self.due.get(each) == "rework" and self.fresh[each]}
        for source, wanted in self.awaited.items():
            # A step that a loop waits for cannot wait for the source of that loop, if the source has an artifact to use.
            step = self.state.steps[source]
            idle = step.running is None or bool(step.running.awaits)
            if name in wanted and idle and (step.artifact is not None or self._needs_no_run(source)):
                exempt.add(source)
        return exempt

    def _awaits_feedback(self, name: str) -> bool:
        """Whether a step has to wait for feedback that it raised. Its output is provisional until then. A step without
        output does not wait if what it asked for needs that output."""
        if name not in self.asking:
            return False
        return self.state.steps[name].artifact is not None or name not in self.awaited.get(name, ())

    def _awaited(self) -> dict[str, set[str]]:
        """What each source of an open loop waits for: the targets that are not done, everything upstream of them, and,
        transitively, what the sources among these wait for."""
        found: dict[str, set[str]] = {}
        for requests in (self.reworks, self.questions):
            for target, loops in requests.items():
                for loop in loops:
                    if loop.source != HUMAN:
                        found.setdefault(loop.source, set()).update((target, *self.graph.prerequisites[target]))
        growing = len(found) > 1
        while growing:
            growing = False
            for wanted in found.values():
                more = set().union(*(found[other] for other in wanted & found.keys())) - wanted
                wanted |= more
                growing = growing or bool(more)
        return found

    def _passing(self, judge: str) -> bool:
        step = self.state.steps[judge]
        if step.skipped_by_decision or judge in self.skipped:
            return True
        return judge not in self.unsettled and judge not in self.index.unsettled and passes(self.state, judge)

    def _urgency(self, start: Start) -> tuple[int, int, int, float, int]:
        loops = [self.state.loops[id] for id in start.loops]
        return (
            self.graph.rank(start.step),
            min((loop.severity.rank for loop in loops), default=9),
            -max((loop.round for loop in loops), default=0),
            min((loop.opened_at for loop in loops), default=0.0),
            self.graph.file_order[start.step],
        )


def _side_mode(questions: list[Loop]) -> Mode:
    """The mode for a step that is asked questions: it first answers all at once, then makes one choice at a time."""
    return "decide" if all(loop.choosing for loop in questions) else "answer"


def passes(state: RunState, judge: str) -> bool:
    """Whether a judge's last verdict lets the run continue and is about the current versions."""
    verdict = state.steps[judge].verdict
    return verdict is not None and (verdict.word != "fail" or verdict.accepted) and is_fresh(state, judge)
