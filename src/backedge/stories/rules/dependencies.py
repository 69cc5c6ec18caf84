"""Dependencies between stories: which ones have to wait, and which can never start because of a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backedge.core.suggestions import closest
from backedge.core.value import Value
from backedge.stories.rules.assessor import Story


class Dependent(Value, frozen=True):
    """A story with the ids of the stories that must be done first."""

    story: Story
    needs: tuple[str, ...]
    skipped: bool = False
    """It has reached a limit, and the project skips such stories."""


class Hold(Value, frozen=True):
    """Why a story cannot start yet."""

    reason: str
    mistake: bool = False
    """Only a person can correct it."""
    skipped: bool = False
    """What it waits for is skipped, so it is skipped too."""


def holds(stories: Iterable[Dependent]) -> dict[str, Hold]:
    """The stories that their dependencies hold, by id. Stories that are done are held by nothing."""
    known = {each.story.id.casefold(): each for each in stories}
    open_needs = {
        key: tuple(need.casefold() for need in each.needs if not _done(known.get(need.casefold())))
        for key, each in known.items()
        if each.needs and each.story.status != "done"
    }
    tangled, skips = _tangled(open_needs), any(each.skipped for each in known.values())
    found: dict[str, Hold] = {}
    for key, needs in open_needs.items():
        each = known[key]
        missing = [need for need in each.needs if need.casefold() not in known]
        if missing:
            found[each.story.id] = Hold(_missing_words(missing[0], known), mistake=True)
        elif key in tangled and (circle := _circle(key, open_needs)):
            names = " → ".join(known[name].story.id for name in circle)
            found[each.story.id] = Hold(f"dependencies form a circle: {names}: remove one of them", mistake=True)
        elif needs:
            waits = ", ".join(_state(known[need]) for need in needs)
            found[each.story.id] = Hold(f"waits for {waits}", skipped=skips and _skipped(key, open_needs, known))
    return found


def _done(each: Dependent | None) -> bool:
    return each is not None and each.story.status == "done" and not each.story.trouble


def _missing_words(name: str, known: Mapping[str, Dependent]) -> str:
    meant = closest(name.casefold(), known)
    hint = f"did you mean {known[meant].story.id!r}?" if meant else "add it, or remove the dependency"
    return f"dependencies: there is no story {name!r}: {hint}"


def _state(each: Dependent) -> str:
    story = each.story
    if story.trouble:
        return f"{story.id}, which cannot be worked on"
    if story.status == "blocked":
        return (
            f"{story.id}, which is blocked: {story.blocked_reason}" if story.blocked_reason else f"{story.id} (blocked)"
        )
    return f"{story.id} ({story.status})"


def _tangled(needs: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The stories that are on a circle or wait for one: those that are left after all others are done in turn."""
    wanted_by: dict[str, list[str]] = {}
    left = {key: len(each) for key, each in needs.items()}
    for key, each in needs.items():
        for need in each:
            wanted_by.setdefault(need, []).append(key)
    queue = [need for need in wanted_by if not left.get(need)]
    for done in queue:
        for key in wanted_by.get(done, ()):
            left[key] -= 1
            if not left[key]:
                queue.append(key)
    return {key for key, count in left.items() if count}


def _circle(start: str, needs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The shortest way from a story back to itself; empty if there is none."""
    came: dict[str, str] = {}
    queue = [start]
    for each in queue:
        for need in needs.get(each, ()):
            if need == start:
                way = [each]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return [*reversed(way), start]
            if need not in came:
                came[need] = each
                queue.append(need)
    return []


def _skipped(key: str, needs: Mapping[str, tuple[str, ...]], known: Mapping[str, Dependent]) -> bool:
    """Whether a skipped story is among those it waits for, directly or not. There are no circles here."""
    seen, queue = {key}, [key]
    for each in queue:
        for need in needs.get(each, ()):
            if need in known and known[need].skipped:
                return True
            if need not in seen:
                seen.add(need)
                queue.append(need)
    return False
