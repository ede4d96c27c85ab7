"""SQLite on a bad day: the disk is full, or the power goes. No partial state, and work resumes."""

import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import text

from docmill.db.database import Database
from docmill.testing.fleet import Fleet, WorkerProcess
from docmill.testing.verdict import Verdict, examine
from docmill.testing.waiting import until
from tests.fault.conftest import OpenFleet, volume

WAL_HEADER = 32
FRAME_HEADER = 24


def path_of(fleet: Fleet) -> Path:
    assert fleet.database.path is not None
    return fleet.database.path


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def limit(worker: WorkerProcess, size: int) -> None:
    """No file of this process may grow beyond the size: every write past it fails, as on a full disk."""
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@contextmanager
def growing_log(path: Path) -> Iterator[None]:
    """The write-ahead log starts empty and only grows: a reader keeps it from being folded and written anew."""
    with closing(sqlite3.connect(path)) as reader:
        until(lambda: reader.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0, what="the log to be folded")
        reader.execute("begin")
        reader.execute("select count(*) from processing_jobs").fetchone()
        yield


def intact(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("pragma integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


def test_a_full_disk_leaves_no_partial_state_and_work_resumes_with_space(on_sqlite: OpenFleet) -> None:
    with on_sqlite() as fleet:
        worker = fleet.start(ready=True)
        for _ in range(volume(2, 20)):
            heard = fleet.log.read_text().count("trying again")
            with growing_log(path_of(fleet)):
                # The write-ahead log outgrows the database many times over; what the witness writes stays below both.
                limit(worker, path_of(fleet).stat().st_size + 300_000)
                fleet.submit("fault everything", 40)
                fleet.until(
                    lambda heard=heard: fleet.log.read_text().count("trying again") > heard,  # type: ignore[misc]
                    "the worker to run out of space",
                )
            assert intact(path_of(fleet))
            # A step may be held by a worker that cannot renew its lease; nothing else may be wrong.
            violations = examine(fleet.database, fleet.witness, finished=False)
            assert [violation for violation in violations if not violation.startswith("3:")] == []
            limit(worker, resource.RLIM_INFINITY)
            fleet.finish()
        assert worker.running
        assert examine(fleet.database, fleet.witness) == []


def test_after_a_power_cut_at_any_frame_the_database_is_a_committed_prefix(
    on_sqlite: OpenFleet, tmp_path: Path
) -> None:
    with on_sqlite() as fleet:
        # The schema is on the disk before the power can fail: what is cut is the work.
        with closing(sqlite3.connect(path_of(fleet))) as connection:
            assert connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0
        worker = fleet.start(ready=True)
        fleet.submit("fault everything", 12)
        fleet.finish()
        # Its connection keeps the log from being folded into the database while we copy.
        worker.signal(signal.SIGSTOP)
        fleet.until(lambda: worker.stopped, "the worker to stop")
        source = path_of(fleet)
        whole, log = source.read_bytes(), wal_of(source).read_bytes()
        frame = FRAME_HEADER + int.from_bytes(log[8:12], "big")
        frames = (len(log) - WAL_HEADER) // frame
        assert frames > 100
        versions = []
        every = max(1, frames // volume(40, 1000))
        for number in range(0, frames + 1, every):
            # At the frame's edge and, every other time, in the middle of the next one.
            end = WAL_HEADER + number * frame + (frame // 2 if number % 2 else 0)
            versions.append(_open_copy(tmp_path / f"cut-{number}", source.name, whole, log[:end], fleet))
        assert versions == sorted(versions)
        assert versions[-1] > versions[0]


def _open_copy(directory: Path, name: str, whole: bytes, log: bytes, fleet: Fleet) -> int:
    """Open what the disk would hold after the cut; the sum of all versions in it."""
    directory.mkdir()
    path = directory / name
    path.write_bytes(whole)
    wal_of(path).write_bytes(log)
    assert intact(path)
    database = Database(f"sqlite:///{path}")
    try:
        # The witness remembers more than the disk; what it saw applied and paid for afterwards does not count here.
        violations = [v for v in Verdict(database, fleet.witness).violations if v[0] in "1458"]
        assert violations == []
        with database.read() as connection:
            return int(connection.execute(text("select coalesce(sum(version), 0) from processing_jobs")).scalar_one())
    finally:
        database.close()
        shutil.rmtree(directory)
