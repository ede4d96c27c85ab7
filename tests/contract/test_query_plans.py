"""On PostgreSQL, under the settings of the lanes, every hot statement finds its rows by the index made for it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import insert, text
from sqlalchemy.dialects import sqlite as sqlite_dialect

from docmill.db.database import Database, Session
from docmill.db.tables import callbacks, review_items
from docmill.engine.batch import Batch, NewBatch
from docmill.engine.sql import postgres as sql
from docmill.engine.sql import sqlite, statements
from docmill.engine.sql.arrays import plain_array
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.review import queue as review_queue
from docmill.testing.oracle import START
from docmill.testing.samples import chain
from docmill.testing.world import ANN, World, migrate
from tests.conftest import PostgresCopies
from tests.contract.desk import item_row

IDS = plain_array([new_id(), new_id()])
READY = "ix_processing_job_steps_ready"
RUNNING = "ix_processing_job_steps_running"
WAITING = "ix_processing_job_steps_waiting"
STEPS = "pk_processing_job_steps"
JOBS = "pk_processing_jobs"
OPEN_BATCHES = "ix_processing_batches_open"
BATCH = new_id()

_STEP_COLUMNS = (
    *("job_id", "position", "queue", "status", "epoch", "failures", "crashes", "checkpointed", "worker_id"),
    *("due_at", "deadline_at", "reason", "result", "error", "old_epoch"),
)
_STEP_ARRAYS = dict.fromkeys(_STEP_COLUMNS, "{}")

STATEMENTS: dict[str, tuple[str, Any, set[str]]] = {
    "lock_jobs": (sql.LOCK_JOBS, [IDS], {JOBS}),
    "try_lock_jobs": (sql.TRY_LOCK_JOBS, [IDS], {JOBS}),
    "load_jobs": (sql.LOAD_JOBS, [IDS], {JOBS}),
    "load_steps": (sql.LOAD_STEPS, [IDS], {STEPS}),
    "ready_queues": (sql.READY_QUEUES, {"queue": "system"}, {READY}),
    "lock_candidates": (sql.LOCK_CANDIDATES, ["system", DEFAULT_ORG, 0, START, 10], {READY, JOBS}),
    "update_steps": (sql.UPDATE_STEPS, {"now": START, **_STEP_ARRAYS}, {STEPS}),
    "update_jobs": (sql.UPDATE_JOBS, [START, START, IDS, "{2,2}", "{}", "{}", "{}", "{}", "{}"], {JOBS}),
    "delete_parts": (sql.DELETE_PARTS, [IDS, "{0,1}"], {"pk_processing_step_parts"}),
    "running_steps": (sql.RUNNING_STEPS, [ANN, 100], {RUNNING}),
    "orphaned_steps": (sql.ORPHANED_STEPS, [100], {RUNNING, "pk_workers"}),
    "overdue_steps": (sql.OVERDUE_STEPS, [START, 100], {WAITING}),
    "next_due": (sql.NEXT_DUE, [START, "{system,system!}"], {READY}),
    "received_callbacks": (
        statements.RECEIVED_CALLBACKS.postgres,
        {"job_id": new_id(), "position": 0},
        {"ix_processing_callbacks_received"},
    ),
    "forgotten_callbacks": (
        statements.FORGOTTEN_CALLBACKS.postgres,
        {"limit": 100},
        {"ix_processing_callbacks_received", STEPS},
    ),
    "lock_batch": (statements.LOCK_BATCH.postgres, {"id": BATCH}, {"pk_processing_batches"}),
    "lock_held": (statements.LOCK_HELD.postgres, {"batch_id": BATCH, "limit": 10}, {"ix_processing_jobs_held"}),
    "hungry_batches": (statements.HUNGRY_BATCHES.postgres, {"limit": 10}, {OPEN_BATCHES}),
    "cancelled_batches": (statements.CANCELLED_BATCHES.postgres, {"limit": 10}, {OPEN_BATCHES}),
    "unfinished_of_batch": (
        statements.UNFINISHED_OF_BATCH.postgres,
        {"batch_id": BATCH, "after": BATCH, "limit": 500},
        {"ix_processing_jobs_batch"},
    ),
    "active_jobs": (
        statements.ACTIVE_JOBS.postgres,
        {"keys": f'[["{DEFAULT_ORG}","document","1","sample"]]'},
        {"uq_processing_jobs_active"},
    ),
}


FOR_ONE_ORGANISATION = {"lock_batch": {"ix_processing_batches_org"}}
"""By organisation and id, where row-level security names the organisation: as direct a way to one row."""


@pytest.fixture(scope="module")
def history(postgres_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with a history: most rows are of the past."""
    url = postgres_server.create_database("plans", template=postgres_server.template("template_migrated", migrate))
    world = World(Database(url), tmp_path_factory.mktemp("plans"))
    batches = [NewBatch(id=id_, org_id=DEFAULT_ORG, max_active=500) for id_ in (BATCH, *(new_id() for _ in range(9)))]
    new = [replace(world.new_job(chain(3)), batch_id=batch.id) for batch in batches for _ in range(40)]
    world.commit(Batch(submissions=new, batches=batches))
    for _ in range(3):
        world.run_to_end()
    world.commit(Batch(submissions=[world.new_job(chain(3)) for _ in range(20)]))
    world.claim(5)
    with world.database.write() as connection:
        row = {"org_id": DEFAULT_ORG, "job_id": new_id(), "payload": {}, "outcome": "applied", "received_at": START}
        connection.execute(insert(callbacks), [{"id": new_id(), "position": n % 9, **row} for n in range(2000)])
    with world.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("vacuum analyze")
    yield world.database
    world.close()
    postgres_server.drop_database("plans")


