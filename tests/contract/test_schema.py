"""Tables, migrations, CHECK constraints, enums and the transition tables all say the same."""

import re
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

import docmill.db
from docmill.db import schema
from docmill.db.database import Database
from docmill.db.tables import metadata
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, NewBatch
from docmill.model.ai import BreakerState, CallOutcome
from docmill.model.callbacks import CallbackOutcome
from docmill.model.documents import DocumentStatus
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.issues import IssueSeverity, IssueStatus
from docmill.model.people import Role
from docmill.model.review import FieldState, ReviewStatus, SlaState
from docmill.model.statuses import (
    JOB_TRANSITIONS,
    STEP_TRANSITIONS,
    FailureAction,
    JobStatus,
    SkipReason,
    StepKind,
    StepStatus,
)
from docmill.model.webhooks import DeliveryStatus, WebhookEvent
from docmill.testing.samples import single_step
from docmill.testing.world import World
from tests.conftest import PostgresCopies

CHECKED: dict[tuple[str, str], type[StrEnum]] = {
    ("processing_jobs", "status"): JobStatus,
    ("processing_job_steps", "status"): StepStatus,
    ("processing_job_steps", "reason"): SkipReason,
    ("workers", "status"): WorkerStatus,
    ("processing_issues", "severity"): IssueSeverity,
    ("processing_issues", "status"): IssueStatus,
    ("processing_callbacks", "outcome"): CallbackOutcome,
    ("process_template_steps", "kind"): StepKind,
    ("process_template_steps", "on_failure_action"): FailureAction,
    ("ai_calls", "outcome"): CallOutcome,
    ("ai_breakers", "state"): BreakerState,
    ("documents", "status"): DocumentStatus,
    ("webhook_deliveries", "event"): WebhookEvent,
    ("webhook_deliveries", "status"): DeliveryStatus,
    ("review_items", "status"): ReviewStatus,
    ("review_items", "sla_state"): SlaState,
    ("extracted_fields", "state"): FieldState,
    ("memberships", "role"): Role,
    ("invitations", "role"): Role,
    ("api_keys", "role"): Role,
}


@pytest.fixture
def migrated(database_url: str) -> Iterator[Connection]:
    """The database as the migrations make it."""
    database = Database(database_url)
    with database.read() as connection:
        yield connection
    database.close()


@pytest.fixture
def created(migrated: Connection, postgres_copy_of: PostgresCopies, tmp_path: Path) -> Iterator[Connection]:
    """The database as the tables describe it, of the same kind."""
    if migrated.dialect.name == "postgresql":
        url = postgres_copy_of("bare", lambda url: None).replace("postgresql:", "postgresql+psycopg:")
    else:
        url = f"sqlite:///{tmp_path / 'created.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        metadata.create_all(connection)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def constraints(connection: Connection) -> dict[str, str]:
    """Every constraint and index, as the database itself spells it."""
    if connection.dialect.name == "postgresql":
        query = """
            select c.conname as name, pg_get_constraintdef(c.oid) as definition from pg_constraint c
            where c.connamespace = 'public'::regnamespace
            union all
            select indexname, indexdef from pg_indexes where schemaname = 'public'"""
        found = {row.name: row.definition for row in connection.execute(text(query))}
    else:
        found = {}
        for row in connection.execute(
            text("select name, sql from sqlite_master where sql is not null and type <> 'trigger'")
        ):
            # A table's parts are named; their order in the text is of no account.
            # ALTER TABLE adds a column in the line of the last constraint, so lines mean nothing: commas do.
            words = re.sub(r"\s+", " ", row.sql).replace("CREATE TABLE", "").replace(") WITHOUT", ", WITHOUT")
            parts = re.split(r",(?![^(]*\))", words)
            found[row.name] = "\n".join(sorted(part.strip(" ()") for part in parts))
    return {name: definition for name, definition in found.items() if "alembic" not in name}


def test_the_tables_are_what_the_migrations_made(migrated: Connection) -> None:
    context = MigrationContext.configure(migrated, opts={"compare_type": True, "compare_server_default": True})
    assert compare_metadata(context, metadata) == []


def test_constraints_and_partial_indexes_are_what_the_migrations_made(
    migrated: Connection, created: Connection
) -> None:
    assert constraints(migrated) == constraints(created)


def test_the_comparison_sees_checks_and_partial_indexes(migrated: Connection) -> None:
    found = " ".join(constraints(migrated).values())
    assert "ix_processing_job_steps_ready" in found
    assert re.search(r"WHERE .*status.* = 'READY'", found)
    assert "CHECK" in found


