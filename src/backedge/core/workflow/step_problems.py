"""Everything that can be wrong with one step of a workflow: its name, the steps it refers to, and its settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from backedge.core.errors import Place, WorkflowProblem
from backedge.core.model import HUMAN, Severity
from backedge.core.suggestions import did_you_mean
from backedge.core.workflow.conditions import parse_condition
from backedge.core.workflow.definition import PASS_RULES, Step


def step_problems(step: Step, names: Collection[str], judges: Collection[str]) -> Iterable[WorkflowProblem]:
    """What is wrong with a step, given the names of all steps and of those that judge."""
    yield from _reference_problems(step, names, judges)
    yield from _setting_problems(step)
    yield from _shape_problems(step, names)


def step_place(name: str) -> Place:
    return ("steps", name)


def _reference_problems(step: Step, names: Collection[str], judges: Collection[str]) -> Iterable[WorkflowProblem]:
    """Problems with the name of a step, and with the names of others that it uses."""
    here, who = step_place(step.name), f"step {step.name!r}"
    if not step.name.strip():
        yield WorkflowProblem("a step has an empty name: give it one", here)
    if step.name == HUMAN:
        problem = "has a reserved name, which stands for the person who answers the inbox: rename it"
        yield WorkflowProblem(f"{who} {problem}", here)
    for word, others in (("needs", step.needs), ("judges", step.judges), ("reads", [p for p, _ in step.reads])):
        for other in others:
            at = (*here, word, other)
            if other == step.name:
                yield WorkflowProblem(f"{who} {word} itself: remove its own name", at)
            elif other not in names:
                known = did_you_mean(other, names)
                yield WorkflowProblem(f"{who} {word} {other!r}, which does not exist: {known}", at)
    for producer, _ in step.reads:
        if producer in names and producer not in step.needs and producer not in step.judges:
            problem = f"{who} reads {producer!r} without needing it: add it to needs"
            yield WorkflowProblem(problem, (*here, "reads", producer), here, step_place(producer))
    for subject in step.judges:
        if subject in judges:
            problem = f"{who} judges {subject!r}, which is a judge: name the step that it judges"
            yield WorkflowProblem(problem, (*here, "judges", subject), here, step_place(subject))


def _setting_problems(step: Step) -> Iterable[WorkflowProblem]:
    """Problems with one step by itself."""
    here, who = step_place(step.name), f"step {step.name!r}"
    at = (*here, "passes_if")
    if step.timeout is not None and not 0 < step.timeout < float("inf"):
        problem = f"{who} has timeout {step.timeout!r}: expected more than 0 seconds"
        yield WorkflowProblem(problem, (*here, "timeout"), here)
    if step.passes_if and step.passes_if.name and step.passes_if.name not in PASS_RULES:
        known = did_you_mean(step.passes_if.name, PASS_RULES)
        yield WorkflowProblem(f"{who} passes_if {step.passes_if.name!r}: {known}", at, here)
    if step.passes_if and not step.judges:
        yield WorkflowProblem(
            f"{who} has passes_if but is not a judge: remove it, or add `reviews` or `tests`", at, here
        )
    for severity, count in step.passes_if.at_most if step.passes_if else ():
        if severity != "blocking" and severity not in list(Severity):
            known = did_you_mean(severity, [*Severity, "blocking"])
            yield WorkflowProblem(f"{who} passes_if counts {severity!r}: {known}", at, here)
        if count < 0:
            yield WorkflowProblem(f"{who} passes_if allows {count} {severity}: expected 0 or more", at, here)
    if step.hidden and not step.judges:
        problem = f"{who} is hidden but is not a judge: remove it, or add `reviews` or `tests`"
        yield WorkflowProblem(problem, (*here, "hidden"), here)
    if step.on_worse and not step.judges:
        problem = f"{who} has on_worse but is not a judge: remove it, say it for the judges, or for the whole workflow"
        yield WorkflowProblem(problem, (*here, "on_worse"), here)
    if step.verifier and not step.judges:
        problem = f"{who} has an agent to verify but is not a judge: list its agents, or add `reviews` or `tests`"
        yield WorkflowProblem(problem, (*here, "agents"), here)
    yield from _threshold_problems(step)
    if step.plans and step.judges:
        yield WorkflowProblem(f"{who} both judges and plans: make it two steps", here, here)


def _threshold_problems(step: Step) -> Iterable[WorkflowProblem]:
    """Problems with when a person has to approve what a step made."""
    here, who = (*step_place(step.name), "approval"), f"step {step.name!r}"
    if step.thresholds is None:
        return
    files, confidence = step.thresholds.files, step.thresholds.confidence
    if step.judges:
        problem = f"{who} has approval with `when` but is a judge: set it on the step that it judges"
        yield WorkflowProblem(problem, here, here[:2])
    if files is not None and files < 1:
        yield WorkflowProblem(f"{who} has approval from {files!r} files on: expected 1 or more", here, here[:2])
    if confidence is not None and not 0 < confidence <= 1:
        problem = f"{who} has approval below confidence {confidence!r}: expected more than 0 and at most 1"
        yield WorkflowProblem(problem, here, here[:2])


def _shape_problems(step: Step, names: Collection[str]) -> Iterable[WorkflowProblem]:
    """Problems with its group, its conditions and its repetitions."""
    here, who = step_place(step.name), f"step {step.name!r}"
    if step.group and step.group in names:
        yield WorkflowProblem(
            f"{who} has group {step.group!r}, which is the name of a step: rename one of them",
            (*here, "group"),
            here,
            step_place(step.group),
        )
    for text in step.when:
        yield from _condition_problems(f"{who} has when", text, names, (*here, "when"))
    if step.repeat is None:
        return
    at = (*here, "repeat")
    if step.judges:
        yield WorkflowProblem(f"{who} has repeat but is a judge: repeat the step that it judges", at, here)
    if step.repeat.max < 1:
        yield WorkflowProblem(f"{who} has repeat with max {step.repeat.max}: expected 1 or more", at, here)
    if not step.repeat.until:
        yield WorkflowProblem(f"{who} has repeat without a condition: add `until`", at, here)
    for text in step.repeat.until:
        yield from _condition_problems(f"{who} has repeat until", text, names, at)
    if step.repeat.to and step.repeat.to not in (*names, HUMAN):
        known = did_you_mean(step.repeat.to, names)
        yield WorkflowProblem(f"{who} has repeat to {step.repeat.to!r}, which does not exist: {known}", at)


def _condition_problems(where: str, text: str, names: Collection[str], at: Place) -> Iterable[WorkflowProblem]:
    try:
        each = parse_condition(text)
    except ValueError as error:
        yield WorkflowProblem(f"{where}: {error}", at, at[:2])
        return
    if each.step and each.step not in (*names, HUMAN):
        known = did_you_mean(each.step, [*names, HUMAN])
        yield WorkflowProblem(f"{where} {text!r}: step {each.step!r} does not exist: {known}", at)
    if each.of is not None and each.of.step not in names:
        known = did_you_mean(each.of.step, names)
        yield WorkflowProblem(f"{where} {text!r}: step {each.of.step!r} does not exist: {known}", at)
