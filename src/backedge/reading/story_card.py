"""A story on the board, as `board --json` prints it."""

from __future__ import annotations

from typing import Any

from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import action_for


def story_card(entry: Entry) -> dict[str, Any]:
    story, view, summary = entry.story, entry.view, entry.summary
    return {
        "story": entry.id,
        "title": entry.title,
        "file": entry.name,
        "status": "blocked" if story.trouble else story.status,
        "priority": story.priority,
        "rounds": story.refinement_count,
        "max_rounds": view.max_refinements if view else None,
        "waiting": story.waiting or None,
        "blocked_reason": story.trouble or story.blocked_reason or None,
        "running": list(view.running) if view else [],
        "run": entry.run or None,
        "labels": list(summary.labels) if summary else [],
        "epic": (summary.epic or None) if summary else None,
        "dependencies": list(summary.dependencies) if summary else [],
        "findings": list(view.findings) if view else [],
        "next": next_action.kind if (next_action := action_for(story)) else None,
    }
