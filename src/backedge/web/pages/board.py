"""The board: the stories of the project by their status. Nothing is dragged, because a status follows from what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backedge.config import find, load
from backedge.config.problems import WorkflowFileError
from backedge.core.errors import BackedgeError
from backedge.stories.backlog import read_backlog
from backedge.stories.entry import Entry
from backedge.stories.files import has_stories
from backedge.stories.rules.assessor import STATUSES, Action, action_for
from backedge.stories.rules.story_view import StoryView
from backedge.web.access.caller import Caller
from backedge.web.desk import Desk
from backedge.web.pages.rendering import rendered


class Card:
    """One story of the board."""

    def __init__(self, entry: Entry) -> None:
        self.entry, self.story, self.view = entry, entry.story, entry.view
        self.action: Action | None = action_for(entry.story)

    @property
    def status(self) -> str:
        return "blocked" if self.story.trouble else self.story.status

    @property
    def why(self) -> str:
        """Why it does not go on, or what is left."""
        story, view = self.story, self.view
        left = view.diagnostic if view is not None and story.status == "done" else ""
        return story.trouble or story.misplanned or story.blocked_reason or story.waiting or left

    @property
    def rounds(self) -> str:
        """How often it was refined, and how often it may be."""
        view: StoryView | None = self.view
        if view is None or not (view.refinement_count or view.status == "blocked"):
            return ""
        if view.status == "done":
            return f"{view.refinement_count} refinements"
        most = "no limit" if view.max_refinements is None else str(view.max_refinements)
        return f"refinement {view.refinement_count} of {most}"


def board_page(columns: Mapping[str, Sequence[Card]] | None, trouble: str = "", caller: Caller | None = None) -> str:
    """The board; without columns it says why there is none."""
    return rendered("board.html", columns=columns, trouble=trouble, caller=caller)


async def board(request: Request) -> Response:
    columns, trouble = await columns_of(request.app.state.desk)
    return HTMLResponse(board_page(columns, trouble, request.state.caller))


async def part(request: Request) -> Response:
    columns, trouble = await columns_of(request.app.state.desk)
    return HTMLResponse(rendered("board_part.html", columns=columns, trouble=trouble))


async def columns_of(desk: Desk) -> tuple[dict[str, list[Card]] | None, str]:
    """The stories by status, the most urgent first; None and a reason if the project has none."""
    try:
        source = load(find(desk.project.folder))
        if not has_stories(source):
            return None, ""
        backlog = await read_backlog(source, desk.project, desk.engine)
    except (WorkflowFileError, BackedgeError, OSError) as error:
        return None, str(error)
    found: dict[str, list[Card]] = {status: [] for status in STATUSES}
    for entry in sorted(backlog.entries, key=lambda each: (each.story.priority, each.id)):
        card = Card(entry)
        found[card.status].append(card)
    return found, ""
