"""The async shell around the rules: load → decide → append → perform.

From top to bottom, and no module imports one above it:

- `engine`: the runs of one process. It starts, resumes and closes them, and records commands for runs of other
  processes.
- `live_run`: one run that this process executes. Every change is a command: it is decided by the rules, appended to the
  journal, and then performed. What cannot be recorded is not performed.
- `attempts/`: one attempt, from its briefing to its report. The supervisor makes sure that there is exactly one report.
- `agents`, `facts`, `slots`, `subscribers`, `starting`: what runs and attempts use.
- `store` and `codec`: the journal as events and values. `protocol`: what agents report.

A module that needs something of a module above it names that as a Protocol (`HostRun`, `HostEngine`, `RunEngine`).
"""
