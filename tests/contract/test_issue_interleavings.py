"""A resolution and whatever else may happen to the job at that moment end as if one had come after the other."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import delete, select

from docmill.db.tables import issues as table
from docmill.engine.batch import Batch, QueueClaim, Report
from docmill.engine.events import Cancelled, Suspended
from docmill.engine.issues import NewIssue
from docmill.engine.sql import postgres
from docmill.engine.sql.rows import WrongCount
from docmill.engine.state import JobState
from docmill.engine.store import Store
from docmill.model.errors import Conflict
from docmill.model.ids import derived_id
from docmill.model.issues import IssueAction
from docmill.model.statuses import StepKind
from docmill.services.resolving import Resolver
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, make_plan
from docmill.testing.servers import PostgresServer
from docmill.testing.stepwise import Actor
from docmill.testing.world import BOB, World, migrate
from tests.contract.test_interleavings import Setting, setting

PLAN = make_plan([Draft(key="ask", kind=StepKind.HUMAN, max_attempts=1), Draft(key="beside")])
JOB = derived_id("asked")
TOTAL, VENDOR = derived_id("issue", "total"), derived_id("issue", "vendor")

Deed = Callable[[Store], object]


def resolving(issue_id: str, key: str, action: IssueAction = IssueAction.CONTINUE) -> Deed:
    def deed(store: Store) -> object:
        data = {key: 1} if action is IssueAction.CONTINUE else None
        try:
            Resolver(issue_id, data=data, action=action, by="ann", note=None, also=lambda *_: None).resolve(store)
        except Conflict as refusal:
            return refusal.code
        return "resolved"

    return deed


def cancel(store: Store) -> object:
    return store.commit(Batch(reports=[Report(job_id=JOB, event=Cancelled())])).accepted


def sweeping(world: World) -> Deed:
    return lambda store: world.sweep(own=BOB, store=store).overdue


def deeds(world: World) -> Mapping[str, Deed]:
    return {
        "total": resolving(TOTAL, "total"),
        "total again": resolving(TOTAL, "again"),
        "vendor": resolving(VENDOR, "vendor"),
        "reject": resolving(VENDOR, "", IssueAction.FAIL),
        "retry": resolving(TOTAL, "", IssueAction.RETRY),
        "cancel": cancel,
        "deadline": sweeping(world),
    }


PAIRS = [
    ("total", "total again"),
    ("total", "vendor"),
    ("vendor", "total"),
    ("total", "reject"),
    ("retry", "vendor"),
    ("total", "cancel"),
    ("cancel", "total"),
    ("retry", "cancel"),
    ("total", "deadline"),
    ("deadline", "total"),
    ("retry", "deadline"),
]


class End(NamedTuple):
    """Everything that must be as in one of the two orders."""

    state: JobState
    result: object
    issues: list[tuple[str, str]]
    answers: tuple[object, object]


def prepare(scene: Setting) -> None:
    """A step that waits for two answers, its deadline long past, beside one that runs."""
    world = scene.world
    world.clear()
    with world.database.write() as connection:
        connection.execute(delete(table))
    for store in (scene.left, scene.right):
        store.known.forget()
    claims = [QueueClaim(queue="human", limit=1), QueueClaim(queue="system", limit=1)]
    scene.left.commit(Batch(submissions=[world.new_job(PLAN, id=JOB)]))
    scene.left.commit(Batch(claims=claims, worker=BOB))
    asked = tuple(NewIssue(id=id_, code="q", title="?", blocking=True, corrects=True) for id_ in (TOTAL, VENDOR))
    wait = Suspended(position=0, epoch=1, deadline=START, result='{"kept": 1}')
    scene.right.commit(Batch(reports=[Report(job_id=JOB, event=wait, issues=asked)]))


def look(world: World, answers: tuple[object, object]) -> End:
    world.check()
    with world.looking() as connection:
        found = connection.execute(select(table.c.id, table.c.status).order_by(table.c.id)).all()
    waiting = world.state(JOB).steps[0].status == "WAITING"
    statuses = [(row.id, row.status) for row in found]
    assert waiting == any(status == "open" for _, status in statuses), "a question is open exactly while its step waits"
    return End(world.state(JOB), world.steps(JOB)["ask"].result, statuses, answers)


def in_order(scene: Setting, a: Deed, b: Deed) -> list[End]:
    prepare(scene)
    first = a(scene.left)
    both = look(scene.world, (first, b(scene.right)))
    prepare(scene)
    second = b(scene.right)
    return [both, look(scene.world, (a(scene.left), second))]


def check_pair(scene: Setting, names: tuple[str, str], step: int = 1) -> None:
    table_of = deeds(scene.world)
    a_deed, b_deed = (table_of[name] for name in names)
    allowed = in_order(scene, a_deed, b_deed)
    pause_after, count = 0, 1
    while pause_after <= count:
        prepare(scene)
        a = Actor(scene.left, a_deed, blocked=lambda: scene.blocked(scene.left), all_statements=True)
        a.go(pause_after)
        b = Actor(scene.right, b_deed, blocked=lambda: scene.blocked(scene.right))
        b.go_on()
        first, second = a.end(), b.end()
        # The sweeper passes over a job that somebody holds and comes again later.
        first = a_deed(scene.left) if first == 0 else first
        second = b_deed(scene.right) if second == 0 else second
        end = look(scene.world, (first, second))
        assert end in allowed, f"{names} paused after {pause_after}:\n{end}\nis none of\n{allowed[0]}\n{allowed[1]}"
        count = len(a.statements)
        pause_after += step


@pytest.fixture(scope="module")
def postgres_scene(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """One database for all pairs: each begins by clearing it."""
    template = postgres_server.template("template_migrated", migrate)
    url = postgres_server.create_database("issue_interleavings", template=template)
    with setting(url, tmp_path_factory.mktemp("issue_interleavings")) as scene:
        yield scene
    postgres_server.drop_database("issue_interleavings")


def test_without_the_lock_on_the_job_an_answer_is_lost(
    postgres_scene: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interleavings are themselves tested: take the lock out and they must notice."""
    unlocked = postgres.LOCK_JOBS.replace("for no key update", "")
    assert unlocked != postgres.LOCK_JOBS
    monkeypatch.setattr(postgres, "LOCK_JOBS", unlocked)
    with pytest.raises((WrongCount, AssertionError, psycopg.Error)):
        check_pair(postgres_scene, ("total", "vendor"))


@pytest.mark.parametrize("names", PAIRS, ids=" × ".join)
def test_a_resolution_and_another_deed_are_as_good_as_in_order(postgres_scene: Setting, names: tuple[str, str]) -> None:
    check_pair(postgres_scene, names)


def test_on_sqlite_the_second_waits_for_the_first(migrated_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "docmill.db"
    path.write_bytes(migrated_file.read_bytes())
    with setting(f"sqlite:///{path}", tmp_path) as scene:
        for names in PAIRS:
            check_pair(scene, names, step=2)
