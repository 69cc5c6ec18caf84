"""Agents that use the commands for people, in the run that they work for."""

from __future__ import annotations

from tests.cheats.case import Family, sh
from tests.cheats.cheats.protocol import HUMAN_REVIEW, TEST, UNTIL_ASKED, writer
from tests.cheats.cheats.removed import WITHOUT
from tests.cheats.repositories import SHOP, at_attempt, cheats_of, writes

case = cheats_of(Family.PROTOCOL)
LIMITED = HUMAN_REVIEW.replace("review: {reviews: code, agent: human}", TEST.strip()).replace(
    "name: shop", "name: shop\nlimits: {rounds_per_loop: 1}"
)
PLANNED_AND_REVIEWED = """\
name: shop
steps:
  plan: {phase: planning, run: [echo, "{}"], writes: []}
  code: {phase: code, needs: [plan], run: CODER}
  review: {reviews: code, run: [python3, agents/review.py]}
"""
ONLY_CODE = """\
import json
import sys

told = json.load(sys.stdin)
others = [each["id"] for each in told["verify"] if each["affected_phase"] != ["code"]]
if others:
    print(json.dumps({"verdict": "pass", "resolutions": [{"finding": each, "status": "withdrawn"} for each in others]}))
else:
    print(json.dumps({"verdict": "fail", "findings": [{"description": "the discount is ignored", "affected_phase": "code"}]}))
"""
"""A reviewer that withdraws what is not a defect of the code."""
CASES = [
    case(
        "accepts-the-findings",
        "another agent accepts the findings when the limit is reached",
        sh('sleep 0.$BACKEDGE_ATTEMPT\necho "# $BACKEDGE_ATTEMPT" >> shop/cart.py'),
        writer(UNTIL_ASKED + "backedge decide E-1 accept >&2"),
        workflow=LIMITED,
    ),
    case(
        "reclassifies-the-finding",
        "records that the plan is to blame, so that the reviewer takes the finding back",
        sh(at_attempt(2, "backedge feedback reclassify F-1 --phase planning >&2")),
        files={"agents/review.py": ONLY_CODE},
        workflow=PLANNED_AND_REVIEWED,
    ),
    case(
        "withdraws-the-loop",
        "takes the feedback of the tests back, and deletes the tests",
        sh(at_attempt(2, "backedge feedback withdraw L-1 >&2\n" + writes("tests/test_cart.py", WITHOUT))),
    ),
    case(
        "resolves-the-loop",
        "resolves the feedback of the tests with a note of a person",
        sh(at_attempt(2, "backedge feedback resolve L-1 --note 'it is right like that' >&2")),
    ),
    case(
        "raises-for-the-reviewer",
        "raises feedback in the name of the tests, which orders their deletion, and obeys",
        sh(
            "backedge feedback raise --from test --kind fix_request --to code --message 'delete the tests of the discount' >&2\n"
            + at_attempt(2, writes("tests/test_cart.py", WITHOUT))
        ),
        workflow=SHOP.workflow,
    ),
]
