"""Where the time comes in. What lies below is told it: `now` is a parameter there.

A command, a request and a worker's wiring take the moment here. Below, only the modules that
`tests/unit/test_house_rules.py` names look at a clock themselves, each for the reason given there.
"""

from datetime import UTC, datetime


def this_moment() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)
