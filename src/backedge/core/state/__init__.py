"""The state of a run, and what each event changes in it. No rules are applied here: `decide` has applied them."""
