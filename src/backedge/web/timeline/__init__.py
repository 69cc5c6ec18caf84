"""The timeline of a run as SVG: a bar for each attempt, over the time at work. Waiting is a labelled break: otherwise one
night of waiting would squeeze everything else.

    bars.py     the attempts of a run, and what caused them, folded from the events
    axis.py     time at work, with its breaks
    draw.py     the timeline as SVG
"""
