"""Named places where a test can make a process die, stop or fail. Free in production: one comparison with None.

`DOCMILL_FAILPOINT=name:nth:action` arms one point: on its nth passing (from 1) the process is killed (`kill`), stopped
(`stop`), made to raise (`raise`), or made to lose the answer of a commit that took place (`commit_then_raise`: the
transaction that passes `name` inside commits, and then the error comes). With `5%` for nth, each passing has that
chance. Several are separated by commas.
"""

import os
import random
import signal
from collections.abc import Callable

NAMES = (
    "claim.taken",
    "compute.before",
    "model.asked",
    "model.answered",
    "compute.after",
    "checkpoint.written",
    "apply.before",
    "apply.after",
    "commit.inside",
    "commit.after",
    "heartbeat.renewed",
    "sweep.marked",
    "sweep.batch",
    "retry.scheduled",
    "part.recorded",
    "follow_up.inserted",
    "timer.due",
    "cancel.stored",
    "submit.stored",
    "worker.registered",
    "drain.begun",
    "batch.counted",
    "undo.submitted",
    "model.switched",
    "dispatch.sent",
    "callback.stored",
    "callback.answered",
    "resolve.stored",
)
"""Every point there is; a test keeps the list true."""


class FailpointRaised(RuntimeError):
    """Raised by an armed point."""


class _Armed:
    def __init__(self, name: str, when: str, action: str) -> None:
        self.name = name
        self.chance = float(when[:-1]) / 100 if when.endswith("%") else None
        self.left = 0 if self.chance is not None else int(when)
        self.action = action

    def _due(self) -> bool:
        if self.chance is not None:
            return random.random() < self.chance
        self.left -= 1
        return self.left == 0

    def pass_by(self) -> None:
        if not self._due():
            return
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            raise FailpointRaised(f"failpoint {self.name}")


def _parse(text: str) -> dict[str, _Armed]:
    armed = {}
    for entry in filter(None, text.split(",")):
        name, when, action = entry.split(":")
        if name not in NAMES or action not in ("kill", "stop", "raise", "commit_then_raise"):
            raise ValueError(f"unknown failpoint or action: {entry}")
        if action == "commit_then_raise":
            if name != "commit.inside":
                raise ValueError(f"only a point inside a transaction can commit and then raise: {entry}")
            name = "commit.after"
        armed[name] = _Armed(name, when, action)
    return armed


_armed: dict[str, _Armed] | None = None
_hook: Callable[[str], None] | None = None


def arm(text: str | None) -> None:
    """Arm the points named in `text` (the form of DOCMILL_FAILPOINT), or none."""
    global _armed
    _armed = _parse(text) if text else None


def hook(callback: Callable[[str], None] | None) -> None:
    """Call back at every point (tests that interleave threads at boundaries), or stop doing so."""
    global _hook
    _hook = callback


def failpoint(name: str) -> None:
    """A place where the world may end."""
    if _armed is None and _hook is None:
        return
    if _hook is not None:
        _hook(name)
    if _armed is not None and name in _armed:
        _armed[name].pass_by()


arm(os.environ.get("DOCMILL_FAILPOINT"))
