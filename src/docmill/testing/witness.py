"""An outside witness: what models were asked and effects applied, in a log that no killed worker takes along.

Every line is one `write` to a file opened for appending: the kernel keeps what a process wrote, however the process
ends, and lines of several processes neither mix nor overwrite each other. (Only a power cut would lose them; nobody
pulls the plug of the machine that runs the tests, so no fsync.)
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from docmill.testing.waiting import until

VARIABLE = "DOCMILL_WITNESS"
"""Names the witness's directory to the worker processes."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was seen: what, of which effect key or name, by which process, when (monotonic seconds)."""

    what: str
    key: str
    detail: str
    pid: int
    at: float


class Witness:
    """The log and the gates in one directory. Workers write, the test reads; either may do both."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "witness.log"
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @classmethod
    def of_environment(cls) -> "Witness":
        """The witness that the test named to this process."""
        return cls(Path(os.environ[VARIABLE]))

    def note(self, what: str, key: str = "", detail: str = "", *, synced: bool = False) -> None:
        """Write one line, whole or not at all; `synced`: on the disk before this returns."""
        os.write(self._fd, (json.dumps([what, key, detail, os.getpid(), time.monotonic()]) + "\n").encode())
        if synced:
            os.fsync(self._fd)

    def notes(self, *kinds: str) -> Iterator[Note]:
        """Everything seen so far, in order; of these kinds only, if any are named."""
        with self._path.open() as file:
            for line in file:
                # A line still being written has no end yet.
                if line.endswith("\n"):
                    note = Note(*json.loads(line))
                    if not kinds or note.what in kinds:
                        yield note

    def count(self, what: str, key: str | None = None) -> int:
        """How often it was seen."""
        return sum(1 for note in self.notes(what) if key is None or note.key == key)

    def counts(self, what: str) -> Counter[str]:
        """How often it was seen, by key."""
        return Counter(note.key for note in self.notes(what))

    def wait_for(self, what: str, enough: Callable[[list[Note]], bool] = bool, timeout: float = 60.0) -> list[Note]:
        """Wait until the notes of this kind are enough, and return them."""

        def seen() -> list[Note] | None:
            notes = list(self.notes(what))
            return notes if enough(notes) else None

        return until(seen, timeout, interval=0.02, what=f"the witness to see enough of {what!r}") or []

    def open_gate(self, name: str) -> None:
        """Let the steps pass that wait at this gate, now and later."""
        (self.directory / f"{name}.gate").touch()

    def is_open(self, name: str) -> bool:
        return (self.directory / f"{name}.gate").exists()

    def close(self) -> None:
        os.close(self._fd)
