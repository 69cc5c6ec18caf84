"""Story files: Markdown with front matter, read and changed without touching what people own."""

from backedge.adapters.stories.front_matter import FrontMatter, StoryFileError, parsed
from backedge.adapters.stories.glance import Glance, glance
from backedge.adapters.stories.writing import merged, rewritten

__all__ = ["FrontMatter", "Glance", "StoryFileError", "glance", "merged", "parsed", "rewritten"]
