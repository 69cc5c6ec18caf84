"""One attempt from its briefing to its report.

The steps of the way, and where they are:

1. `pipeline.task_for` (brief): a `Task`, all that the attempt needs, from the state of the run.
2. `pipeline.LocalExecutor` (call, translate, report): the agent does the work; what it returns becomes an `AttemptReport`.
3. `supervision`: starts and stops the above, watches its time and its slot, and submits the report exactly once.
4. `engine/facts.py` (trace): adds what the rules must know about outputs, when the report is decided.

`live_attempt` is what the agent can do meanwhile. Steps 1 and 2 need no live run, so that another machine can do them.
"""
