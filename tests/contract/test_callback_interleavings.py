"""A callback and whatever else may happen to its step, interleaved at every statement, end as if one had come after the
other; and of all that was stored, at most one callback moved the step.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
import pytest
from sqlalchemy import delete, select

from docmill.db.tables import callbacks as stored_callbacks
from docmill.engine.batch import Batch, Outcome, QueueClaim, Report
from docmill.engine.events import Cancelled, Event, Suspended
from docmill.engine.sql import postgres
from docmill.engine.sql.rows import WrongCount
from docmill.engine.store import Store
from docmill.engine.store_pool import StorePool
from docmill.model.callbacks import CallbackOutcome
from docmill.model.ids import derived_id
from docmill.services.callbacks import Callbacks
from docmill.testing.invariants import check_state
from docmill.testing.oracle import START
from docmill.testing.servers import PostgresServer
from docmill.testing.stepwise import Actor
from docmill.testing.world import BOB, migrate
from tests.conftest import PostgresCopies
from tests.contract.outside import Outside, asking, outside
from tests.contract.test_interleavings import Setting, setting

T = TypeVar("T")
JOB = derived_id("answered while")
PLANS = {"plain": asking("ask"), "applied": asking("ask", processor="save")}
GOOD = {CallbackOutcome.APPLIED, CallbackOutcome.RECEIVED}
Deed = Callable[[Store], bool]


class OneStore:
    """A pool of the one store that is watched."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def work(self, work: Callable[[Store], T]) -> T:
        return work(self._store)

    def commit(self, batch: Batch) -> Outcome:
        return self._store.commit(batch)


class Play(NamedTuple):
    """The two sides and what is between them."""

    scene: Setting
    out: Outside
    plan: str
    waits: bool
    overdue: bool

    def prepare(self) -> None:
        """The step is being sent out, or waits; with a deadline that is far, or has passed."""
        world = self.scene.world
        world.clear()
        with world.database.write() as connection:
            connection.execute(delete(stored_callbacks))
        for store in (self.scene.left, self.scene.right):
            store.known.forget()
        self.scene.left.commit(Batch(submissions=[world.new_job(PLANS[self.plan], id=JOB)]))
        self.scene.right.commit(Batch(claims=[QueueClaim(queue="external", limit=1)], worker=BOB))
        if self.waits:
            assert self.suspend(self.scene.right)

    def suspend(self, store: Store) -> bool:
        deadline = START + timedelta(seconds=-1 if self.overdue else 3600)
        return self._report(store, Suspended(position=0, epoch=1, deadline=deadline))

    def cancel(self, store: Store) -> bool:
        return self._report(store, Cancelled())

    def sweep(self, store: Store) -> bool:
        # What it found depends on who was first; only the end counts.
        self.scene.world.sweep(own=BOB, store=store)
        return True

    def callback(self, store: Store, status: str = "COMPLETED") -> bool:
        callbacks = Callbacks(self.scene.world.database, self.out.callbacks._bell)
        callbacks._stores = cast(StorePool, OneStore(store))
        token = self.out.tokens.make(JOB, 0, 1)
        payload = {"jobId": JOB, "stepKey": "ask", "status": status, "resultData": 42, "token": token}
        return callbacks.receive(payload, now=datetime.now(UTC)).outcome in GOOD

    def failing(self, store: Store) -> bool:
        return self.callback(store, "FAILED")

    @staticmethod
    def _report(store: Store, event: Event) -> bool:
        return store.commit(Batch(reports=[Report(job_id=JOB, event=event)])).accepted[0]

    def end(self, *answers: bool) -> tuple[Any, ...]:
        """Everything that must be as in one of the two orders."""
        world = self.scene.world
        # A callback that found its step held by nobody and not waiting is for the sweeper, which comes in any case.
        world.sweep(own=BOB)
        world.check()
        state = world.state(JOB)
        check_state(PLANS[self.plan], state)
        with world.looking() as connection:
            outcomes = [row.outcome for row in connection.execute(select(stored_callbacks))]
        assert outcomes.count("applied") <= 1
        assert "received" not in outcomes or state.steps[0].status == "IN_PROGRESS"
        return state, {key: row.result for key, row in world.steps(JOB).items()}, sorted(outcomes), answers


