"""The graph of a run with its back edges, as SVG. We lay it out ourselves: phases are bands, and loops never enter the
layout."""
