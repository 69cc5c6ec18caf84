"""From what a user writes to the definition that a run keeps: profiles applied, defaults filled in, all problems named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backedge.core.errors import WorkflowError
from backedge.core.limits import OF_THE_RUN, Limits, limit_problems, with_overrides
from backedge.core.model import Severity
from backedge.core.profiles import PROFILES, Profile, RouteRule
from backedge.core.value import replace
from backedge.core.workflow import DEFAULT_PHASES, PASS_RULES, PassRule, Step, Workflow, nearest, problems_of


def defined(
    name: str,
    steps: Sequence[tuple[Step, Mapping[str, object]]],
    *,
    profile: str = "default",
    limits: Mapping[str, object] | None = None,
    phases: Sequence[str] = (),
    scope: str | None = None,
    routes: Sequence[RouteRule] = (),
    on_breach: str = "manual",
    new_findings: str | Mapping[str, str] | None = None,
) -> Workflow:
    """A valid workflow. `steps` come with their own limits as the user wrote them. Raises WorkflowError with all that
    is wrong."""
    problems: list[str] = []
    habits = PROFILES.get(profile)
    if habits is None:
        problems.append(f"profile {profile!r} is unknown: {nearest(profile, PROFILES)}")
        habits = PROFILES["default"]
    for word, given, known in (
        ("on_breach", on_breach, ("manual", "error", "skip")),
        ("scope", scope or habits.scope, ("upstream", "any")),
    ):
        if given not in known:
            problems.append(f"{word} is {given!r}: {nearest(given, known)}")
    overrides = dict(limits or {})
    wrong = limit_problems(overrides)
    problems += wrong
    policies = _policies(new_findings, problems)
    built = [_step(step, own, habits, {} if wrong else overrides, problems) for step, own in steps]
    workflow = Workflow(
        name=name,
        steps=tuple(_with_pass_rule(step, built, habits) for step in built),
        profile=profile if profile in PROFILES else "default",
        phases=tuple(phases),
        scope=scope or habits.scope,  # type: ignore[arg-type]
        routes=(*routes, *habits.routes),
        limits=with_overrides(habits.limits, {} if wrong else overrides),
        on_breach=on_breach,  # type: ignore[arg-type]
        new_findings=policies,
        judges_in_order=habits.judges_in_order,
        nearest_phase=habits.nearest_phase,
    )
    problems += problems_of(workflow)
    if problems:
        raise WorkflowError(tuple(problems))
    return workflow


def _step(
    step: Step, own: Mapping[str, object], habits: Profile, overrides: Mapping[str, object], problems: list[str]
) -> Step:
    wrong = [f"step {step.name!r}: {problem}" for problem in limit_problems(dict(own))]
    wrong += [
        f"step {step.name!r} has limits of its own with {name!r}, which is of the whole run: set it in the workflow's limits"
        for name in own
        if name in OF_THE_RUN
    ]
    problems += wrong
    if own and not step.judges:
        problems.append(f"step {step.name!r} has limits of its own: only judges can, as loops are theirs")
    base = habits.test_limits if step.tests and habits.test_limits else None
    if own and not wrong:
        return replace(step, limits=with_overrides(with_overrides(base or habits.limits, dict(overrides)), dict(own)))
    return replace(step, limits=with_overrides(base, dict(overrides))) if base else step


def _with_pass_rule(step: Step, steps: Sequence[Step], habits: Profile) -> Step:
    """The pass rule of a review that names none, as the profile has it."""
    if step.passes_if is not None or not step.judges or step.tests or not habits.review_passes_if:
        return step
    name = habits.review_passes_if
    if name == "asp":
        subject = next((other for other in steps if other.name == step.judges[0]), step)
        early = subject.phase in DEFAULT_PHASES[: DEFAULT_PHASES.index("code")]
        name = "asp-design" if early else "asp-code"
    return replace(step, passes_if=PassRule(name))


def pass_rule(rule: str | Mapping[str, int] | None) -> PassRule | None:
    """A pass rule as a user writes it: a name, or how many findings of each severity still pass."""
    if rule is None:
        return None
    if isinstance(rule, str):
        return PassRule(name=rule)
    if not rule:
        raise WorkflowError(f"passes_if is empty: name one of {', '.join(PASS_RULES)}, or counts per severity")
    return PassRule(at_most=tuple(rule.items()))


def _policies(given: str | Mapping[str, str] | None, problems: list[str]) -> Any:
    usual = dict(Workflow("", ()).new_findings)
    if given is None:
        return tuple(usual.items())
    wanted = dict.fromkeys(Severity, given) if isinstance(given, str) else dict(given)
    for severity, policy in wanted.items():
        if severity not in list(Severity):
            problems.append(f"new_findings names {severity!r}: {nearest(severity, Severity)}")
        elif policy not in ("rework", "defer", "ask"):
            problems.append(f"new_findings of {severity} is {policy!r}: {nearest(policy, ('rework', 'defer', 'ask'))}")
        else:
            usual[Severity(severity)] = policy  # type: ignore[assignment]
    return tuple(usual.items())


__all__ = ["Limits", "defined", "pass_rule"]