@pytest.fixture(scope="module", params=["lane A", "lane B"])
def lane(request: pytest.FixtureRequest, history: Database) -> Iterator[Session]:
    """A lane's connection to it.

    Lane A works for all organisations, lane B (and services) for one: row-level security must cost neither its indexes.
    """
    view = history.as_engine() if request.param == "lane A" else history.scoped(DEFAULT_ORG)
    session = view.session()
    yield session
    session.close()


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_hot_statement_reads_only_through_its_indexes(lane: Session, name: str) -> None:
    statement, parameters, wanted = STATEMENTS[name]
    with lane.write():
        if "workers" in statement:
            # Only the sweeper asks for them, which is of lane A's kind.
            lane.raw.execute("set local role docmill_engine")
        row = lane.raw.execute("explain (format json) " + statement, parameters).fetchone()
    found = list(nodes(row[0][0]["Plan"]))
    assert "Seq Scan" not in {node["Node Type"] for node in found}
    used = {node["Index Name"] for node in found if "Index Name" in node}
    assert used in (wanted, FOR_ONE_ORGANISATION.get(name, wanted))
    assert not {node["Node Type"] for node in found} & {"Hash Join", "Merge Join"}


def test_a_queue_of_thousands_is_not_read_to_find_its_organisations(
    postgres_copy_of: PostgresCopies, tmp_path: Path
) -> None:
    """Buffers touched by READY_QUEUES do not grow with the queue."""
    world = World(Database(postgres_copy_of("migrated", migrate)), tmp_path)

    def touched() -> int:
        with world.store.session.write():
            query = "explain (analyze, buffers, format json) " + sql.READY_QUEUES
            row = world.store.session.raw.execute(query, {"queue": "system"}).fetchone()
        plan = row[0][0]["Plan"]
        return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])

    world.commit(Batch(submissions=[world.new_job(chain(1)) for _ in range(10)]))
    touched()
    few = touched()
    world.commit(Batch(submissions=[world.new_job(chain(1)) for _ in range(3000)]))
    touched()
    assert touched() <= few + 10
    world.close()


@pytest.mark.parametrize("scoped", [False, True], ids=["lane A", "lane B"])
def test_entities_are_looked_up_one_by_one_before_anybody_has_counted_the_jobs(
    postgres_copy_of: PostgresCopies, tmp_path: Path, scoped: bool
) -> None:
    """Thousands submitted at once to a new installation: its statistics still say that nothing is there."""
    world = World(Database(postgres_copy_of("migrated", migrate)), tmp_path)
    new = [world.new_job(chain(1)) for _ in range(500)]
    world.commit(Batch(submissions=new))
    keys = orjson.dumps([[job.org_id, job.entity_type, job.entity_id, "sample"] for job in new]).decode()
    with world.store.session.write():
        if scoped:
            world.store.session.act_for(DEFAULT_ORG)
        query = "explain (analyze, format json) " + statements.ACTIVE_JOBS.postgres
        row = world.store.session.raw.execute(query, {"keys": keys}).fetchone()
    world.close()
    assert sum(node.get("Rows Removed by Filter", 0) for node in nodes(row[0][0]["Plan"])) == 0
    assert sum(node.get("Rows Removed by Join Filter", 0) for node in nodes(row[0][0]["Plan"])) == 0


