"""Measures immutable values: a frozen dataclass with slots and a frozen msgspec Struct, with eight fields each.

    python tools/measure_values.py

Prints microseconds per creation and per changed copy, the best of five runs. See docs/decisions/0001.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from timeit import repeat

import msgspec
from msgspec.structs import replace

TIMES, REPEATS = 100_000, 5


@dataclasses.dataclass(frozen=True, slots=True)
class Data:
    a: int
    b: int
    c: str
    d: str
    e: float
    f: tuple[str, ...]
    g: bool
    h: str | None


class Struct(msgspec.Struct, frozen=True):
    a: int
    b: int
    c: str
    d: str
    e: float
    f: tuple[str, ...]
    g: bool
    h: str | None


def microseconds(work: Callable[[], object]) -> float:
    return min(repeat(work, number=TIMES, repeat=REPEATS)) / TIMES * 1e6


def main() -> None:
    data, struct = Data(1, 2, "c", "d", 0.5, ("f",), True, None), Struct(1, 2, "c", "d", 0.5, ("f",), True, None)
    print(f"{'microseconds':14}{'dataclass':>12}{'Struct':>12}")
    for name, ours, theirs in (
        (
            "create",
            lambda: Data(1, 2, "c", "d", 0.5, ("f",), True, None),
            lambda: Struct(1, 2, "c", "d", 0.5, ("f",), True, None),
        ),
        ("replace", lambda: dataclasses.replace(data, b=3), lambda: replace(struct, b=3)),
    ):
        print(f"{name:14}{microseconds(ours):12.2f}{microseconds(theirs):12.2f}")


if __name__ == "__main__":
    main()
