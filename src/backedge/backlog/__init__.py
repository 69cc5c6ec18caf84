"""The stories of a project: files that people write, each with the run that works on it."""

from backedge.backlog.entry import Entry
from backedge.backlog.reading import Backlog, backlog_of, has_stories, is_story, story_folder
from backedge.backlog.updating import updated

__all__ = ["Backlog", "Entry", "backlog_of", "has_stories", "is_story", "story_folder", "updated"]
