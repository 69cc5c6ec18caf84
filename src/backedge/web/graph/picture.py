"""A run as the model of its graph: which node is in which state, which loops connect them, which groups are closed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from backedge.analytics.report import step_state, wait_of
from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN
from backedge.core.state.run import RunState
from backedge.core.text import counted, shortened
from backedge.web.graph.model import BackEdge, DrawnStep, GraphModel

MOST_LOOPS = 40
"""How many back edges to draw: the open ones first, then the last ones."""
MANY_STEPS = 40
"""From how many steps on groups are closed unless somebody opens them."""

Address = Callable[[str], str]
"""The address of a step, a loop or a group: each kind has its own."""


def nowhere(name: str) -> str:  # noqa: ARG001
    """The address of what cannot be opened."""
    return ""


def model_of(
    state: RunState,
    opened: Collection[str] = (),
    step_at: Address = nowhere,
    loop_at: Address = nowhere,
    group_at: Address = nowhere,
) -> GraphModel:
    """The graph of a run as it is now. `opened` are the groups to show with all their steps; "*" means all."""
    graph = state.graph
    used = dict.fromkeys(graph.phase_of[name] for name in graph.steps)
    bands = tuple(sorted(used, key=lambda phase: graph.phases.index(phase) if phase in graph.phases else -1))
    inside = _groups(state, opened)
    asking = _asking(state)
    loops, left_out = _loops(state, inside, loop_at)
    hooks = {each.source: each.rounds for each in loops}
    nodes: dict[str, DrawnStep] = {}
    for name in graph.order:
        step, own = graph.steps[name], inside.get(name, name)
        needs = [inside.get(need, need) for need in graph.needs[name]]
        if own != name:
            known = nodes.get(own)
            members = [each for each, group in inside.items() if group == own]
            if known is None:
                known = _group(state, own, members, bands.index(graph.phase_of[name]), asking, group_at)
            nodes[own] = _with_needs(known, needs)
            continue
        word = _word(state, name, asking)
        hangs = inside.get(step.judges[0], step.judges[0]) if step.judges else ""
        nodes[name] = DrawnStep(
            name,
            bands.index(graph.phase_of[name]),
            tuple(needs),
            hangs,
            step.judges,
            word,
            name,
            _pill_note(state, name, hooks.get(name, 0)) if step.judges else _note(state, name, word),
            _told(state, name, word),
            step_at(name),
        )
    labels = tuple(band or "steps" for band in bands)
    return GraphModel(labels, tuple(nodes.values()), loops, left_out)


def _with_needs(node: DrawnStep, needs: Iterable[str]) -> DrawnStep:
    fields = {**node.__dict__, "needs": tuple(dict.fromkeys((*node.needs, *needs)))}
    return DrawnStep(**fields)


def _groups(state: RunState, opened: Collection[str]) -> dict[str, str]:
    """The steps that are shown as one, with the name of their node: those of a closed group and of one phase."""
    graph = state.graph
    if "*" in opened or len(graph.steps) <= MANY_STEPS:
        return {}
    found: dict[str, str] = {}
    for name in graph.order:
        step = graph.steps[name]
        subject = step.judges[0] if step.judges else ""
        if subject in found:
            found[name] = found[subject]
        elif step.group and step.group not in opened and not step.judges:
            found[name] = f"{step.group} · {graph.phase_of[name]}"
    counts: dict[str, int] = {}
    for group in found.values():
        counts[group] = counts.get(group, 0) + 1
    return {name: group for name, group in found.items() if counts[group] > 1}


_WORST = ("asks", "broken", "failing", "limited", "running", "stale", "waiting", "done")


def _group(
    state: RunState, name: str, members: list[str], band: int, asking: Collection[str], group_at: Address
) -> DrawnStep:
    words = [_word(state, each, asking) for each in members]
    worst = next((word for word in _WORST if word in words), "done")
    done = sum(word in ("done", "skipped", "passed_over") for word in words)
    label = name.partition(" · ")[0]
    note = f"{done} of {counted(len(members), 'step')} done"
    return DrawnStep(name, band, (), "", (), worst, label, note, f"group, {note}", group_at(label), len(members))


def _asking(state: RunState) -> frozenset[str]:
    """The steps that a person is asked about."""
    found = {packet.step for packet in state.escalations.values() if packet.step is not None}
    return frozenset(found)


def _word(state: RunState, name: str, asking: Collection[str]) -> str:
    if name in asking:
        return "asks"
    word = step_state(state, name)
    if word in ("waiting", "stale"):
        if wait_of(state, name) is not None:
            return "limited"
        if state.steps[name].errors:
            return "broken"
    return word


_SAID = {"passed_over": "skipped by decision", "limited": "waits for its provider", "asks": "asks you"}


def _note(state: RunState, name: str, word: str) -> str:
    step = state.steps[name]
    parts = [_SAID.get(word, word)]
    if step.running is not None and step.running.mode != "work":
        parts = [step.running.mode]
    if step.artifact is not None:
        parts.append(f"v{step.artifact.version}")
    if step.attempts:
        parts.append(counted(step.attempts, "attempt"))
    return " · ".join(parts)


def _pill_note(state: RunState, name: str, rounds: int) -> str:
    step = state.steps[name]
    back = f"↩{rounds} " if rounds else ""
    return f"{back}×{step.attempts}" if step.attempts else ""


def _told(state: RunState, name: str, word: str) -> str:
    step, spec = state.steps[name], state.graph.steps[name]
    parts = [_SAID.get(word, word)]
    if spec.judges:
        parts.append(f"judges {', '.join(spec.judges[:6])}")
    if step.verdict is not None:
        parts.append(f"last verdict {step.verdict.word}")
    if step.artifact is not None and not spec.judges:
        parts.append(f"version {step.artifact.version}")
    parts.append(counted(step.attempts, "attempt"))
    if step.last_error:
        parts.append(f"last error: {shortened(step.last_error, 160)}")
    return ", ".join(parts)


def loop_word(state: RunState, loop: Loop) -> str:
    """How a loop is drawn: asks, open or closed."""
    if loop.escalation in state.escalations or any(each.loop == loop.id for each in state.escalations.values()):
        return "asks"
    return "open" if loop.open else "closed"


_RANK = {"asks": 0, "open": 1, "closed": 2}


def _loops(state: RunState, inside: dict[str, str], loop_at: Address) -> tuple[tuple[BackEdge, ...], int]:
    """One back edge for each pair of nodes, with all loops between them."""
    pairs: dict[tuple[str, str], list[tuple[str, Loop]]] = {}
    for loop in (*state.loops.values(), *state.closed_loops.values()):
        source = "" if loop.source == HUMAN else inside.get(loop.source, loop.source)
        if source and source not in state.steps and source not in inside.values():
            continue
        targets = dict.fromkeys((*loop.involved, *(each for past in loop.past_rounds for each in past.targets)))
        for target in targets:
            own = inside.get(target, target)
            if own != source and (own in state.steps or own in inside.values()):
                pairs.setdefault((source, own), []).append((loop_word(state, loop), loop))
    edges = []
    for (source, target), loops in pairs.items():
        loops.sort(key=lambda each: (_RANK[each[0]], -int(each[1].id[2:])))
        word, first = loops[0]
        rounds = sum(each.round for _, each in loops)
        told = _loop_told(word, first, source, target, len(loops), rounds)
        ids = tuple(each.id for _, each in loops)
        edges.append(BackEdge(source, target, ids, rounds, word, told, loop_at(first.id)))
    edges.sort(key=lambda each: (_RANK[each.state], -int(each.loops[0][2:])))
    return tuple(edges[:MOST_LOOPS]), max(0, len(edges) - MOST_LOOPS)


def _loop_told(word: str, loop: Loop, source: str, target: str, count: int, rounds: int) -> str:
    more = f" and {count - 1} more" if count > 1 else ""
    breach = f", limit {loop.breach}" if loop.breach is not None else ""
    asks = ", asks you" if word == "asks" else ""
    return f"{loop.id}{more}: {source or 'a person'} sends {target} back, {counted(rounds, 'round')}, {loop.state}{breach}{asks}"
