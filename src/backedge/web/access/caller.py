"""The person or program that sends a request, and what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Role = Literal["viewer", "decider", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "decider", "admin")
"""What a token allows, the least first: read; also decide and raise feedback; also start, pause, resume and cancel runs."""
Need = Literal["read", "decide", "admin"]
_NEEDS: dict[Need, Role] = {"read": "viewer", "decide": "decider", "admin": "admin"}


class Caller(msgspec.Struct, frozen=True):
    """The person or program behind a request. Decisions are recorded under this name."""

    name: str
    role: Role
    roles: tuple[str, ...] = ()
    """The roles whose escalations they may decide, as `for:` names them; empty for all."""

    def may(self, need: Need) -> bool:
        """Whether their role is enough for this."""
        return ROLES.index(self.role) >= ROLES.index(_NEEDS[need])

    def may_answer(self, for_: Sequence[str]) -> bool:
        """Whether they may decide an escalation that is for these roles; an empty one is for everybody."""
        return self.may("decide") and (not self.roles or not for_ or bool(set(self.roles) & set(for_)))
