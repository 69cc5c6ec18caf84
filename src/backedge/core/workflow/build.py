"""Builds the definition that a run keeps from what a user writes: applies the profile and names all problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from backedge.core.errors import WorkflowError, WorkflowProblem
from backedge.core.model import HUMAN, Kind, Severity
from backedge.core.suggestions import did_you_mean
from backedge.core.value import replace
from backedge.core.workflow.checks import parse_check, parse_gate
from backedge.core.workflow.definition import APPROVAL, DEFAULT_PHASES, MAX_STEPS, PassRule, Step, Workflow
from backedge.core.workflow.limits import NAMES as LIMIT_NAMES
from backedge.core.workflow.limits import OF_THE_RUN, limit_problems, with_overrides
from backedge.core.workflow.notify import parse_expire, parse_notify, parse_roles, role_problems
from backedge.core.workflow.parsing import mapping, shown, whole, words
from backedge.core.workflow.profiles import PROFILES, Profile
from backedge.core.workflow.routes import RouteRule, parse_routes
from backedge.core.workflow.validate import problems_of

T = TypeVar("T")


def build_workflow(
    name: str,
    steps: Sequence[tuple[Step, Mapping[str, object]]],
    *,
    profile: str = "default",
    limits: Mapping[str, object] | None = None,
    phases: str | Sequence[str] = (),
    scope: str | None = None,
    routes: object = (),
    on_breach: str = "manual",
    new_findings: str | Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
    agreement: str = "all",
    authority: Sequence[str] = (),
    checks: Mapping[str, object] | None = None,
    gates: Mapping[str, object] | None = None,
    on_protected: str = "review",
    on_worse: str = "keep",
    max_steps: float = MAX_STEPS,
    roles: Mapping[str, object] | None = None,
    notify: object = (),
    expire: Mapping[str, object] | None = None,
) -> Workflow:
    """A valid workflow, as a journal would return it. Each step comes with its own limits as the user wrote them.
    Raises WorkflowError with all problems."""
    problems: list[str] = []
    if profile not in list(PROFILES):
        problem = f"profile {shown(profile)} is unknown: {did_you_mean(profile, PROFILES)}"
        problems.append(WorkflowProblem(problem, ("profile",)))
        profile = "default"
    defaults = PROFILES[profile]
    overrides = _mapping("limits", limits, problems)
    order = _words("phases", phases, problems)
    wrong = limit_problems(overrides)
    problems += wrong
    own_routes: tuple[RouteRule, ...] = _parsed(lambda: parse_routes(routes), (), problems)
    policies = _policies(new_findings, problems)
    steps = _with_groups(steps, {step.name: step.group for step, _ in steps})
    built = [_step(step, own, defaults, {} if wrong else overrides, problems) for step, own in steps]
    built = with_approvers(built)
    workflow = Workflow(
        name=name,
        steps=tuple(_with_pass_rule(step, built, defaults) for step in built),
        profile=profile,
        phases=order,
        scope=_one_of("scope", scope or defaults.scope, ("upstream", "any"), problems),
        routes=(*own_routes, *defaults.routes),
        limits=with_overrides(defaults.limits, {} if wrong else overrides),
        on_breach=_one_of("on_breach", on_breach, ("manual", "error", "skip", "replan"), problems),
        new_findings=policies,
        judges_in_order=defaults.judges_in_order,
        nearest_phase=defaults.nearest_phase,
        kinds=_kinds(_mapping("kinds", kinds, problems), problems),
        agreement=_one_of("agreement", agreement, ("all", "first", "authority"), problems),
        authority=_words("authority", authority, problems),
        checks=_parsed_by_name("checks", checks, parse_check, problems),
        gates=_parsed_by_name("gates", gates, parse_gate, problems),
        on_protected=_one_of("on_protected", on_protected, ("review", "ask", "refuse"), problems),
        on_worse=_one_of("on_worse", on_worse, ("keep", "rollback"), problems),
        max_steps=whole(max_steps),
        roles=_parsed(lambda: parse_roles(roles), (), problems),
        notify=_parsed(lambda: parse_notify(notify), (), problems),
        expire=_parsed(lambda: parse_expire(expire), None, problems),
    )
    problems += role_problems(workflow.notify, dict(workflow.roles), {each.name: each.for_roles for each in built})
    if type(workflow.max_steps) is not int or workflow.max_steps < 1:
        problem = f"max_steps is {max_steps!r}: expected a whole number, 1 or more"
        raise WorkflowError((*problems, WorkflowProblem(problem, ("max_steps",))))
    try:
        stored = read_back(workflow)
    except WorkflowError as error:
        raise WorkflowError((*problems, *error.problems)) from error
    # Checked before it is read back: NaN, for example, would come back as no value at all.
    problems += problems_of(workflow)
    if problems:
        raise WorkflowError(tuple(problems))
    return stored


def with_approvers(steps: Sequence[Step]) -> list[Step]:
    """The steps, with a judge behind each one whose results a person may have to approve. It waits for the step's own
    judges: a person is not asked about work that they reject. It does not wait for a judge that needs more than the step
    does: what that judge waits for would have to use the result before it is approved."""
    judges = {
        each.name: tuple(
            judge.name for judge in steps if judge.judges == (each.name,) and {*judge.needs} <= {*each.needs}
        )
        for each in steps
        if each.thresholds is not None and not each.judges
    }
    asked = {each.name: each.for_roles for each in steps}
    approvers = (
        Step(APPROVAL.format(name), needs=others, judges=(name,), agents=(HUMAN,), approver=True, for_roles=asked[name])
        for name, others in judges.items()
    )
    return [*steps, *approvers]


def _parsed(parse: Callable[[], T], default: T, problems: list[str]) -> T:
    """The parsed value; if it is wrong, its problems are noted and the default is used."""
    try:
        return parse()
    except WorkflowError as error:
        problems += error.problems
        return default


def _parsed_by_name(field: str, given: object, parse: Callable[[str, object], T], problems: list[str]) -> tuple[T, ...]:
    """The parsed values of a mapping; the problems of those that are wrong are noted."""
    found: list[T] = []
    for name, each in _mapping(field, given, problems).items():
        try:
            found.append(parse(name, each))
        except WorkflowError as error:
            problems += (WorkflowProblem(problem, (field, name)) for problem in error.problems)
    return tuple(found)


def _mapping(field: str, given: object, problems: list[str]) -> dict[str, object]:
    return _parsed(lambda: mapping(field, given), {}, problems)


def _words(field: str, given: object, problems: list[str]) -> tuple[str, ...]:
    return _parsed(lambda: words(field, given), (), problems)


def _one_of(field: str, given: object, known: tuple[T, ...], problems: list[str]) -> T:
    """The given word; if it is unknown, the problem is noted and the first known word is used."""
    for word in known:
        if word == given:
            return word
    problems.append(WorkflowProblem(f"{field} is {shown(given)}: {did_you_mean(given, map(str, known))}", (field,)))
    return known[0]


def _with_groups(
    steps: Sequence[tuple[Step, Mapping[str, object]]], everyone: Mapping[str, str]
) -> list[tuple[Step, Mapping[str, object]]]:
    """The steps with the members of a group instead of its name; `everyone` has the group of each step."""
    groups = groups_of(everyone)
    if not groups:
        return list(steps)
    return [(_with_members(step, groups), own) for step, own in steps]


def _with_members(step: Step, groups: Mapping[str, Sequence[str]]) -> Step:
    return replace(
        step,
        needs=members(groups, step.needs, step.name),
        judges=members(groups, step.judges, step.name),
        needs_groups=tuple(name for name in step.needs if name in groups),
        judges_groups=tuple(name for name in step.judges if name in groups),
    )


def groups_of(steps: Mapping[str, str]) -> dict[str, list[str]]:
    """The members of each group, from the group of each step; the name of a step is not a group."""
    groups: dict[str, list[str]] = {}
    for name, group in steps.items():
        if group and group not in steps:
            groups.setdefault(group, []).append(name)
    return groups


def members(groups: Mapping[str, Sequence[str]], names: Sequence[str], own: str) -> tuple[str, ...]:
    """Names of steps with the members of a group instead of its name; for a member, the group is the other members."""
    found = ([each for each in groups[name] if each != own] if name in groups else [name] for name in names)
    return tuple(dict.fromkeys(each for every in found for each in every))


def _kinds(given: Mapping[str, object], problems: list[str]) -> tuple[tuple[str, Kind], ...]:
    """A workflow's own kinds, by lower-case name: agents may use any capitals."""
    found: dict[str, Kind] = {}
    for name, behaves in given.items():
        word = name.strip().lower()
        if not word:
            problems.append(WorkflowProblem("a kind in kinds has an empty name: give it one", ("kinds",)))
        elif behaves not in list(Kind):
            problem = f"kind {name!r} in kinds behaves as {shown(behaves)}: {did_you_mean(behaves, Kind)}"
            problems.append(WorkflowProblem(problem, ("kinds", name)))
        else:
            found[word] = Kind(str(behaves))
    return tuple(found.items())


