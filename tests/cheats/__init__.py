"""Dishonest ways to reach `verified`, and honest work that must still reach it, each tried with the installed command.

`make cheats` runs all cases and prints a table; `make cheats ARGS="git lint"` runs those with these words in their name
or family, `ARGS="--list"` lists them, and `ARGS="--keep NAME"` keeps the folder of a case. `make slow` runs all
controls and a quarter of the cheats as tests.

A case is data: a repository with a real defect, a workflow, the scripts that play its agents, and what must come of it.
To add one, add it to a file in `cheats/` or `controls/`. A cheat never fixes the defect. At the end, `truth` looks at the
delivered files out of the agent's reach: a cheat that fixed the defect, a workflow that is refused and a command that
hangs are broken cases, never caught ones.

- caught: the run does not end verified with exit code 0. To wait for a person, to fail and to be accepted all count.
- visible: it ends verified, but `show --json` or the reviewer's briefing names the cheat.
- neither: it ends verified and nothing shows it. The case says why that cannot be helped.
- a control passes if it ends verified or, without a reviewer, asks one question whose approval ends it verified.

`naive.py` is a judge without any defence. `test_naive.py` proves that it believes every cheat, so that each one that is
caught says something about backedge.
"""