@pytest.fixture(scope="module")
def postgres_scene(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    template = postgres_server.template("template_migrated", migrate)
    url = postgres_server.create_database("callbacks", template=template)
    with setting(url, tmp_path_factory.mktemp("callbacks")) as scene:
        yield scene
    postgres_server.drop_database("callbacks")


@pytest.fixture
def sqlite_scene(migrated_file: Path, tmp_path: Path) -> Iterator[Setting]:
    path = tmp_path / "docmill.db"
    path.write_bytes(migrated_file.read_bytes())
    with setting(f"sqlite:///{path}", tmp_path) as scene:
        yield scene


def interleave(play: Play, first: Deed, second: Deed, step: int = 1) -> None:
    scene = play.scene
    play.prepare()
    one = first(scene.left)
    allowed = [play.end(one, second(scene.right))]
    play.prepare()
    two = second(scene.right)
    allowed.append(play.end(first(scene.left), two))
    assert any(any(end[-1]) for end in allowed), "nothing happens here in any order"
    pause_after, count = 0, 1
    while pause_after <= count:
        play.prepare()
        a = Actor(scene.left, first, blocked=lambda: scene.blocked(scene.left))
        a.go(pause_after)
        b = Actor(scene.right, second, blocked=lambda: scene.blocked(scene.right))
        b.go_on()
        end = play.end(a.end(), b.end())
        assert end in allowed, f"paused after {pause_after} ({a.statements}):\n{end}\nis none of\n{allowed}"
        pause_after, count = pause_after + step, len(a.statements)
    assert count > 3


CASES: Mapping[str, tuple[bool, bool, str, str]] = {
    # waits, overdue, and who meets whom
    "callback x suspend": (False, False, "callback", "suspend"),
    "failure x suspend": (False, False, "failing", "suspend"),
    "callback x cancel": (True, False, "callback", "cancel"),
    "callback x cancel while sent": (False, False, "callback", "cancel"),
    "callback x sweep": (True, False, "callback", "sweep"),
    "callback x deadline": (True, True, "callback", "sweep"),
    "callback x callback": (True, False, "callback", "callback"),
    "callback x failure": (True, False, "callback", "failing"),
}


def assert_as_good_as_in_order(scene: Setting, case: str, plan: str, step: int) -> None:
    waits, overdue, *names = CASES[case]
    with outside(scene.world) as out:
        play = Play(scene, out, plan, waits, overdue)
        a, b = (cast(Deed, getattr(play, name)) for name in names)
        interleave(play, a, b, step)
        interleave(play, b, a, step)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("case", CASES)
def test_a_callback_and_another_are_as_good_as_in_order(postgres_scene: Setting, case: str, plan: str) -> None:
    assert_as_good_as_in_order(postgres_scene, case, plan, 1)


def test_without_the_lock_on_the_job_a_callback_goes_wrong(
    postgres_copy_of: PostgresCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interleavings are themselves tested: take the lock out and they must notice."""
    monkeypatch.setattr(postgres, "LOCK_JOBS", postgres.LOCK_JOBS.replace("for no key update", ""))
    with (
        setting(postgres_copy_of("migrated", migrate), tmp_path) as scene,
        pytest.raises((WrongCount, AssertionError, psycopg.Error)),
    ):
        assert_as_good_as_in_order(scene, "callback x callback", "plain", 1)


@pytest.mark.parametrize("case", CASES)
def test_on_sqlite_the_second_waits_for_the_first(sqlite_scene: Setting, case: str) -> None:
    assert_as_good_as_in_order(sqlite_scene, case, "plain", 3)
