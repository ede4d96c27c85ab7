"""Any two operations on one job, interleaved at every statement, end as if one had come after the other."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from docmill.db.database import Database
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, QueueClaim, Report
from docmill.engine.events import Cancelled, Claimed, Completed, Event, Rerun, Suspended
from docmill.engine.sql import postgres
from docmill.engine.sql.rows import WrongCount
from docmill.engine.state import JobState
from docmill.engine.store import Store
from docmill.model.ids import derived_id
from docmill.model.statuses import StepKind
from docmill.testing.invariants import check_state
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, make_plan
from docmill.testing.servers import PostgresServer
from docmill.testing.stepwise import Actor
from docmill.testing.world import BOB, Clock, World, migrate, timed
from tests.conftest import PostgresCopies

GONE = derived_id("worker", "gone")
"""Runs one of the steps and is dead."""

PLAN = make_plan(
    [
        Draft(key="ready"),
        Draft(key="first"),
        Draft(key="sibling"),
        Draft(key="lost"),
        Draft(key="ask", kind=StepKind.HUMAN),
        Draft(key="last", group=2, after=("first", "sibling")),
    ]
)
JOB = derived_id("interleaved")

Deed = Callable[[Store], bool]
"""One operation on the job; whether it had an effect."""


def reporting(*events: Event) -> Deed:
    def deed(store: Store) -> bool:
        return all(store.commit(Batch(reports=[Report(job_id=JOB, event=event) for event in events])).accepted)

    return deed


def finishing(key: str) -> Deed:
    return reporting(Completed(position=PLAN.positions[key], epoch=1, result='"done"'))


def claim(store: Store) -> bool:
    batch = Batch(claims=[QueueClaim(queue="system", limit=5)], worker=BOB)
    return bool(store.commit(batch).started)


class Setting(NamedTuple):
    """A world with two stores that know the job, and the way to ask who waits for a lock."""

    world: World
    left: Store
    right: Store
    blocked: Callable[[Store], bool]


@contextmanager
def setting(url: str, tmp_path: Path) -> Iterator[Setting]:
    world = World(Database(url), tmp_path / "run")
    clock = Clock(START)
    world.register_workers(GONE, BOB)
    world.set_worker(GONE, WorkerStatus.DEAD)
    left, right = timed(world.store, clock), timed(world.other, clock)
    try:
        if world.database.kind == "postgresql":
            with psycopg.connect(url, autocommit=True) as watching:

                def blocked(store: Store) -> bool:
                    query = "select cardinality(pg_blocking_pids(%s)) > 0"
                    row = watching.execute(query, [store.session.raw.info.backend_pid]).fetchone()
                    return bool(row and row[0])

                yield Setting(world, left, right, blocked)
        else:
            yield Setting(world, left, right, lambda store: True)
    finally:
        world.close()


def sweeping(world: World) -> Deed:
    return lambda store: world.sweep(own=BOB, store=store).recovered > 0


def deeds(world: World) -> Mapping[str, Deed]:
    return {
        "claim": claim,
        "complete": finishing("first"),
        "complete-sibling": finishing("sibling"),
        "cancel": reporting(Cancelled()),
        "sweep": sweeping(world),
        "answer": finishing("ask"),
        "rerun": reporting(Rerun(positions=frozenset({0}), keep_checkpoints=False)),
    }


NAMES = ("claim", "complete", "complete-sibling", "cancel", "sweep", "answer", "rerun")
SKIPPING = {"claim", "sweep"}
"""These pass over a job that somebody holds and come again later: every worker does."""


def busy(scene: Setting) -> None:
    """Something to be done by everybody: ready, running twice, lost with its worker, waiting for an answer."""
    world, left, right = scene.world, scene.left, scene.right
    world.clear()
    left.known.forget()
    right.known.forget()
    left.commit(Batch(submissions=[world.new_job(PLAN, id=JOB)]))
    right.commit(Batch(claims=[QueueClaim(queue="human", limit=1)], worker=BOB))
    positions = PLAN.positions
    reporting(
        Suspended(position=positions["ask"], epoch=1, deadline=None),
        Claimed(position=positions["first"], worker=BOB),
        Claimed(position=positions["sibling"], worker=BOB),
        Claimed(position=positions["lost"], worker=GONE),
    )(left)


def joining(scene: Setting) -> None:
    """Only two siblings left: whoever comes second makes the next step ready."""
    busy(scene)
    claim(scene.right)
    reporting(*[Completed(position=PLAN.positions[key], epoch=1) for key in ("ready", "lost", "ask")])(scene.left)


def finished(scene: Setting) -> None:
    """The job was cancelled; only a rerun can do anything."""
    busy(scene)
    reporting(Cancelled())(scene.right)


SCENES = {"busy": busy, "joining": joining, "finished": finished}
PAIRS = {
    # On a busy job one completion is like another; where they meet, they join.
    "busy": [(a, b) for a in NAMES for b in NAMES if "complete-sibling" not in (a, b) and (a, b) != ("rerun", "rerun")],
    "joining": [(a, b) for a in NAMES[:5] for b in NAMES[:5] if "complete" in (a + b)],
    "finished": [(a, b) for a in NAMES for b in NAMES if "rerun" in (a, b) and "complete-sibling" not in (a, b)],
}


class End(NamedTuple):
    """Everything that must be as in one of the two orders."""

    state: JobState
    results: Mapping[str, object]
    answers: tuple[bool, bool]


def look(world: World, first: bool, second: bool) -> End:
    world.check()
    state = world.state(JOB)
    check_state(PLAN, state)
    return End(state, {key: row.result for key, row in world.steps(JOB).items()}, (first, second))


def in_order(scene: Setting, prepare: Callable[[Setting], None], a: Deed, b: Deed) -> list[End]:
    prepare(scene)
    one = a(scene.left)
    both = look(scene.world, one, b(scene.right))
    prepare(scene)
    two = b(scene.right)
    return [both, look(scene.world, a(scene.left), two)]


def interleaved(
    scene: Setting, prepare: Callable[[Setting], None], names: tuple[str, str], pause_after: int
) -> tuple[End, int]:
    """`a` does this many statements, then `b` all it can, then `a` the rest; with the number of `a`'s statements."""
    table = deeds(scene.world)
    prepare(scene)
    a = Actor(scene.left, table[names[0]], blocked=lambda: scene.blocked(scene.left))
    a.go(pause_after)
    b = Actor(scene.right, table[names[1]], blocked=lambda: scene.blocked(scene.right))
    b.go_on()
    first = a.end()
    second = b.end()
    if not first and names[0] in SKIPPING:
        first = table[names[0]](scene.left)
    if not second and names[1] in SKIPPING:
        second = table[names[1]](scene.right)
    return look(scene.world, first, second), len(a.statements)