@pytest.mark.parametrize("scoped", [False, True], ids=["lane A", "lane B"])
def test_jobs_named_by_id_are_the_only_ones_read_before_anybody_has_counted_them(
    postgres_copy_of: PostgresCopies, tmp_path: Path, scoped: bool
) -> None:
    """Row-level security must not lead through all jobs of the organisation."""
    world = World(Database(postgres_copy_of("migrated", migrate)), tmp_path)
    new = [world.new_job(chain(1)) for _ in range(500)]
    world.commit(Batch(submissions=new))
    ids = [job.id for job in new[:5]]
    removed = 0
    with world.store.session.write():
        if scoped:
            world.store.session.act_for(DEFAULT_ORG)
        for statement in (sql.LOCK_JOBS, sql.LOAD_JOBS, sql.LOAD_STEPS):
            row = world.store.session.raw.execute(f"explain (analyze, format json) {statement}", [ids]).fetchone()
            removed += sum(node.get("Rows Removed by Filter", 0) for node in nodes(row[0][0]["Plan"]))
    world.close()
    assert removed == 0


SQLITE_STATEMENTS: dict[str, tuple[str, int]] = {
    "lock_jobs": (sqlite.LOCK_JOBS, 1),
    "load_jobs": (sqlite.LOAD_JOBS, 1),
    "load_steps": (sqlite.LOAD_STEPS, 1),
    "next_ready_queue": (sqlite.NEXT_READY_QUEUE, 3),
    "candidates": (sqlite.CANDIDATES, 5),
    "update_steps": (sqlite.UPDATE_STEPS, 17),
    "update_jobs": (sqlite.UPDATE_JOBS, 9),
    "delete_parts": (sqlite.DELETE_PARTS, 2),
    "running_steps": (sqlite.RUNNING_STEPS, 2),
    "orphaned_steps": (sqlite.ORPHANED_STEPS, 1),
    "overdue_steps": (sqlite.OVERDUE_STEPS, 2),
    "next_due": (sqlite.NEXT_DUE, 4),
}


