"""The random tests try the same examples each time: whether a change lands is no matter of luck. `make deep` tries others,
and twenty times as many of the properties."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "backedge",
    derandomize=os.environ.get("BACKEDGE_HYPOTHESIS") != "deep",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("backedge")
