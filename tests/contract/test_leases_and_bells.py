"""A worker's lease, from registration to declared death; and bells that ring in other processes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import select

from docmill.db.tables import workers
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.bell import CONTROL, open_bell
from docmill.engine.lease import REMEMBERED, Heartbeat, Lease, LeaseSettings, monotonic
from docmill.model.ids import derived_id
from docmill.services.workers import alive_workers
from docmill.testing.waiting import until
from docmill.testing.world import World


def heartbeat(world: World, lease: Lease, ids: list[str], settings: LeaseSettings | None = None) -> Heartbeat:
    settings = settings or LeaseSettings(duration=60.0, heartbeat=0.02)
    return Heartbeat(world.database, settings, lease, on_new_id=ids.append, beats=count().__next__)


def expiry(world: World, worker_id: str) -> object:
    with world.looking() as connection:
        return connection.execute(select(workers.c.expires_at).where(workers.c.id == worker_id)).scalar_one()


def test_a_registered_worker_is_alive_and_holds_its_lease(world: World) -> None:
    lease, ids = Lease(60.0), list[str]()
    assert not lease.holds
    beat = heartbeat(world, lease, ids)
    before = len(alive_workers(world.database))
    beat.register()
    assert ids == [lease.worker_id]
    assert lease.hold(lambda: False)
    assert len(alive_workers(world.database)) == before + 1
    beat.stop()
    assert len(alive_workers(world.database)) == before


def test_the_lock_file_comes_before_the_row(world: World) -> None:
    """Whoever sees the row may try the lock."""
    seen: list[int] = []
    before = len(alive_workers(world.database))
    beat = Heartbeat(
        world.database,
        LeaseSettings(),
        Lease(60.0),
        on_new_id=lambda id_: seen.append(len(alive_workers(world.database))),
        beats=count().__next__,
    )
    beat.register()
    assert seen == [before]


def test_a_heartbeat_renews(world: World) -> None:
    lease, ids = Lease(60.0), list[str]()
    beat = heartbeat(world, lease, ids)
    beat.register()
    first = expiry(world, lease.worker_id)
    beat.start()
    until(lambda: expiry(world, lease.worker_id) != first, what="a renewal")
    beat.stop()
    assert ids == [lease.worker_id]


def test_a_worker_declared_dead_takes_a_new_id_and_never_the_old_one(world: World) -> None:
    lease, ids = Lease(60.0), list[str]()
    beat = heartbeat(world, lease, ids)
    beat.register()
    old = lease.worker_id
    world.set_worker(old, WorkerStatus.DEAD)
    gone = expiry(world, old)
    beat.start()
    until(lambda: lease.worker_id != old, what="a new id")
    beat.stop()
    assert ids == [old, lease.worker_id]
    assert expiry(world, old) == gone
    with world.looking() as connection:
        status = connection.execute(select(workers.c.status).where(workers.c.id == old)).scalar_one()
    assert status == WorkerStatus.DEAD


def test_workers_that_ended_long_ago_are_forgotten_when_another_registers(world: World) -> None:
    week = REMEMBERED.total_seconds()
    old, recent, silent = (derived_id("worker", name) for name in ("old", "recent", "silent"))
    world.register_workers(old, silent, lease=-week - 60)
    world.register_workers(recent, lease=-week + 60)
    world.set_worker(old, WorkerStatus.DEAD)
    world.set_worker(recent, WorkerStatus.STOPPED)
    heartbeat(world, Lease(60.0), []).register()
    with world.looking() as connection:
        left = set(connection.execute(select(workers.c.id)).scalars())
    # Whoever never said goodbye is the sweeper's to judge.
    assert {old, recent, silent} & left == {recent, silent}


def test_a_lease_runs_from_the_question_not_from_the_answer() -> None:
    lease = Lease(60.0)
    lease.renewed("w", monotonic() - 61.0)
    assert not lease.holds
    lease.renewed("w", monotonic() - 59.0)
    assert lease.holds


def test_whoever_waits_for_a_lease_goes_on_when_it_is_renewed_and_gives_up_when_stopping() -> None:
    lease = Lease(60.0)
    assert lease.hold(lambda: True) is False
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(lease.hold, lambda: False)
        lease.renewed("w", monotonic())
        assert waiting.result(10) is True


LISTENER = """
import sys
from pathlib import Path
from docmill.db.database import Database
from docmill.engine.bell import open_bell
bell = open_bell(Database(sys.argv[1]), Path(sys.argv[2]))
bell.listen(sys.argv[3], lambda queues: print(" ".join(sorted(queues)), flush=True))
print("listening", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def listener(world: World) -> Iterator[subprocess.Popen[str]]:
    """Another process that prints what it hears."""
    url = world.database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", LISTENER, url, str(world.run_dir), "listener"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    # On PostgreSQL it hears CONTROL once it listens: something may have rung before.
    ready = {"listening\n"} | ({"*\n"} if world.database.kind == "postgresql" else set())
    assert {process.stdout.readline() for _ in ready} == ready
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()


def test_a_bell_rings_in_another_process(world: World, listener: subprocess.Popen[str]) -> None:
    bell = open_bell(world.database, world.run_dir)
    bell.ring(frozenset({"ocr", "ai!"}))
    bell.ring([])
    bell.ring([CONTROL])
    assert listener.stdout is not None
    assert [listener.stdout.readline(), listener.stdout.readline()] == ["ai! ocr\n", "*\n"]
    bell.close()


def test_a_bell_whose_listener_died_rings_for_the_others(world: World, listener: subprocess.Popen[str]) -> None:
    listener.kill()
    listener.wait()
    heard = Event()
    bell = open_bell(world.database, world.run_dir)
    bell.listen("survivor", lambda queues: heard.set() if "ai" in queues else None)

    def ring() -> bool:
        bell.ring(["ai"])
        return heard.is_set()

    until(ring, what="the survivor to hear")
    if world.database.kind == "sqlite":
        assert [path.name for path in world.run_dir.glob("*.sock")] == ["survivor.sock"]
    bell.close()
    assert list(world.run_dir.glob("*.sock")) == []


def test_a_bell_never_raises(world: World, tmp_path: Path) -> None:
    bell = open_bell(world.database, tmp_path / "deep" / ("x" * 120))
    bell.ring(["ai"])
    if world.database.kind == "postgresql":
        bell.ring(["a" * 9000])
    shutil.rmtree(tmp_path / "deep", ignore_errors=True)
    bell.ring(["ai"])
    bell.close()
