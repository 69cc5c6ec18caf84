"""Stories: Markdown files that people write, each worked on by a run of its own.

`rules` is pure: what to do next, how front matter is read and changed, and the state of a story, folded from the events
of its run. The rest is the shell around it: files, the backlog, worktrees, and the work itself.
"""
