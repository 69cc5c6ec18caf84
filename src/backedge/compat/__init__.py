"""The file formats of the systems that backedge replaces or works beside: reading and writing them, without effects.

`read(format, text)` gives the contents of a file in the words of this package. The writers take the same contents, so
that what was imported can be exported in any format.
"""

from backedge.compat.contents import Contents, Defect, LoopRecord
from backedge.compat.formats import FORMATS, Format, format_of, read

__all__ = ["FORMATS", "Contents", "Defect", "Format", "LoopRecord", "format_of", "read"]
