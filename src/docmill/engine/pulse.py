"""Whether the event loop still turns: a step that computes on it without ever waiting stops everything else there."""

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger("docmill.engine")


class Pulse:
    """Beats on the loop, for other threads to see."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._timer: asyncio.TimerHandle | None = None
        self.beats = 0

    def start(self) -> None:
        """Beat from now on; called on the loop."""
        self.beats += 1
        self._timer = asyncio.get_running_loop().call_later(self._interval, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Watch:
    """One thread's view of the pulse: for how long it has been missing.

    Only time in which the watching thread itself ran counts, look by look. A process that was stopped, or a machine too
    slow for all of its threads, is therefore not mistaken for a blocked loop.
    """

    def __init__(self, beats: Callable[[], int], patience: float) -> None:
        self._beats = beats
        self._patience = patience
        self._seen = -1
        self._silent = 0.0

    def look(self, since_last: float) -> bool:
        """Whether the loop may be relied on; `since_last` is what the thread waited since its last look, in seconds."""
        beats = self._beats()
        blocked = self._silent >= self._patience
        if beats != self._seen:
            if blocked:
                log.warning("the event loop turns again; the lease is renewed or taken anew")
            self._seen, self._silent = beats, 0.0
            return True
        self._silent += since_last
        if self._silent < self._patience:
            return True
        if not blocked:
            log.error(
                "the event loop has stood still for %.0f s, so the lease is no longer renewed and others take over: an "
                "async step computes without awaiting anything. Make it a plain `def`, or use `ctx.cpu`.",
                self._silent,
            )
        return False