def test_head_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(docmill.db.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


def test_a_migrated_database_is_at_head_and_an_empty_one_at_none(migrated: Connection, postgres_url: str) -> None:
    assert schema.current_revision(migrated) == schema.HEAD
    empty = Database(postgres_url)
    with empty.read() as connection:
        assert schema.current_revision(connection) is None
    empty.close()


def test_a_new_sqlite_database_is_what_the_migrations_make_of_an_empty_one(tmp_path: Path) -> None:
    led, made = (Database(f"sqlite:///{tmp_path / name}") for name in ("led.db", "made.db"))
    with led.write() as connection:
        schema.upgrade(connection)
        wanted = schema.written_down(connection)
    with made.write() as connection:
        schema.bring_to_head(connection)
        assert schema.written_down(connection) == wanted, "run scripts/sqlite_schema.py, and commit what it writes"
        assert schema.current_revision(connection) == schema.HEAD
        tables = [name for name in inspect(connection).get_table_names() if name != "alembic_version"]
        assert tables
        # No revision puts rows into a database that had none.
        assert not any(connection.execute(text(f"select 1 from {name}")).first() for name in tables)
    for database in (led, made):
        database.close()


def test_upgrading_again_changes_nothing(world: World) -> None:
    with world.looking() as connection:
        before = constraints(connection)
    with world.database.write() as connection:
        schema.upgrade(connection)
    with world.looking() as connection:
        assert constraints(connection) == before


def members(connection: Connection, table: str, column: str) -> set[str]:
    """What the CHECK constraint of the column lists."""
    if connection.dialect.name == "postgresql":
        query = text("select pg_get_constraintdef(oid) from pg_constraint where conname = :name")
        definition = connection.execute(query, {"name": f"ck_{table}_{column}"}).scalar_one()
    else:
        sql = connection.execute(text("select sql from sqlite_master where name = :name"), {"name": table}).scalar_one()
        (definition,) = (line for line in sql.splitlines() if f"ck_{table}_{column} " in line)
    return set(re.findall(r"'([\w.]+)'", definition))


@pytest.mark.parametrize("place", CHECKED, ids=".".join)
def test_a_check_lists_exactly_the_members_of_its_enum(migrated: Connection, place: tuple[str, str]) -> None:
    assert members(migrated, *place) == {member.value for member in CHECKED[place]}


def test_no_check_is_left_out_here(migrated: Connection) -> None:
    names = set(re.findall(r"ck_\w+", " ".join([*constraints(migrated), *constraints(migrated).values()])))
    assert names == {f"ck_{table}_{column}" for table, column in CHECKED} | {"ck_processing_batches_counts"}


@pytest.mark.parametrize("wrong", ["active = -1", "held = -1", "held = 4", "active = 4", "max_active = -1"])
def test_counters_of_a_batch_that_cannot_be_are_refused(world: World, wrong: str) -> None:
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG)
    jobs = [replace(world.new_job(single_step()), batch_id=batch.id) for _ in range(3)]
    world.commit(Batch(batches=[batch], submissions=jobs))
    with pytest.raises(IntegrityError), world.database.write() as connection:
        connection.execute(text(f"update processing_batches set {wrong}"))


def test_the_transition_tables_know_every_status() -> None:
    assert set(JOB_TRANSITIONS) == set(JobStatus)
    assert set(STEP_TRANSITIONS) == set(StepStatus)
    assert set().union(*JOB_TRANSITIONS.values()) == set(JobStatus)
    assert set().union(*STEP_TRANSITIONS.values()) == set(StepStatus)


@pytest.mark.parametrize("place", [place for place in CHECKED if place[0].startswith("processing_job")], ids=".".join)
def test_a_word_that_is_no_member_is_refused(world: World, place: tuple[str, str]) -> None:
    world.submit(single_step())
    table, column = place
    with pytest.raises(IntegrityError), world.database.write() as connection:
        connection.execute(text(f"update {table} set {column} = 'DONE'"))


def test_a_step_without_its_job_is_refused_and_goes_with_it(world: World) -> None:
    job_id = world.submit(single_step())
    with pytest.raises(IntegrityError), world.database.write() as connection:
        connection.execute(text("update processing_job_steps set job_id = org_id"))
    with world.database.write() as connection:
        connection.execute(text("delete from processing_jobs where id = :id"), {"id": job_id})
    assert world.steps(job_id) == {}


def test_times_come_back_to_the_microsecond_and_sort_as_text(world: World) -> None:
    job_id = world.submit(single_step())
    created_at = world.job(job_id).created_at
    assert created_at.tzinfo is not None
    raw: Any
    with world.looking() as connection:
        raw = connection.execute(text("select created_at from processing_jobs")).scalar_one()
    if world.database.kind == "sqlite":
        assert raw == created_at.isoformat(timespec="microseconds")
        assert len(raw) == 32