def build_added_steps(workflow: Workflow, steps: Sequence[tuple[Step, Mapping[str, object]]]) -> tuple[Step, ...]:
    """Steps that are added to a workflow, with the defaults of its profile, as if they had always been in it. Raises
    WorkflowError."""
    defaults, problems = PROFILES[workflow.profile], list[str]()
    changed = [name for name in LIMIT_NAMES if getattr(workflow.limits, name) != getattr(defaults.limits, name)]
    overrides = {name: getattr(workflow.limits, name) for name in changed}
    groups = {step.name: step.group for step in (*workflow.steps, *(step for step, _ in steps))}
    built = [_step(step, own, defaults, overrides, problems) for step, own in _with_groups(steps, groups)]
    problems += (
        f"step {step.name!r} has approval with `when`: only a step of the workflow file can have that; use `approval: human`"
        for step in built
        if step.thresholds is not None
    )
    if problems:
        raise WorkflowError(tuple(problems))
    everyone = (*built, *workflow.steps)
    return tuple(_with_pass_rule(step, everyone, defaults) for step in built)


def _step(
    step: Step, given: Mapping[str, object], defaults: Profile, overrides: dict[str, object], problems: list[str]
) -> Step:
    own = _mapping(f"step {step.name!r}: limits", given, problems)
    here, who = ("steps", step.name), f"step {step.name!r}"
    wrong = limit_problems(own, f"{who}: ", here)
    wrong += [
        WorkflowProblem(
            f"{who} has limits of its own with {name!r}, which limits the whole run: set it in the limits of the workflow",
            (*here, "limits"),
            here,
        )
        for name in own
        if name in OF_THE_RUN
    ]
    problems += wrong
    if own and not step.judges:
        problem = f"{who} has limits but is not a judge: set them on a judge, or in the limits of the workflow"
        problems.append(WorkflowProblem(problem, (*here, "limits"), here))
    base = defaults.test_limits if step.tests and defaults.test_limits else None
    if own and not wrong:
        return replace(step, limits=with_overrides(with_overrides(base or defaults.limits, overrides), own))
    return replace(step, limits=with_overrides(base, overrides)) if base else step


