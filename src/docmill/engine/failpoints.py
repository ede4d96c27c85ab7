"""Named places where a test can make a process die, stop or fail. Free in production: one comparison with None.

`DOCMILL_FAILPOINT=name:nth:action` arms one point: on its nth passing (from 1) the process is killed (`kill`), stopped
(`stop`), made to raise (`raise`), or made to lose the answer of a commit that took place (`commit_then_raise`).
Several are separated by commas.
"""

import os
import signal
from collections.abc import Callable

NAMES = (
    "claim.taken",
    "compute.before",
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
    "cancel.inside",
    "submit.inside",
    "worker.registered",
    "drain.begun",
)
"""Every point there is; a test keeps the list true."""


class FailpointRaised(RuntimeError):
    """Raised by an armed point."""


class _Armed:
    def __init__(self, name: str, nth: int, action: str) -> None:
        self.name = name
        self.left = nth
        self.action = action

    def pass_by(self) -> None:
        self.left -= 1
        if self.left != 0:
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
        name, nth, action = entry.split(":")
        if name not in NAMES or action not in ("kill", "stop", "raise", "commit_then_raise"):
            raise ValueError(f"unknown failpoint or action: {entry}")
        armed[name] = _Armed(name, int(nth), action)
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
