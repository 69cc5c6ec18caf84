"""The identity of a finding: chance variations do not matter, and similar defects stay different findings."""

from __future__ import annotations

import pytest

from backedge.core.findings.identity import fingerprint, normalised
from backedge.core.model import Finding, Severity


def same(one: str, two: str) -> bool:
    return fingerprint(Finding(one)) == fingerprint(Finding(two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param("no login", "\x1b[31mno login\x1b[0m", id="colours"),
        pytest.param("no login", "\x1b]8;;http://x\x07no login\x1b]8;;\x07", id="hyperlinks"),
        pytest.param("no login", "no login\x00\x07", id="control characters"),
        pytest.param("no   login\n\tat all", " no login at all ", id="white space"),
        pytest.param("down since 2024-01-02T03:04:05Z", "down since 2025-11-12T13:14:15.123+02:00", id="timestamps"),
        pytest.param("down since 2024-01-02 03:04", "down since 2025-11-12 13:14", id="minutes"),
        pytest.param("took 1:02:03", "took 11:12:13.5", id="times of day"),
        pytest.param("row 4fa85f64-5717-4562-b3fc-2c963f66afa6", "row 00000000-0000-0000-0000-000000000001", id="uuid"),
        pytest.param("<Foo at 0x7f3a2b>", "<Foo at 0x1>", id="memory"),
        pytest.param("commit 3f2a9bc broke it", "commit 91de02a44f broke it", id="hashes"),
        pytest.param("pid 1712345678901", "pid 1799999999999", id="long numbers"),
        pytest.param("refused by 127.0.0.1:54321", "refused by 10.0.0.7:80", id="addresses"),
        pytest.param("refused by localhost:54321", "refused by localhost:1", id="ports"),
        pytest.param("/tmp/pytest-1/a.py is empty", "/var/tmp/pytest-2/a.py is empty", id="temporary paths"),
        pytest.param("/tmp/pytest-of-ann/pytest-1/a.py", "/tmp/x/a.py", id="temporary paths of pytest"),
        pytest.param("/var/folders/zz/q1/T/tmp1/src/a.py", "/tmp/2/src/a.py", id="folders below temporary ones"),
        pytest.param("/private/var/folders/zz/1/a.py", "/tmp/2/a.py", id="temporary paths of a Mac"),
        pytest.param("/home/ann/src/a.py fails", "/Users/bob/src/a.py fails", id="absolute paths"),
        pytest.param("file:///home/ann/src/a.py", "/work/src/a.py", id="file addresses"),
        pytest.param(r"C:\Users\ann\src\a.py fails", r"D:\ci\src\a.py fails", id="paths of Windows"),
        pytest.param(r"C:\Users\ann\AppData\Local\Temp\x1\a.py", "/tmp/2/a.py", id="temporary paths of Windows"),
        pytest.param("see /home/ann/src/a.py.", "see /Users/bob/src/a.py.", id="paths at the end of a sentence"),
        pytest.param("/srv/src/a.py fails", r"C:\ci\src\a.py fails", id="two systems"),
        pytest.param("a.py:12: bad name", "a.py:13:4: bad name", id="lines after a file"),
        pytest.param("a.ts(12,3): bad name", "a.ts(99): bad name", id="lines in brackets"),
        pytest.param("bad name on line 3", "bad name on line 44", id="lines"),
        pytest.param("bad names on lines 3-5", "bad names on lines 4 - 9", id="line ranges"),
        pytest.param("at column 3", "at column: 5", id="columns"),
    ],
)
def test_times_paths_and_numbers_do_not_make_a_new_finding(one: str, two: str) -> None:
    assert same(one, two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param("no login", "no logout", id="words"),
        pytest.param("no login", "No login", id="case"),
        pytest.param("/users/me leaks the token", "/orgs/me leaks the token", id="routes"),
        pytest.param("/api/users/me leaks", "/api/orgs/me leaks", id="longer routes"),
        pytest.param("GET /app/users/me leaks", "GET /app/orgs/me leaks", id="routes below app"),
        pytest.param("answers 404", "answers 500", id="status codes"),
        pytest.param("expected 3, got 4", "expected 3, got 5", id="amounts"),
        pytest.param("limit is 0.5", "limit is 1.5", id="fractions"),
        pytest.param("src/a.py is empty", "src/b.py is empty", id="files"),
        pytest.param("/tmp/1/a.py is empty", "/tmp/1/b.py is empty", id="temporary files"),
        pytest.param("/home/ann/src/a.py", "/home/ann/lib/a.py", id="folders"),
        pytest.param("Python 3.11 fails", "Python 3.12 fails", id="versions"),
        pytest.param("deadline is missed", "decade is missed", id="words of hex letters"),
        pytest.param("/home/u/mono/users/src/a.ts", "/home/u/mono/orders/src/a.ts", id="folders far above the file"),
        pytest.param("/tmp/1/users/a.py is empty", "/tmp/1/orders/a.py is empty", id="folders below temporary ones"),
        pytest.param("/etc/a/x.conf is open", "/etc/b/x.conf is open", id="files of the system"),
        pytest.param("/usr/lib/a.so is old", "/opt/lib/a.so is old", id="places of the system"),
        pytest.param("GET /app/v1/users/me answers 500", "GET /app/v2/users/me answers 500", id="versions of a route"),
        pytest.param("/work/v1/items is slow", "/build/v1/items is slow", id="routes that begin like a checkout"),
        pytest.param("/home/v1/users is slow", "/home/v2/users is slow", id="routes that begin like a home"),
        pytest.param("/users/ann/orders leaks", "/users/bob/orders leaks", id="routes of users"),
        pytest.param("register 0x10 is set", "register 0x20 is set", id="short hexadecimal numbers"),
        pytest.param("jumps at 0x10", "jumps at 0x20", id="short addresses"),
        pytest.param("uses md5", "uses sha1", id="short words with digits"),
    ],
)
def test_texts_that_differ_in_meaning_are_two_findings(one: str, two: str) -> None:
    assert not same(one, two)


def test_identity_is_category_file_requirement_and_description() -> None:
    base = Finding("no login", category="security", file="api.md", requirement_id="REQ-1")
    others = [
        Finding("no login", category="usability", file="api.md", requirement_id="REQ-1"),
        Finding("no login", category="security", file="db.md", requirement_id="REQ-1"),
        Finding("no login", category="security", file="api.md", requirement_id="REQ-2"),
        Finding("no logout", category="security", file="api.md", requirement_id="REQ-1"),
    ]
    assert len({fingerprint(each) for each in [base, *others]}) == 5


def test_other_fields_do_not_change_the_identity() -> None:
    base = Finding("no login", file="api.md")
    again = Finding(
        "no login",
        severity=Severity.LOW,
        blocking=True,
        file="api.md",
        line=7,
        evidence="seen",
        impact="all",
        suggested_fix="add one",
        affected_phase=("planning",),
        word="minor",
    )
    assert fingerprint(base) == fingerprint(again)


def test_text_in_another_field_is_another_finding() -> None:
    assert fingerprint(Finding("b", category="a")) != fingerprint(Finding("a b"))


def test_a_text_with_nothing_to_normalise_is_unchanged() -> None:
    assert normalised("no login at all") == "no login at all"


def test_a_leading_dot_slash_does_not_change_a_file() -> None:
    assert fingerprint(Finding("no login", file="./api.md")) == fingerprint(Finding("no login", file="api.md"))
