"""Workflow files to start from, and scripts that play the agents until you have real ones.

A template is a workflow file with a few words to fill in:

    @name@          the name of the workflow
    @agent plan@    the agent of a step: an agent CLI, or the script agents/plan.py
    @entry plan@    the same for an entry of `agents`
    @test@, @lint@  the tools of the project, and how their report is read
    #? word         the line is used only in this case: cli, scripts, lint, test
"""

from backedge.templates.found import Found, found_in
from backedge.templates.rendering import PATTERNS, TEMPLATES, rendered

__all__ = ["PATTERNS", "TEMPLATES", "Found", "found_in", "rendered"]
