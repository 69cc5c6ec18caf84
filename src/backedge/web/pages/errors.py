"""What a browser is shown when there is no page: the same sentence as programs get, in the frame of all pages."""

from __future__ import annotations

from backedge.web.pages.rendering import rendered

TITLES = {
    401: "You are not signed in",
    403: "You may not see this",
    404: "There is no such page",
    405: "This address is not for pages",
    421: "This server has another name",
    500: "This should not have happened",
    503: "The journal cannot be read",
}
"""A heading by status."""
HELP = {
    403: "Ask the person who started the server for a token with another role: backedge serve token add",
    500: "The server has printed the details. Your runs are not affected.",
    503: "Is the disk full, or the file locked? The runs continue where the journal can be written.",
}


def error_page(status: int, detail: str, name: str = "", nearest: str = "") -> str:
    """The page for an error: what went wrong, and what to do."""
    damaged = name in ("JournalError", "JournalDamaged")
    title = "This run is damaged" if damaged else TITLES.get(status, "That did not work")
    advice = "backedge audit verify names the first event that is wrong." if damaged else HELP.get(status, "")
    return rendered("error.html", status=status, title=title, detail=detail, help=advice, nearest=nearest, caller=None)
