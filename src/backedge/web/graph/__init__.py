"""The graph of a run with its back edges, as SVG. We lay it out ourselves: phases are bands, and loops never enter the
layout.

    model.py    what is drawn: nodes, needs and back edges, without positions
    columns.py  which column a node has, and where long edges pass
    order.py    the order in a column, by barycentre sweeps, and the heights
    layout.py   positions of bands, boxes, edges and loops
    draw.py     a layout as SVG
    picture.py  a run as a model
"""
