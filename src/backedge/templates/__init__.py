"""Workflow files to start from, and scripts that play the agents until you have real ones.

A template is a workflow file with a few words to fill in:

    @name@          the name of the workflow
    @agent plan@    the agent of a step: an agent CLI, or the script .backedge-agents/plan
    @entry plan@    the same for an entry of `agents`
    @script change@ that script, whatever agent CLI there is
    @test@          the tests of the project, and how their report is read
    @lint code@     a step for each linter and type checker of the project, which judges `code`
    @linters@       the names of those steps
    #? word         the line is used only in this case: cli, scripts, lint, test
"""

from backedge.templates.found import Found, found_in
from backedge.templates.rendering import ABOUT, AGENTS, PATTERNS, TEMPLATES, rendered

__all__ = ["ABOUT", "AGENTS", "PATTERNS", "TEMPLATES", "Found", "found_in", "rendered"]
