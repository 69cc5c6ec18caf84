"""Renders templates. Everything that agents wrote is escaped text."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_TEMPLATES = Environment(
    loader=PackageLoader("backedge.web", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def rendered(template: str, **values: Any) -> str:
    """A template, filled in."""
    return _TEMPLATES.get_template(template).render(**values)
