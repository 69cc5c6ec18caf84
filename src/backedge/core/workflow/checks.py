"""Judges that the engine runs itself: checks compare values in artifacts, gates compare a metric with a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args

from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN, Option, Severity, severity_of
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json, Value
from backedge.core.workflow.parsing import mapping, shown, words
from backedge.core.workflow.values import Reference, parse_amount, parse_reference

Rule = Literal["equal", "subset", "superset", "compatible"]
Agreed = Literal["consensus", "authority"]
Bound = Literal["at_least", "at_most", "equals", "zero"]
RULES: tuple[Rule, ...] = get_args(Rule)
RESOLUTIONS: tuple[Agreed, ...] = get_args(Agreed)
BOUNDS: tuple[Bound, ...] = get_args(Bound)
W = TypeVar("W", bound=str)


class Check(Value, frozen=True):
    """Values in artifacts of different steps that must agree."""

    name: str
    compare: tuple[str, ...]
    """References, two or more."""
    rule: Rule = "equal"
    table: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For `compatible`: the values that are compatible with each value of the first reference; a value that is not listed
    is compatible with all."""
    command: bool = False
    """For `compatible`: a command or a function compares the values."""
    resolve: Agreed = "consensus"
    authority: tuple[str, ...] = ()
    """The steps in order of authority: the position of the first one that has a position wins."""
    severity: Severity = Severity.HIGH
    blocking: bool = False
    options: tuple[Option, ...] = ()
    """Ways to end a disagreement: the steps that disagree are told about them, and a person can choose one."""

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(map(parse_reference, self.compare))

    @property
    def producers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.step for each in self.references))


class Gate(Value, frozen=True):
    """A metric that must reach a threshold before anything that needs its subject starts."""

    name: str
    metric: str = ""
    """A reference; empty if a report file has it."""
    report: str = ""
    path: str = ""
    """Where the metric is in the report, as a JSON pointer."""
    bound: Bound = "at_least"
    threshold: float | int | str | bool | None = None
    causes: str = ""
    """A reference to a list that names root causes."""
    requests: tuple[tuple[str, str], ...] = ()
    """The request to each target."""
    needs: tuple[str, ...] = ()
    """Steps that must be done before it is measured, in addition to those that it refers to."""
    severity: Severity = Severity.HIGH
    blocking: bool = False

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(parse_reference(each) for each in (self.metric, self.causes) if each)

    @property
    def producers(self) -> tuple[str, ...]:
        referred = dict.fromkeys((*(each.step for each in self.references), *self.needs))
        return tuple(referred) or tuple(name for name in dict(self.requests) if name != HUMAN)

    @property
    def measures(self) -> str:
        """What is measured, as users write it."""
        return self.metric or (f"{self.report}:{self.path}" if self.path else self.report)

    @property
    def expected(self) -> str:
        """The threshold in words. Text that looks like a number is put in quotes."""
        words = {"at_least": "at least ", "at_most": "at most ", "equals": "", "zero": "zero"}[self.bound]
        if self.bound == "equals" and isinstance(self.threshold, str) and parse_amount(self.threshold) is not None:
            return f'"{self.threshold}"'
        return words if self.bound == "zero" else f"{words}{self.threshold}"


EngineJudge = Check | Gate


def needs_agent(measure: EngineJudge) -> bool:
    """Whether measuring needs an agent: to read a report file, or to compare by a command or function."""
    return measure.command if isinstance(measure, Check) else bool(measure.report)


_CHECK_KEYS = ("compare", "rule", "compatible", "resolve", "authority", "severity", "options")
_OPTION_KEYS = ("option", "effort", "impact", "rework", "accept")
_GATE_KEYS = ("metric", *BOUNDS, "causes", "requests", "needs", "severity")


