"""Reporters for test runners that write no report with enough identity. They run inside the test runner of a project, as
files: nothing of backedge is imported there, so backedge need not be installed in the environment of the project."""
