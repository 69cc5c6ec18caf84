"""The tests that a judge has seen running: which of them have to run, and whose absence somebody has answered for."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.adapters.evidence.store import KnownTests


def required(known: KnownTests, approved: Mapping[str, str]) -> frozenset[str]:
    """The tests that have to run: those of the start, and those of files that somebody approved or owns. What a step wrote
    and took away again within the run counts only if nothing shows which tests there were at the start."""
    if not known.complete:
        return frozenset(known.files)
    agreed = (test for test, file in known.files.items() if file and file in approved)
    return frozenset((*known.baseline, *agreed))


def excused(known: KnownTests, approved: Mapping[str, str], test_files: frozenset[str]) -> frozenset[str]:
    """The tests that need not run any more. Somebody was asked about the change because of which a test does not run, and
    approved it; or the approved version of its file is not one that the test ever ran with.

    `test_files` are approved changes of files of tests, for tests whose own file is not known."""
    return frozenset(
        test
        for test, file in known.files.items()
        if any(approved.get(name) == digest for name, digest in known.asked.get(test, ()))
        or (file and file in approved and approved[file] != known.versions.get(test, ""))
        or (not file and test_files)
    )
