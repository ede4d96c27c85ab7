"""The six-step workflow every system runs: a → b → c → (d ∥ e) → f, each step returning one small result.

Systems without workflows of their own enqueue `successors` after each step and join d and e by a counter they store.
"""

import asyncio
import time
from collections.abc import Mapping

from bench.meter import Meter

FIRST = "a"
LAST = "f"
JOINING = frozenset({"d", "e"})
STEPS = ("a", "b", "c", "d", "e", "f")
WAITING = "c"
_NEXT: Mapping[str, tuple[str, ...]] = {"a": ("b",), "b": ("c",), "c": ("d", "e")}

Outcome = dict[str, bool | int | str]


def successors(step: str) -> tuple[str, ...]:
    """The steps that may start once `step` is done; the join behind d and e is the caller's."""
    return _NEXT.get(step, ())


def outcome(step: str) -> Outcome:
    """The small result each step stores."""
    return {"ok": True, "step": step, "value": 42, "note": "a small result"}


def run_step(meter: Meter, workflow: int, step: str, wait_s: float) -> Outcome:
    """Execute one step in a thread or process of its own."""
    meter.started(workflow, step)
    if wait_s and step == WAITING:
        time.sleep(wait_s)
    meter.ended(workflow, step)
    return outcome(step)


async def run_step_async(meter: Meter, workflow: int, step: str, wait_s: float) -> Outcome:
    """Execute one step as a coroutine."""
    meter.started(workflow, step)
    if wait_s and step == WAITING:
        await asyncio.sleep(wait_s)
    meter.ended(workflow, step)
    return outcome(step)