def scans(path: Path, statement: str, parameters: Any) -> list[str]:
    """Where the whole of something is read. A scan of a partial index reads what is live, and is no such place."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("explain query plan " + statement, parameters).fetchall()
    found = [detail for *_, detail in rows if detail.startswith("SCAN")]
    return [detail for detail in found if "VIRTUAL TABLE" not in detail and "USING INDEX ix_" not in detail]


@pytest.mark.parametrize("name", SQLITE_STATEMENTS)
def test_on_sqlite_too_no_table_is_read_from_end_to_end(migrated_file: Path, name: str) -> None:
    statement, parameters = SQLITE_STATEMENTS[name]
    assert scans(migrated_file, statement, ["[]"] * parameters) == []


BATCH_STATEMENTS = (
    "LOCK_BATCH",
    "LOCK_HELD",
    "HUNGRY_BATCHES",
    "CANCELLED_BATCHES",
    "UNFINISHED_OF_BATCH",
    "ACTIVE_JOBS",
)


@pytest.mark.parametrize("name", BATCH_STATEMENTS)
def test_nor_are_jobs_and_batches_of_the_past_for_those_of_now(migrated_file: Path, name: str) -> None:
    statement = getattr(statements, name).sqlite
    parameters = dict.fromkeys(("id", "batch_id", "after", "limit"), "1") | {"keys": "[]"}
    assert scans(migrated_file, statement, parameters) == []


REVIEW_STATEMENTS: dict[str, tuple[Any, set[str]]] = {
    "look": (
        review_queue.LOOK,
        {"ix_review_items_sla", "ix_review_items_claims", "ix_review_items_postponed"},
    ),
    "queue_first": (review_queue.QUEUE_FIRST, {"ix_review_items_queue"}),
    "queue_classes": (review_queue.QUEUE_CLASSES, {"ix_review_items_queue"}),
    "queue_heads": (review_queue.QUEUE_HEADS, {"ix_review_items_queue"}),
    "open_classes": (review_queue.OPEN_CLASSES, {"ix_review_items_open"}),
    "open_heads": (review_queue.OPEN_HEADS, {"ix_review_items_open"}),
    "open_behind": (review_queue.OPEN_BEHIND, {"ix_review_items_open"}),
    "claim": (review_queue.CLAIM, {"pk_review_items"}),
    "due_orgs": (
        review_queue.DUE_ORGS,
        {"ix_review_items_sla", "ix_review_items_claims", "ix_review_items_postponed"},
    ),
}
REVIEW_PARAMETERS = {
    "org": DEFAULT_ORG,
    "whom": "",
    "queue_class": 86_400,
    "most": 16,
    "at_place": 10.0,
    "last": new_id(),
    "item": new_id(),
    "now": START,
    "until": START,
}
OPEN_ITEMS = 100_000


@pytest.fixture(scope="module")
def waiting(postgres_server: Any) -> Iterator[Database]:
    """A hundred thousand items that nobody has looked at, and as many of the past."""
    url = postgres_server.create_database("reviews", template=postgres_server.template("template_migrated", migrate))
    database = Database(url)
    rows = [item_row(START, sla=timedelta(hours=hours), confidence=0.5) for hours in (1, 24) for _ in range(500)]
    names = ", ".join(row for row in rows[0] if row not in ("id", "document_id", "place", "status", "sla_at"))
    fresh = "gen_random_uuid(), gen_random_uuid(), place - n / 1000.0"
    columns = f"id, document_id, place, status, sla_at, {names}"
    with database.write() as connection:
        connection.execute(insert(review_items), rows)
        for status, sla_at, times in (("pending", "sla_at", OPEN_ITEMS // 1000 - 1), ("approved", "null", 100)):
            connection.execute(
                text(
                    f"insert into review_items ({columns}) select {fresh}, '{status}', {sla_at}, {names} "
                    f"from review_items, generate_series(1, {times}) n where round = 1 limit {1000 * times}"
                )
            )
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("vacuum analyze review_items")
    yield database
    database.close()
    postgres_server.drop_database("reviews")


@pytest.mark.parametrize("name", REVIEW_STATEMENTS)
def test_the_queue_of_review_is_read_by_its_indexes_however_long_it_is(waiting: Database, name: str) -> None:
    """Under the settings of services: the planner itself must prefer the index."""
    statement, wanted = REVIEW_STATEMENTS[name]
    with waiting.write() as connection:
        compiled = statement.compile(dialect=connection.dialect)
        told = connection.exec_driver_sql(
            f"explain (format json) {compiled}", {**compiled.params, **REVIEW_PARAMETERS}
        ).scalar_one()
    found = list(nodes(told[0]["Plan"]))
    assert "Seq Scan" not in {node["Node Type"] for node in found}
    assert {node["Index Name"] for node in found if "Index Name" in node} == wanted
    assert "Sort" not in {node["Node Type"] for node in found}


def test_the_best_of_some_items_is_claimed_by_their_ids(waiting: Database) -> None:
    about = {**REVIEW_PARAMETERS, "items": [new_id() for _ in range(64)]}
    with waiting.write() as connection:
        compiled = review_queue.CLAIM_BEST.compile(dialect=connection.dialect)
        told = connection.exec_driver_sql(
            f"explain (format json) {compiled}", {**compiled.params, **about}
        ).scalar_one()
    found = list(nodes(told[0]["Plan"]))
    assert "Seq Scan" not in {node["Node Type"] for node in found}
    assert {node["Index Name"] for node in found if "Index Name" in node} == {"pk_review_items"}


def test_the_next_item_of_a_hundred_thousand_touches_few_pages(waiting: Database) -> None:
    with waiting.read() as connection:
        compiled = review_queue.QUEUE_HEADS.compile(dialect=connection.dialect)
        told = connection.exec_driver_sql(
            f"explain (analyze, buffers, format json) {compiled}", {**compiled.params, **REVIEW_PARAMETERS}
        ).scalar_one()
    plan = told[0]["Plan"]
    assert int(plan["Actual Rows"]) == 16
    assert int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"]) < 40


SQLITE_REVIEW = [name for name in REVIEW_STATEMENTS if name not in ("claim", "queue_first", "look")]


@pytest.mark.parametrize("name", SQLITE_REVIEW)
def test_on_sqlite_too_the_queue_of_review_is_read_by_its_indexes(migrated_file: Path, name: str) -> None:
    statement, wanted = REVIEW_STATEMENTS[name]
    compiled = statement.compile(dialect=sqlite_dialect.dialect(paramstyle="named"))
    values = {**compiled.params, **REVIEW_PARAMETERS, "now": START.isoformat(), "until": START.isoformat()}
    with closing(sqlite3.connect(migrated_file)) as connection:
        found = " ".join(row[-1] for row in connection.execute(f"explain query plan {compiled}", values))
    assert all(index in found for index in wanted)
    assert "SCAN review_items" not in found
    assert "USE TEMP B-TREE FOR ORDER BY" not in found