def check_pair(scene: Setting, name: str, names: tuple[str, str], step: int = 1) -> int:
    table, prepare = deeds(scene.world), SCENES[name]
    allowed = in_order(scene, prepare, table[names[0]], table[names[1]])
    assert any(any(end.answers) for end in allowed), "nothing happens here in any order"
    pause_after, count = 0, 1
    while pause_after <= count:
        end, count = interleaved(scene, prepare, names, pause_after)
        assert end in allowed, f"{names} paused after {pause_after}:\n{end}\nis none of\n{allowed[0]}\n{allowed[1]}"
        pause_after += step
    return count


@pytest.fixture(scope="module")
def postgres_scene(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """One database for all pairs: each begins by clearing it."""
    template = postgres_server.template("template_migrated", migrate)
    url = postgres_server.create_database("interleavings", template=template)
    with setting(url, tmp_path_factory.mktemp("interleavings")) as scene:
        yield scene
    postgres_server.drop_database("interleavings")


@pytest.mark.parametrize(("name", "first"), sorted({(name, a) for name in SCENES for a, _ in PAIRS[name]}))
def test_two_operations_on_one_job_are_as_good_as_in_order(postgres_scene: Setting, name: str, first: str) -> None:
    """`first` is stopped before each of its statements in turn; the other goes as far as locks let it."""
    for pair in PAIRS[name]:
        if pair[0] == first:
            assert check_pair(postgres_scene, name, pair) > 1


@pytest.mark.parametrize("name", SCENES)
def test_on_sqlite_the_second_waits_for_the_first(name: str, migrated_file: Path, tmp_path: Path) -> None:
    """A writer holds the whole database: there is one point to stop at, inside the first transaction."""
    path = tmp_path / "docmill.db"
    path.write_bytes(migrated_file.read_bytes())
    with setting(f"sqlite:///{path}", tmp_path) as scene:
        for pair in PAIRS[name]:
            if pair[0] <= pair[1]:
                check_pair(scene, name, pair, step=6)


def test_without_the_lock_on_the_job_a_join_goes_wrong(
    postgres_copy_of: PostgresCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interleavings are themselves tested: take the lock out and they must notice."""
    unlocked = postgres.LOCK_JOBS.replace("for no key update", "")
    assert unlocked != postgres.LOCK_JOBS
    monkeypatch.setattr(postgres, "LOCK_JOBS", unlocked)
    with (
        setting(postgres_copy_of("migrated", migrate), tmp_path) as scene,
        pytest.raises((WrongCount, AssertionError, psycopg.Error)),
    ):
        check_pair(scene, "joining", ("complete", "complete-sibling"))
