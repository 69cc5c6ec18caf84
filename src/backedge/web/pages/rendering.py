"""Renders templates. Everything that agents wrote is escaped text, without what a terminal would interpret."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from backedge.analytics.sentence import breach_words, limit_amount, limit_words
from backedge.core.text import amount, clean, counted
from backedge.core.value import Json

STATES = {
    "verified": "ok",
    "done": "ok",
    "resolved": "ok",
    "fixed": "ok",
    "accepted": "warn",
    "paused": "warn",
    "deferred": "warn",
    "unconfirmed": "warn",
    "live": "accent",
    "running": "accent",
    "broken": "bad",
    "failing": "bad",
    "fail": "bad",
    "limited": "warn",
    "stale": "warn",
    "pass": "ok",
    "conditional": "ok",
    "needs_improvement": "warn",
    "in-progress": "accent",
    "asks you": "asks",
    "waiting": "asks",
    "escalating": "asks",
    "failed": "bad",
    "damaged": "bad",
    "no story": "bad",
    "not_fixed": "bad",
    "open": "bad",
    "regressed": "bad",
    "blocked": "bad",
    "critical": "bad",
    "high": "warn",
}
"""The colour of a state."""


def shown(value: object) -> object:
    """A value of a template as it is printed. Markup is ours, other text may be an agent's."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def ago(seconds: float) -> str:
    """A duration in the largest unit that fits: 45 s, 12 min, 3 h, 2 days."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else counted(round(seconds / 86400), "day")


def money(dollars: float) -> str:
    """A price: $0.21, and $0.003 where cents would hide it."""
    return f"${dollars:.3g}" if 0 < dollars < 0.01 else f"${dollars:.2f}"


def moment(at: float) -> str:
    """A time as machines read it, for `<time datetime>`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def since(text: str, now: float) -> str:
    """How long ago a time was that machines read."""
    return ago(now - datetime.fromisoformat(text).timestamp())


def clock(at: float) -> str:
    """A time as people read it: 18 Nov 20:51 UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%-d %b %H:%M UTC")


def as_text(value: Json) -> str:
    """Text as it is, and everything else as JSON on several lines."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def tone(state: object) -> str:
    """The colour of a state, as a class of the style sheet."""
    return STATES.get(str(state), "plain")


def words(name: object) -> str:
    """A name of the engine in words: review_rejection becomes review rejection."""
    return str(name).replace("_", " ")


def line_kind(line: str) -> str:
    """The class of one line of a unified diff."""
    if line.startswith(("+++", "---", "diff ", "index ", "@@")):
        return "head"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")


_TEMPLATES = Environment(
    loader=PackageLoader("backedge.web", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=shown,
)
_TEMPLATES.filters |= {
    "ago": ago,
    "money": money,
    "moment": moment,
    "clock": clock,
    "since": since,
    "as_text": as_text,
    "tone": tone,
    "words": words,
    "breach_words": breach_words,
    "limit_words": limit_words,
    "limit_amount": lambda value, limit: limit_amount(limit, value),
    "amount": amount,
    "counted": counted,
    "line_kind": line_kind,
}


def rendered(template: str, **values: Any) -> str:
    """A template, filled in."""
    return _TEMPLATES.get_template(template).render(now=time.time(), **values)


def query(values: Mapping[str, str]) -> str:
    """The part of an address after the question mark, without what is empty."""
    from urllib.parse import urlencode

    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""
