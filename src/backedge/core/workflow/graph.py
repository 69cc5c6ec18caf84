"""The graph of a workflow, computed once: which steps are upstream of which, which judge which, and the distances."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from graphlib import TopologicalSorter

from backedge.core.workflow.checks import EngineJudge, Gate, needs_agent
from backedge.core.workflow.conditions import Condition, parse_condition
from backedge.core.workflow.definition import Step, Workflow, phase_order
from backedge.core.workflow.limits import BUDGETS, Limits


class Reach(dict[str, frozenset[str]]):
    """Everything that can be reached from each name over its direct edges. Cycles are allowed.

    Each entry is computed when it is first needed: computing all of them would take time and memory that grow with the
    square of a long chain of steps."""

    def __init__(self, direct: Mapping[str, Iterable[str]]) -> None:
        self._direct = direct

    def __missing__(self, name: str) -> frozenset[str]:
        reached, queue = set[str](), list(self._direct[name])
        while queue:
            each = queue.pop()
            if each not in reached:
                reached.add(each)
                if each in self:
                    reached |= self[each]
                else:
                    queue += self._direct[each]
        found = self[name] = frozenset(reached)
        return found


class Graph:
    """Facts that follow from the definition of a workflow, and never change for it.

    Raises graphlib.CycleError if steps need each other in a circle.
    """

    def __init__(self, workflow: Workflow) -> None:

        self.workflow = workflow
        self.steps: dict[str, Step] = {step.name: step for step in workflow.steps}
        self.engine_judges: dict[str, EngineJudge] = {each.name: each for each in workflow.engine_judges}
        """Checks and gates. They are steps of the graph, but not of the workflow."""
        self.steps |= {name: as_step(judge, self.steps) for name, judge in self.engine_judges.items()}
        self.file_order = {name: index for index, name in enumerate(self.steps)}
        self.needs: dict[str, tuple[str, ...]] = {
            name: tuple(dict.fromkeys((*step.judges, *step.needs))) for name, step in self.steps.items()
        }
        self.judges = frozenset(name for name, step in self.steps.items() if step.judges)
        self._makers = tuple(name for name, step in self.steps.items() if not step.judges)
        self.order = tuple(TopologicalSorter(self.needs).static_order())
        self.consumers, self.judges_of = self._inverted()
        self.upstream = Reach(self.needs)
        self.downstream = Reach(self.consumers)
        self.phases = phase_order(workflow)
        self._ranks = {label: rank for rank, label in enumerate(self.phases)}
        self.phase_of = self._phases()
        self.gates, self.prerequisites = self._waiting()
        self.root = next(name for name in self.steps if not self.needs[name])
        self.has_judges = any(step.judges and not step.approver for step in self.steps.values())
        """Whether something judges the work. A person who approves only what is beyond a threshold does not."""
        self.budgets: tuple[tuple[str, float], ...] = tuple(
            (name, bound) for name in BUDGETS if (bound := getattr(workflow.limits, name)) is not None
        )
        self.rolls_back = frozenset(
            name for name in self.judges if (self.steps[name].on_worse or workflow.on_worse) == "rollback"
        )
        """The judges for whose findings a rework that makes things worse is rolled back."""
        self.checks_inputs = any(step.checked for step in workflow.steps)
        self.conditions: dict[str, tuple[Condition, ...]] = {
            step.name: tuple(map(parse_condition, step.when)) for step in workflow.steps if step.when
        }
        self.until_conditions: dict[str, tuple[Condition, ...]] = {
            step.name: tuple(map(parse_condition, step.repeat.until)) for step in workflow.steps if step.repeat
        }
        self.conditional = self._conditional()
        self.by_urgency = tuple(sorted(self.steps, key=lambda name: (self.rank(name), self.file_order[name])))
        """All steps, the most urgent first. Feedback may change the order."""
        self.urgency = {name: index for index, name in enumerate(self.by_urgency)}
        self.pointers: dict[str, tuple[str, ...]] = self._pointers()
        self.values: dict[str, tuple[str, ...]] = self._values()
        self.reads: dict[tuple[str, str], tuple[str, ...]] = {
            (name, producer): pointers for name, step in self.steps.items() for producer, pointers in step.reads
        }

    def is_judge(self, name: str) -> bool:
        return name in self.judges

    def rank(self, name: str) -> int:
        """The index of a step's phase in the order of phases; -1 for a step without a phase."""
        return self._ranks.get(self.phase_of[name], -1)

    def limits_of(self, name: str) -> Limits:
        return self.steps[name].limits or self.workflow.limits

    def legal_targets(self, source: str) -> tuple[str, ...]:
        """The steps that feedback from this source may go to, in file order."""
        others = (name for name in self._makers if name != source)
        if self.workflow.scope == "any":
            return tuple(others)
        rank, upstream = self.rank(source), self.upstream[source]
        return tuple(name for name in others if name in upstream or self.rank(name) < rank or name == self.root)

    def is_legal(self, source: str, target: str) -> bool:
        """The same as `target in legal_targets(source)`, without computing all targets."""
        if target == source or target in self.judges:
            return False
        in_scope = self.workflow.scope == "any" or target == self.root or target in self.upstream[source]
        return in_scope or self.rank(target) < self.rank(source)

    def legal_pairs(self) -> int:
        """How many pairs of a source and a target feedback can have. A check of inputs may blame every step that the
        checked step needs, including judges; a judge may blame every step that changed a test."""
        checked = (name for name, step in self.steps.items() if step.checked)
        judged = sum(need in self.judges for name in checked for need in self.needs[name])
        return sum(self._targets(name) for name in self.steps) + judged

    def _targets(self, source: str) -> int:
        return len(self._makers) if source in self.judges else len(self.legal_targets(source))

    def distances(self, source: str) -> dict[str, int]:
        """How many edges lie between a step and each step upstream of it."""
        found = {source: 0}
        queue = deque([source])
        while queue:
            name = queue.popleft()
            for need in self.needs[name]:
                if need not in found:
                    found[need] = found[name] + 1
                    queue.append(need)
        return found

    def _inverted(self) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
        consumers: dict[str, list[str]] = {name: [] for name in self.steps}
        judges: dict[str, list[str]] = {name: [] for name in self.steps}
        for name, step in self.steps.items():
            for need in self.needs[name]:
                consumers[need].append(name)
            for subject in dict.fromkeys(step.judges):
                judges[subject].append(name)
        return {n: tuple(c) for n, c in consumers.items()}, {n: tuple(j) for n, j in judges.items()}

    def _phases(self) -> dict[str, str]:
        """A judge has the phase of its subject. A check, a gate or a step without a phase has the latest phase among
        the steps it needs."""
        found: dict[str, str] = {}
        for name in self.order:
            step = self.steps[name]
            if step.judges and name not in self.engine_judges:
                found[name] = found[step.judges[0]]
            else:
                inherited = (found[need] for need in step.needs)
                found[name] = step.phase or max(inherited, key=lambda label: self._ranks.get(label, -1), default="")
        return found

    def _gates(self, name: str) -> tuple[str, ...]:
        """The judges that must have passed the current versions before this step starts."""
        step = self.steps[name]
        gates = [need for need in self.needs[name] if need in self.judges]
        if not step.judges:
            gates += [judge for need in self.needs[name] for judge in self.judges_of[need]]
        elif self.workflow.judges_in_order:
            earlier = (judge for subject in step.judges for judge in self.judges_of[subject])
            gates += [judge for judge in earlier if self.file_order[judge] < self.file_order[name]]
        return tuple(dict.fromkeys(judge for judge in gates if name not in self.upstream[judge]))

    def _waiting(self) -> tuple[dict[str, tuple[str, ...]], Reach]:
        """The gates of each step, and all steps that have to be done and passed before it starts.

        A judge that itself waits for this step does not gate it. Otherwise two judges, each needing a step that reads
        what the other one judges, would wait for each other for ever.
        """
        gates = {name: self._gates(name) for name in self.steps}
        before = Reach({name: (*self.needs[name], *gates[name]) for name in self.steps})
        open_gates = {name: tuple(gate for gate in gates[name] if name not in before[gate]) for name in self.steps}
        if open_gates != gates:
            before = Reach({name: (*self.needs[name], *open_gates[name]) for name in self.steps})
        return open_gates, before

    def _conditional(self) -> frozenset[str]:
        """The steps that may be skipped or repeated: those with conditions, and judges that judge only such steps."""
        found = {*self.conditions, *self.until_conditions}
        for name in self.order:
            judged = self.steps[name].judges
            if judged and all(subject in found for subject in judged):
                found.add(name)
        return frozenset(found)

    def _values(self) -> dict[str, tuple[str, ...]]:
        """For each producer, the pointers into its output whose values are recorded because conditions refer to them.
        The output of a check or gate is recorded as a whole."""
        wanted: dict[str, dict[str, None]] = {
            name: {"": None} if name in self.engine_judges else {} for name in self.steps
        }
        for conditions in (*self.conditions.values(), *self.until_conditions.values()):
            for each in conditions:
                if each.of is not None:
                    wanted[each.of.step][each.of.pointer] = None
        return {name: tuple(pointers) for name, pointers in wanted.items()}

    def _pointers(self) -> dict[str, tuple[str, ...]]:
        """For each producer, the parts of its output that some step declares in `reads`."""
        wanted: dict[str, dict[str, None]] = {name: {} for name in self.steps}
        for step in self.steps.values():
            for producer, pointers in step.reads:
                wanted[producer].update(dict.fromkeys(pointers))
        return {name: tuple(pointers) for name, pointers in wanted.items()}


def as_step(judge: EngineJudge, steps: Mapping[str, Step]) -> Step:
    """A check or gate as a step of the graph: it judges the steps it refers to or, if those are judges, their subjects."""
    subjects = (each for name in judge.producers for each in steps[name].judges or (name,))
    read: dict[str, list[str]] = {}
    for each in judge.references:
        read.setdefault(each.step, []).append(each.pointer)
    read_as_a_whole = judge.needs if isinstance(judge, Gate) else ()
    return Step(
        judge.name,
        needs=judge.producers,
        judges=tuple(dict.fromkeys(subjects)),
        agents=(judge.name,) if needs_agent(judge) else (),
        on_doubt="rerun",
        reads=tuple((name, tuple(pointers)) for name, pointers in read.items() if name not in read_as_a_whole),
    )


@lru_cache(maxsize=256)
def graph_of(workflow: Workflow) -> Graph:
    """The graph of a definition, shared by all runs of the same definition.

    The definition is not validated again: a recorded run must replay even if today's rules would refuse its workflow.
    """
    return Graph(workflow)
