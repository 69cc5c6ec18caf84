"""The rules of backedge, as pure functions over values. This page is the theory of operation.

A *run* is a list of events, and nothing else is true. Everything that you can ask about a run is computed from its
events: where it stands, what has to happen next, what an agent is given, what a person has to decide. Nothing in this
package reads a clock, a file or a random number; time and ids are arguments. So every rule can be tested by calling it,
and a crash at any moment loses nothing that was recorded.

Three functions carry the whole package:

    decide(state, command, now)   -> events     what follows from a command, or IllegalCommand     (decide.py)
    evolve(state, event)          -> state      write down what an event says                      (state/evolve.py)
    pending(state, now)           -> effects    what the shell has to do now                       (scheduling/pending.py)

The shell, `backedge.engine`, is a loop around them: load the state, decide, append the events, do what they say. After a
crash `pending(replay(events))` is the whole recovery. There is no flag to repair, because "running" is not a flag: an
attempt runs if an event says that it started and no event says that it ended.

**Rules live in `decide`; `evolve` only keeps the books.** Whatever a rule decides is written into the event: which
findings an attempt was given, what it consumed, which limits the run has. A journal therefore replays to the same state
after any change of the rules. `state/` may not import a rule, import-linter checks that, and recorded journals of every
released version replay in tests/histories.

**One command, one transaction.** `decide` applies the command to a `Transaction` (transaction.py), which collects events
and folds each one at once, so that the next rule sees its effect. Then `settle` (scheduling/settle.py) lets everything
happen that became possible: results are delivered, verified loops close, overdue questions escalate, steps start, the
run ends. All events of one command are appended together, or none. Between two of them the state is not a legal one.

**How a defect travels.** A judge's attempt ends with a verdict (findings/verdicts.py reads it: which findings are new,
seen again, fixed). Each finding has an identity that survives rounds (findings/identity.py) and a line in the ledger
(findings/ledger.py). A failing verdict opens a *loop* or is the next round of the judge's open one
(feedback/judging.py). Routing sends each finding to the step that injected it (feedback/routing.py). The scheduler
(scheduling/scheduler.py) starts that step once every judge that can still speak has spoken, and hands it all its
feedback in one attempt (briefing.py). What consumed the old artifact runs again only if what it read has changed
(scheduling/staleness.py). Then the judge verifies. A loop moves along one table, TRANSITIONS in feedback/loop.py:
`loop.on("fix done")` looks up where it goes.

**Why it ends.** Every execution that feedback asks for is counted, and `first_breach` (breaches.py) is called before
each: nothing else stops a loop. workflow/bound.py multiplies the limits into the largest number of attempts that a run
can make. What hits a limit becomes an *escalation* (escalation/opening.py): a decision packet for a person
(escalation/packet.py), whose answer is a command like any other (escalation/answering.py).

Where to look:

    model, events, commands    the values that everything is made of
    workflow/                  the definition: steps, limits, conditions, checks, the graph, validation, the bound
    state/                     what a run is, and what each event does to it
    findings/                  identity, ledger, verdicts, disputes
    feedback/                  loops, routing, raising, judging, voting, closing
    escalation/                opening, packets, options, answers, policy
    scheduling/                what can start, what is stale, what is skipped, what is pending
    decide, transaction        the one entry point
    briefing, wording          what an attempt is given, as a value and as text
"""
