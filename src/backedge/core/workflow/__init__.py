"""The definition of a workflow: what users write, checked and compiled into a graph."""
