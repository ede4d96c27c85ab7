"""`ctx.reconcile`: a rerun writes the same rows again, and no row goes that a later stage may be using."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event

import pytest
from sqlalchemy import Connection, text

from docmill.engine.batch import Batch, NewJob, Report, StepRun
from docmill.engine.context import AppliedDatabase, Applying
from docmill.engine.events import Cancelled, Rerun
from docmill.engine.write_only import NeedsFullDatabase, WriteOnlyDatabase
from docmill.model.errors import PermanentError
from docmill.model.ids import DEFAULT_ORG
from docmill.plugin import Reconciled, derived_id
from docmill.testing.samples import single_step
from docmill.testing.waiting import until
from docmill.testing.world import World

TABLES = (
    "create table chunks (id text primary key, book_id text not null, position integer not null, content text, "
    "note text, parent_id text references chunks (id), superseded_at {time}, unique (book_id, id))",
    "create table links (id text primary key, chunk_id text references chunks (id) on delete {action})",
    "create table pairs (book_id text not null, chunk_id text not null, "
    "foreign key (book_id, chunk_id) references chunks (book_id, id) on delete cascade)",
    "create table implied (chunk_id text references chunks on delete set null)",
)
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

# SQLite has one writer: there is nobody else to be in the middle of anything.
ON_POSTGRES = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@dataclass
class Shelf:
    """A book under a job that writes its chunks."""

    world: World
    run: StepRun

    def reconcile(
        self,
        contents: Sequence[str],
        connection: Connection | None = None,
        *,
        superseded: str | None = None,
        used_by: Sequence[tuple[str, str]] = (),
    ) -> Reconciled:
        """Make these the chunks of the book, in a transaction of its own or in this one."""
        if connection is None:
            with self.transaction() as own:
                return self.reconcile(contents, own, superseded=superseded, used_by=used_by)
        context = Applying(self.run, AppliedDatabase(connection), NOW)
        rows = [
            {"id": chunk_id(position, content), "position": position, "content": content}
            for position, content in enumerate(contents)
        ]
        scope = {"book_id": "book"}
        return context.reconcile("chunks", scope=scope, rows=rows, superseded=superseded, used_by=used_by)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.world.store.session.write() as connection:
            self.world.store.session.act_for(DEFAULT_ORG)
            yield connection

    def execute(self, statement: str, **values: object) -> None:
        with self.world.database.write() as connection:
            connection.execute(text(statement), values)

    def all(self, query: str) -> list[object]:
        with self.world.looking() as connection:
            return [row[0] for row in connection.execute(text(query))]

    @property
    def contents(self) -> list[object]:
        return self.all("select content from chunks order by position, content")

    def other_job(self, family: str = "connect", entity_id: str | None = None) -> NewJob:
        """A job of another template, about the same entity unless told."""
        job = self.world.new_job(single_step())
        return replace(job, entity_id=entity_id or self.run.job.entity_id, family=family)


def chunk_id(position: int, content: str) -> str:
    return derived_id("book", position, content)


@pytest.fixture(params=["no action", "cascade", "set null"])
def action(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(world: World, action: str = "no action") -> Shelf:
    time = "timestamptz" if world.database.kind == "postgresql" else "text"
    with world.database.write() as connection:
        for statement in TABLES:
            connection.execute(text(statement.format(time=time, action=action)))
    world.submit(single_step())
    return Shelf(world, world.claim_one())


@pytest.fixture
def shelf(world: World) -> Shelf:
    return made(world)


def counts(done: Reconciled) -> tuple[int, int, int, int]:
    return done.written, done.unchanged, done.removed, len(done.kept)


# Writing.


def test_a_rerun_changes_no_row(shelf: Shelf) -> None:
    assert counts(shelf.reconcile(["one", "two"])) == (2, 0, 0, 0)
    # Neither columns that are not given, nor the rows themselves: what a later stage noted stays.
    shelf.execute("update chunks set note = 'embedded'")
    before = shelf.all("select xmin::text from chunks order by id") if is_postgres(shelf) else []
    assert counts(shelf.reconcile(["one", "two"])) == (0, 2, 0, 0)
    assert shelf.all("select note from chunks") == ["embedded"] * 2
    if is_postgres(shelf):
        assert shelf.all("select xmin::text from chunks order by id") == before


def test_changed_columns_of_the_same_row_are_written(shelf: Shelf) -> None:
    shelf.reconcile(["one", "two"])
    shelf.execute("update chunks set content = null where position = 0")
    assert counts(shelf.reconcile(["one", "two"])) == (1, 1, 0, 0)
    assert shelf.contents == ["one", "two"]


def test_what_is_no_longer_produced_is_removed(shelf: Shelf) -> None:
    shelf.reconcile(["one", "two", "three"])
    done = shelf.reconcile(["one", "2"])
    assert (*counts(done), done.busy) == (1, 1, 2, 0, False)
    assert shelf.contents == ["one", "2"]


def test_other_scopes_are_left_alone(shelf: Shelf) -> None:
    shelf.execute("insert into chunks (id, book_id, position, content) values ('x', 'another', 0, 'theirs')")
    shelf.reconcile(["one"])
    assert counts(shelf.reconcile([])) == (0, 0, 1, 0)
    assert shelf.contents == ["theirs"]


def test_hundreds_of_rows_go_the_same_way(shelf: Shelf) -> None:
    assert shelf.reconcile([f"old {n}" for n in range(1200)]).written == 1200
    assert counts(shelf.reconcile([f"new {n}" for n in range(1200)])) == (1200, 0, 1200, 0)


def test_a_key_of_another_scope_is_refused_and_its_row_unharmed(shelf: Shelf) -> None:
    theirs = "insert into chunks (id, book_id, position, content) values (:id, 'another', 0, 'theirs')"
    shelf.execute(theirs, id=chunk_id(0, "one"))
    with pytest.raises(PermanentError, match="belong to another scope"):
        shelf.reconcile(["one"])
    assert shelf.contents == ["theirs"]


@pytest.mark.parametrize(
    ("scope", "rows", "said"),
    [
        ({}, [], "Without a scope"),
        ({"book_id": "b"}, [{"id": "1"}, {"id": "1"}], "the same id"),
        ({"book_id": "b"}, [{"id": "1"}, {"id": "2", "position": 1}], "the same columns"),
        ({"book_id": "b"}, [{"position": 1}], "the same columns"),
        ({"book_id": "b"}, [{"id": "1", "book_id": "c"}], "outside its scope"),
        ({"book_id": "b"}, [{"id": "1", "content = '' --": 1}], "cannot be the name"),
    ],
)
def test_what_cannot_be_one_set_of_rows_is_refused(
    shelf: Shelf, scope: dict[str, object], rows: list[dict[str, object]], said: str
) -> None:
    with pytest.raises(PermanentError, match=said), shelf.transaction() as connection:
        Applying(shelf.run, AppliedDatabase(connection), NOW).reconcile("chunks", scope=scope, rows=rows)
    assert shelf.contents == []


# Rows that other rows point at.

POINTERS = [
    "insert into links values ('l', :id)",
    "insert into pairs values ('book', :id)",
    "insert into implied values (:id)",
    "insert into chunks (id, book_id, position, parent_id) values ('child', 'another', 9, :id)",
]


@pytest.mark.parametrize("pointer", POINTERS, ids=["plain", "composite", "implied", "own table"])
def test_a_row_that_another_points_at_stays_until_it_is_free(shelf: Shelf, pointer: str) -> None:
    shelf.reconcile(["one", "two"])
    shelf.execute(pointer, id=chunk_id(0, "one"))
    done = shelf.reconcile(["1", "2"])
    assert (done.written, done.removed, done.kept, done.busy) == (2, 1, (chunk_id(0, "one"),), False)
    for table in ("links", "pairs", "implied", "chunks where id = 'child'"):
        shelf.execute(f"delete from {table}")
    assert counts(shelf.reconcile(["1", "2"])) == (0, 2, 1, 0)
    assert shelf.contents == ["1", "2"]


def test_whatever_the_foreign_key_does_on_delete_the_reference_stays(world: World, action: str) -> None:
    shelf = made(world, action)
    shelf.reconcile(["one"])
    shelf.execute("insert into links values ('l', :id)", id=chunk_id(0, "one"))
    assert shelf.reconcile([]).kept == (chunk_id(0, "one"),)
    assert shelf.all("select chunk_id from links") == [chunk_id(0, "one")]


def test_stale_rows_that_point_at_each_other_go_from_the_leaves(shelf: Shelf) -> None:
    shelf.reconcile(["root", "branch", "leaf"])
    root, branch, leaf = (chunk_id(n, content) for n, content in enumerate(("root", "branch", "leaf")))
    for child, parent in ((branch, root), (leaf, branch), (root, root)):
        shelf.execute("update chunks set parent_id = :parent where id = :child", child=child, parent=parent)
    assert counts(shelf.reconcile([])) == (0, 0, 3, 0)


def test_a_stale_row_can_be_told_from_the_others(shelf: Shelf) -> None:
    shelf.reconcile(["one", "two"], superseded="superseded_at")
    shelf.execute("insert into links values ('l', :id)", id=chunk_id(0, "one"))
    current = "select content from chunks where superseded_at is null order by position"
    shelf.reconcile(["1", "two"], superseded="superseded_at")
    assert shelf.all(current) == ["1", "two"]
    assert shelf.contents == ["1", "one", "two"]
    # It is produced again: stale no more.
    shelf.reconcile(["one", "two"], superseded="superseded_at")
    assert shelf.all(current) == ["one", "two"]


# Rows that another job may have read.


def test_nothing_goes_while_another_job_of_the_entity_is_active(shelf: Shelf) -> None:
    shelf.reconcile(["one"])
    job = shelf.other_job()
    shelf.world.commit(Batch(submissions=[job]))
    done = shelf.reconcile(["1"])
    assert (done.removed, done.kept, done.busy) == (0, (chunk_id(0, "one"),), True)
    shelf.world.report(job.id, Cancelled())
    assert counts(shelf.reconcile(["1"])) == (0, 1, 1, 0)
    # A finished job that is run again is as active as a new one.
    shelf.world.report(job.id, Rerun(positions=frozenset({0})))
    assert shelf.reconcile(["one"]).busy


def test_jobs_of_other_entities_count_only_if_they_are_named(shelf: Shelf) -> None:
    shelf.reconcile(["one"])
    shelf.world.commit(Batch(submissions=[shelf.other_job(entity_id="library")]))
    assert shelf.reconcile(["1"], used_by=[("document", "library")]).busy
    assert counts(shelf.reconcile(["1"])) == (0, 1, 1, 0)


def test_the_fast_way_of_processors_gives_way(shelf: Shelf) -> None:
    with pytest.raises(NeedsFullDatabase), shelf.transaction() as connection:
        Applying(shelf.run, WriteOnlyDatabase(connection), NOW).reconcile("chunks", scope={"book_id": "b"}, rows=[])


# Under concurrency: nothing can slip in between the look and the commit.


def is_postgres(shelf: Shelf) -> bool:
    return shelf.world.database.kind == "postgresql"


def wait_until_blocked(shelf: Shelf, future: "Future[list[object]]") -> None:
    """Until somebody waits for us; on SQLite the writers' lock cannot be looked at, so all we know is: not done."""
    if is_postgres(shelf):
        waiting = "select count(*) from pg_locks where not granted and locktype = 'advisory'"
        until(lambda: shelf.all(waiting) == [1] or future.done(), 30, what="the other to wait")
    assert not future.done()


