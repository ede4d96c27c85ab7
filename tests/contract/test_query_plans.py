"""On PostgreSQL, under the settings of the lanes, every hot statement finds its rows by the index made for it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import insert

from docmill.db.database import Database, Session
from docmill.db.tables import callbacks
from docmill.engine.batch import Batch, NewBatch
from docmill.engine.sql import postgres as sql
from docmill.engine.sql import sqlite, statements
from docmill.engine.sql.arrays import plain_array
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.testing.oracle import START
from docmill.testing.samples import chain
from docmill.testing.world import ANN, World, migrate
from tests.conftest import PostgresCopies

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


@pytest.fixture(scope="module")
def lane(postgres_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A lane's connection to a database with a history: most rows are of the past."""
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
    session = world.database.session()
    yield session
    session.close()
    world.close()
    postgres_server.drop_database("plans")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_hot_statement_reads_only_through_its_indexes(lane: Session, name: str) -> None:
    statement, parameters, wanted = STATEMENTS[name]
    with lane.write():
        row = lane.raw.execute("explain (format json) " + statement, parameters).fetchone()
    found = list(nodes(row[0][0]["Plan"]))
    assert "Seq Scan" not in {node["Node Type"] for node in found}
    assert {node["Index Name"] for node in found if "Index Name" in node} == wanted
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


def test_entities_are_looked_up_one_by_one_before_anybody_has_counted_the_jobs(
    postgres_copy_of: PostgresCopies, tmp_path: Path
) -> None:
    """Thousands submitted at once to a new installation: its statistics still say that nothing is there."""
    world = World(Database(postgres_copy_of("migrated", migrate)), tmp_path)
    new = [world.new_job(chain(1)) for _ in range(500)]
    world.commit(Batch(submissions=new))
    keys = orjson.dumps([[job.org_id, job.entity_type, job.entity_id, "sample"] for job in new]).decode()
    with world.store.session.write():
        query = "explain (analyze, format json) " + statements.ACTIVE_JOBS.postgres
        row = world.store.session.raw.execute(query, {"keys": keys}).fetchone()
    world.close()
    assert sum(node.get("Rows Removed by Filter", 0) for node in nodes(row[0][0]["Plan"])) == 0
    assert sum(node.get("Rows Removed by Join Filter", 0) for node in nodes(row[0][0]["Plan"])) == 0


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
