"""Channels, roles and the expiry as Python users write them: each mistake is named."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.errors import WorkflowError
from backedge.core.model import Severity
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.notify import USUAL, Channel, Expiry
from tests.core.play import step


def built(*steps: Any, **more: Any) -> Any:
    return build_workflow("w", [(each, {}) for each in steps or (step("code", for_roles=("qa",)),)], **more)


def test_everything_is_kept_by_the_run() -> None:
    channels = [
        {"to": "https://example.com", "for": "qa", "remind": [60, 5.0, 60], "quiet": "22:00-07:00", "secret": "S"},
        {"command": ["notify-send", "{title}"], "on": ["decided"]},
    ]
    made = built(notify=channels, expire={"after": 60, "choice": "skip"})
    assert made.notify == (
        Channel("https://example.com", (), USUAL, "qa", (5.0, 60.0), "22:00-07:00", "S"),
        Channel("", ("notify-send", "{title}"), ("decided",)),
    )
    assert made.expire == Expiry(60.0, "skip", (Severity.MEDIUM, Severity.LOW))
    assert built(expire={"after": 1, "choice": "accept", "only": "high"}).expire == Expiry(
        1.0, "accept", (Severity.HIGH,)
    )
    assert built(roles={"qa": "speed", "legal": ["licence", "privacy"]}).roles == (
        ("qa", ("speed",)),
        ("legal", ("licence", "privacy")),
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"notify": {"to": "x"}}, "notify is {'to': 'x'}: expected a list of channels, each with `to` or `command`"),
        ({"notify": ["x"]}, "notify 1: a channel is 'x': expected a mapping"),
        ({"notify": [{"too": "x"}]}, "notify 1: it has the key 'too': did you mean 'to'?"),
        ({"notify": [{}]}, "notify 1: expected either `to` with an address or `command`"),
        ({"notify": [{"to": "x", "command": ["y"]}]}, "notify 1: expected either"),
        ({"notify": [{"to": "x", "on": ["open"]}]}, "notify 1: on has 'open': did you mean 'opened'?"),
        (
            {"notify": [{"to": "x"}, {"to": "x", "quiet": "10-11"}]},
            "notify 2: quiet is '10-11': expected hours such as",
        ),
        ({"notify": [{"to": "x", "remind": [0]}]}, "notify 1: remind is [0]: expected a list of times above 0"),
        ({"notify": [{"to": "x", "remind": [True]}]}, "remind is [True]"),
        ({"notify": [{"to": "x", "remind": "30m"}]}, "remind is '30m': expected a list"),
        ({"notify": [{"to": "x", "for": 3}]}, "notify 1: for is 3: expected one word"),
        ({"notify": [{"command": ["x"], "secret": "S"}]}, "secret signs messages to a web hook"),
        ({"notify": [{"to": "x", "for": "qaa"}]}, "notify 1 is for 'qaa', but no question is: did you mean 'qa'?"),
        ({"notify": [{"to": "x", "for": "qa"}], "roles": {"ops": []}}, "notify 1 is for 'qa', but no question is"),
        ({"roles": {"ops": []}}, "step 'code' is for 'qa', which is not in roles"),
        ({"roles": ["ops"]}, "roles is ['ops']: expected a mapping"),
        ({"expire": {"choice": "skip"}}, "expire: after is None: expected a time above 0"),
        (
            {"expire": {"after": 1, "choice": "continue"}},
            "expire: choice is 'continue': use one of: skip, accept, cancel",
        ),
        ({"expire": {"after": 1, "choice": "skip", "only": ["hihg"]}}, "expire: only has 'hihg': did you mean 'high'?"),
        ({"expire": {"afer": 1, "choice": "skip"}}, "expire: it has the key 'afer': did you mean 'after'?"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(WorkflowError) as error:
        built(**given)
    assert problem in str(error.value)


def test_a_role_of_a_channel_that_nobody_has_says_what_to_do() -> None:
    with pytest.raises(WorkflowError, match="name it in `roles`, or in `for` of a step"):
        built(step("code"), notify=[{"to": "x", "for": "qa"}])


def test_the_person_who_approves_a_result_has_the_roles_of_its_step() -> None:
    from backedge.core.workflow.definition import Thresholds

    made = built(step("code", for_roles=("qa",), thresholds=Thresholds(files=3)))
    assert {each.name: each.for_roles for each in made.steps} == {"code": ("qa",), "code_approval": ("qa",)}
