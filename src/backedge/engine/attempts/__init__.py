"""One attempt from its briefing to its report.

The stages, and where they are:

1. `executor.task_for` (brief): a `Task`, all that the attempt needs, from the state of the run.
2. `executor.LocalExecutor` (call, translate, report): the agent does the work, and its result becomes an `AttemptReport`.
3. `supervision`: starts and stops the above, watches its time and its slot, and submits the report exactly once.
4. `engine/facts.py` (trace): adds the facts about outputs that the rules need, when the report is decided.

`live_attempt` is what the agent can use while it works. Steps 1 and 2 need no live run, so that another machine can do
them.
"""
