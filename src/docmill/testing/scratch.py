"""Where tests keep their files: in memory, where there is room for them.

Nothing a test writes outlives the test, and a disk makes it pay for that. A PostgreSQL database is five hundred files,
and ext4 without a journal, which does not give out again at once what was deleted a moment ago, looks at all of that
for each new file: a third of a second of CPU per database, where memory takes a fortieth of one.
"""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 3 << 30
"""Bytes that must be free: a whole run needs about a third of it."""


def folder_in_memory(environment: Mapping[str, str], memory: Path = MEMORY, room: int = ROOM) -> Path | None:
    """This user's folder for temporary files in memory; None if another was asked for or there is not the room.

    A container often has 64 MB there, and a mount that forbids programs would fail the tests that write some.
    """
    if any(environment.get(name) for name in ("TMPDIR", "TEMP", "TMP")) or not os.access(memory, os.W_OK | os.X_OK):
        return None
    found = os.statvfs(memory)
    if found.f_flag & os.ST_NOEXEC or found.f_bavail * found.f_frsize < room:
        return None
    folder = memory / f"docmill-{os.geteuid()}"
    # To be passed by the users that servers run as; what is in it is made for its owner alone.
    folder.mkdir(mode=0o711, exist_ok=True)
    found_folder = folder.lstat()
    if not stat.S_ISDIR(found_folder.st_mode) or found_folder.st_uid != os.geteuid():
        return None
    return folder


def keep_in_memory(folder: Path) -> None:
    """Let this process and all it starts make their temporary files there."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
