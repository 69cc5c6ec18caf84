"""What a graph draws, without positions: nodes in bands, what they need, whom they judge, and the loops between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DrawnStep:
    """A step, a judge, or a group of steps that is shown as one."""

    name: str
    band: int
    """The index of its phase."""
    needs: tuple[str, ...] = ()
    hangs_at: str = ""
    """For a judge: the node below which it hangs."""
    judges: tuple[str, ...] = ()
    """For a judge: everything that it judges."""
    state: str = "waiting"
    label: str = ""
    note: str = ""
    """The second line of a box, or the end of a pill."""
    told: str = ""
    """Everything in words, for the title and for screen readers."""
    href: str = ""
    members: int = 0
    """How many steps it stands for, if it is a group."""


@dataclass(frozen=True)
class BackEdge:
    """Feedback from one node to another: one loop, or several between the same two."""

    source: str
    """A node, or empty for a person."""
    target: str
    loops: tuple[str, ...]
    """The loops, the one that matters most first."""
    rounds: int
    state: str
    """asks, open or closed."""
    told: str = ""
    href: str = ""

    @property
    def label(self) -> str:
        more = f" +{len(self.loops) - 1}" if len(self.loops) > 1 else ""
        return f"{self.loops[0]}{more} ↩ {self.rounds}{' asks you' if self.state == 'asks' else ''}"


@dataclass(frozen=True)
class GraphModel:
    """A whole graph. Nodes come in an order in which each follows those that it needs."""

    bands: tuple[str, ...]
    nodes: tuple[DrawnStep, ...]
    loops: tuple[BackEdge, ...] = ()
    left_out: int = 0
    """How many back edges are not drawn, because there are too many."""