@pytest.mark.parametrize("how", ["submitted", "run again"])
def test_a_job_that_becomes_active_after_the_look_reads_what_was_left(shelf: Shelf, how: str) -> None:
    shelf.reconcile(["one"])
    job = shelf.other_job()
    if how == "run again":
        shelf.world.commit(Batch(submissions=[job]))
        shelf.world.report(job.id, Cancelled())
    other = shelf.world.other

    def activate() -> list[object]:
        if how == "submitted":
            other.commit(Batch(submissions=[job]))
        else:
            other.commit(Batch(reports=[Report(job_id=job.id, event=Rerun(positions=frozenset({0})))]))
        return shelf.contents

    with ThreadPoolExecutor(1) as thread:
        with shelf.transaction() as connection:
            assert shelf.reconcile(["1"], connection).removed == 1
            seen = thread.submit(activate)
            wait_until_blocked(shelf, seen)
        assert seen.result(30) == ["1"]


@ON_POSTGRES
def test_a_job_that_is_being_submitted_is_seen(shelf: Shelf) -> None:
    shelf.reconcile(["one"])
    job = shelf.other_job()
    submitted, looked = Event(), Event()
    other = shelf.world.other

    def submit() -> None:
        with other.session.writing(), other.sql.transaction():
            other.begin().run(Batch(submissions=[job]))
            other.session.raw.execute("select 1").fetchall()
            submitted.set()
            looked.wait(30)

    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(submit)
        assert submitted.wait(30)
        assert shelf.reconcile(["1"]).busy
        looked.set()
        end.result(30)


@ON_POSTGRES
def test_a_reference_that_is_being_written_holds_its_row(world: World, action: str) -> None:
    shelf = made(world, action)
    shelf.reconcile(["one"])
    link = text("insert into links values ('l', :id)")
    with shelf.world.database.write() as writing:
        writing.execute(link, {"id": chunk_id(0, "one")})
        done = shelf.reconcile(["1"])
        assert (done.removed, done.kept) == (0, (chunk_id(0, "one"),))
    assert shelf.all("select chunk_id from links") == [chunk_id(0, "one")]


@ON_POSTGRES
def test_submissions_of_thousands_take_few_locks(shelf: Shelf) -> None:
    plan = single_step()
    store = shelf.world.store
    with store.session.writing(), store.sql.transaction():
        store.begin().run(Batch(submissions=[shelf.world.new_job(plan) for _ in range(1000)]))
        query = "select count(*) from pg_locks where locktype = 'advisory'"
        assert store.session.raw.execute(query).fetchall()[0][0] <= 128