def parse_check(name: str, given: object) -> Check:
    """A check as a user writes it. Raises WorkflowError."""

    fields = _known(mapping(f"check {name!r}", given), f"check {name!r}", _CHECK_KEYS)
    how = fields.get("compatible")
    rule = _one_of(f"check {name!r} has rule", fields.get("rule", "compatible" if how is not None else "equal"), RULES)
    resolve = _one_of(f"check {name!r} has resolve", fields.get("resolve", "consensus"), RESOLUTIONS)
    if (rule == "compatible") is not (how is not None):
        raise WorkflowError(
            f"check {name!r} has rule {rule!r}: give `compatible` a table or a command if, and only if, the rule is 'compatible'"
        )
    given_table = how["table"] if isinstance(how, Mapping) and "table" in how else None
    table = mapping(f"check {name!r}: table", given_table)
    severity, blocking = _severity(f"check {name!r}", fields.get("severity", "high"))
    return Check(
        name,
        words(f"check {name!r}: compare", fields.get("compare", ())),
        rule,
        tuple((value, words(f"check {name!r}: table", others)) for value, others in table.items()),
        how is not None and given_table is None,
        resolve,
        words(f"check {name!r}: authority", fields.get("authority", ())),
        severity,
        blocking,
        _options(f"check {name!r}: options", fields.get("options", ())),
    )


def _options(where: str, given: object) -> tuple[Option, ...]:
    """Options as a user writes them: a text each, or a mapping. Raises WorkflowError."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise WorkflowError(f"{where} is {shown(given)}: expected a list of options")
    found = tuple(_option(where, {"option": each} if isinstance(each, str) else each) for each in given)
    for index, each in enumerate(found):
        if not each.option.strip():
            raise WorkflowError(f"{where} has an option without text: describe what could be done")
        if any(each.option.strip().casefold() == other.option.strip().casefold() for other in found[:index]):
            raise WorkflowError(f"{where} has {each.option!r} twice: give each option its own text")
        if each.accept and each.rework:
            raise WorkflowError(f"{where}: {each.option!r} both accepts and asks for rework: split it into two options")
    return found


def _option(where: str, given: object) -> Option:
    fields = _known(mapping(where, given), where, _OPTION_KEYS)
    accept = fields.get("accept", False)
    if not isinstance(accept, bool):
        raise WorkflowError(f"{where} has accept {shown(accept)}: expected true or false")
    text, effort, impact = (str(fields.get(key, "")) for key in ("option", "effort", "impact"))
    return Option(text, effort, impact, words(f"{where}: rework", fields.get("rework", ())), accept)


def parse_gate(name: str, given: object) -> Gate:
    """A gate as a user writes it. Raises WorkflowError."""

    fields = _known(mapping(f"gate {name!r}", given), f"gate {name!r}", _GATE_KEYS)
    bounds = [word for word in BOUNDS if word in fields]
    if len(bounds) != 1:
        got = ", ".join(bounds) or "no threshold"
        raise WorkflowError(f"gate {name!r} has {got}: give one of {', '.join(BOUNDS)}")
    metric = fields.get("metric", "")
    report = mapping(f"gate {name!r}: metric", metric) if not isinstance(metric, str) else {}
    _known(report, f"gate {name!r}: metric", ("report", "path"))
    severity, blocking = _severity(f"gate {name!r}", fields.get("severity", "high"))
    threshold: Any = fields[bounds[0]]
    if bounds == ["zero"] and threshold is not True:
        raise WorkflowError(
            f"gate {name!r} has zero {threshold!r}: expected true; write `zero: true`, or use another threshold"
        )
    return Gate(
        name,
        metric if isinstance(metric, str) else "",
        str(report.get("report", "")),
        str(report.get("path", "")),
        bounds[0],
        threshold if bounds[0] != "zero" else None,
        str(fields.get("causes", "")),
        tuple(
            (target, str(words_))
            for target, words_ in mapping(f"gate {name!r}: requests", fields.get("requests")).items()
        ),
        words(f"gate {name!r}: needs", fields.get("needs", ())),
        severity,
        blocking,
    )


def _known(fields: dict[str, Json], where: str, keys: tuple[str, ...]) -> dict[str, Json]:
    for key in fields:
        if key not in keys:
            raise WorkflowError(f"{where} has the key {key!r}: {did_you_mean(key, keys)}")
    return fields


def _one_of(where: str, word: Json, known: tuple[W, ...]) -> W:
    if word not in known:
        raise WorkflowError(f"{where} {word!r}: {did_you_mean(str(word), known)}")
    return known[known.index(word)]


def _severity(where: str, word: object) -> tuple[Severity, bool]:
    try:
        return severity_of(str(word))
    except ValueError as error:
        raise WorkflowError(f"{where}: {error}") from error