def _with_pass_rule(step: Step, steps: Sequence[Step], defaults: Profile) -> Step:
    """A review without a pass rule gets that of the profile."""
    if step.passes_if is not None or not step.judges or step.tests or step.approver or not defaults.review_passes_if:
        return step
    name = defaults.review_passes_if
    if name == "asp":
        subject = next((other for other in steps if other.name == step.judges[0]), step)
        early = subject.phase in DEFAULT_PHASES[: DEFAULT_PHASES.index("code")]
        name = "asp-design" if early else "asp-code"
    return replace(step, passes_if=PassRule(name))


def _policies(given: str | Mapping[str, str] | None, problems: list[str]) -> Any:
    usual = dict(Workflow("", ()).new_findings)
    wanted: Mapping[Any, Any] = (
        dict.fromkeys(Severity, given) if isinstance(given, str) else _mapping("new_findings", given, problems)
    )
    for severity, policy in wanted.items():
        if severity not in list(Severity):
            problems.append(f"new_findings names {severity!r}: {did_you_mean(severity, Severity)}")
        elif policy not in ("rework", "defer", "ask"):
            problems.append(
                f"new_findings of {severity} is {shown(policy)}: {did_you_mean(policy, ('rework', 'defer', 'ask'))}"
            )
        else:
            usual[Severity(severity)] = policy
    return tuple(usual.items())


def read_back(workflow: Workflow) -> Workflow:
    """The workflow as a journal returns it: a run keeps its definition, so what cannot be read must not be written."""
    try:
        return msgspec.json.decode(msgspec.json.encode(workflow), type=Workflow)
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError, OverflowError) as error:
        what, _, path = str(error).partition(" - at ")
        field = path.strip("`").removeprefix("$.") or "the definition"
        raise WorkflowError(f"{field} cannot be stored as JSON: {what}; correct its value") from error
