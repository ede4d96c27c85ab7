"""Time that moves only when told to, for several processes at once: it stands in a file."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection


class SharedClock:
    """A clock for the model gateway (`Clock`), the same in every process that names the same file."""

    def __init__(self, path: Path, start: datetime | None = None) -> None:
        self._path = path
        if start is not None:
            self.set(start)

    def __call__(self, connection: Connection | None = None) -> datetime:
        return datetime.fromisoformat(self._path.read_text())

    def set(self, now: datetime) -> None:
        """Set it for all; nobody reads half a time."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(now.isoformat())
        os.replace(fresh, self._path)

    def advance(self, seconds: float) -> None:
        self.set(self() + timedelta(seconds=seconds))
