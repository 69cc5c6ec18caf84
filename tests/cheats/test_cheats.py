"""Many cheats and all honest controls as tests: what comes of each is what the registry expects, or better."""

from __future__ import annotations

import pytest

from tests.cheats.case import Case, Verdict
from tests.cheats.registry import selection
from tests.cheats.running import run_case


@pytest.mark.parametrize("case", selection(), ids=lambda case: str(case.name))
def test_a_case_ends_as_expected(case: Case) -> None:
    result = run_case(case)
    if result.verdict is Verdict.MISSING:
        pytest.skip(result.detail)
    assert result.verdict is not Verdict.BROKEN, result.detail
    assert result.ok, f"{case.name} is {result.verdict}, expected {result.expected}: {result.detail}"
