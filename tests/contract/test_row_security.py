"""Row-level security: PostgreSQL itself refuses what is another organisation's, whatever a query asks for.

Every table that there is is looked at, as each of the roles; `test_tenancy` asks the services, on both databases.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Table, insert, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError

from docmill.db.database import Database
from docmill.db.protection import RolesMissing
from docmill.db.standing import ROLES, RoleRefused
from docmill.db.tables import documents, extracted_fields, issues, job_steps, jobs, metadata, review_items
from docmill.engine.batch import NewJob
from docmill.engine.bell import SocketBell
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.jobs import Jobs
from docmill.services.templates import Templates
from docmill.testing.samples import single_step
from docmill.testing.servers import PostgresServer
from docmill.testing.world import OTHER_ORG, compiled, migrate
from tests.conftest import PostgresCopies

OURS, THEIRS = DEFAULT_ORG, OTHER_ORG
WITHOUT_ORGANISATION = {
    "ai_breakers",
    "ai_buckets",
    "installation_secrets",
    "leaving_blobs",
    "organisations",
    "sign_in_limits",
    "users",
    "workers",
}
"""What is the installation's, or a person's. Each is protected by a policy of its own."""


@pytest.fixture
def postgres(postgres_copy_of: PostgresCopies) -> Iterator[Database]:
    database = Database(postgres_copy_of("migrated", migrate))
    yield database
    database.close()


# The schema.


def test_every_table_says_whose_its_rows_are() -> None:
    bare = {table.name for table in metadata.tables.values() if "org_id" not in table.c}
    assert bare == WITHOUT_ORGANISATION


def test_every_table_there_is_forces_row_level_security(postgres: Database) -> None:
    query = text(
        "select relname, relrowsecurity and relforcerowsecurity as forced,"
        " exists (select from pg_policy where polrelid = c.oid) as governed"
        " from pg_class c where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace"
    )
    with postgres.read() as connection:
        found = {row.relname: (row.forced, row.governed) for row in connection.execute(query)}
    assert found == dict.fromkeys([*metadata.tables, "alembic_version"], (True, True))


def test_no_role_owns_anything_or_goes_past_row_level_security(postgres: Database) -> None:
    with postgres.read() as connection:
        roles = connection.execute(text("select * from pg_roles where rolname like 'docmill%'")).all()
        owners = set(connection.execute(text("select tableowner from pg_tables where schemaname = 'public'")).scalars())
        query = "select count(*) from pg_auth_members where member::regrole::text like 'docmill%'"
        members = connection.execute(text(query)).scalar()
    assert {row.rolname for row in roles} == set(ROLES)
    assert not [row for row in roles if row.rolsuper or row.rolbypassrls or row.rolcanlogin or row.rolcreaterole]
    assert not owners & set(ROLES)
    assert members == 0


def test_no_role_may_change_the_schema_or_empty_a_table(postgres: Database) -> None:
    for view in (postgres.scoped(OURS), postgres.as_engine(), postgres.as_entry(OURS), postgres.as_keeper()):
        for statement in (
            "create table mine (id int)",
            "alter table documents disable row level security",
            "drop policy docmill_app_own on documents",
            "truncate documents",
        ):
            with pytest.raises(DBAPIError, match=r"permission denied|must be owner"), view.write() as connection:
                connection.execute(text(statement))


# What the database itself refuses.


def rows_of(table: Table, org_id: str) -> dict[str, Any]:
    """A row that any constraint lets pass."""
    values: dict[str, Any] = {}
    for column in table.c:
        kind = column.type.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        if column.name == "org_id":
            values[column.name] = org_id
        elif column.nullable or column.server_default is not None:
            continue
        else:
            values[column.name] = _filler(column.name, kind, table.name)
    return values


def _filler(name: str, kind: str, table: str) -> Any:
    words = {
        "status": {
            "documents": "queued",
            "processing_jobs": "PENDING",
            "review_items": "pending",
            "webhook_deliveries": "pending",
        }.get(table, "open"),
        "event": "ping",
        "severity": "info",
        "sla_state": "none",
        "outcome": "asked" if table == "ai_calls" else "received",
        "role": "viewer",
        "kind": "rule",
        "on_failure_action": "fail_job",
        "state": "extracted",
    }
    if table == "processing_job_steps" and name == "status":
        return "PENDING"
    if name in words:
        return words[name]
    if kind == "UUID":
        return new_id()
    if "BOOL" in kind:
        return False
    if "INT" in kind or "DOUBLE" in kind:
        return 0
    if "TIMESTAMP" in kind:
        return datetime.now(UTC)
    if kind == "BYTEA":
        return b"x"
    if "JSON" in kind:
        return {}
    return new_id()[-8:]


SCOPED = sorted(name for name, table in metadata.tables.items() if "org_id" in table.c)
_PARENTLESS = "set session_replication_role = replica"
"""Foreign keys and triggers asleep: rows for looking at need no parents."""


@pytest.fixture
def both_full(postgres: Database) -> Database:
    """A row of ours and one of theirs in every table that has organisations."""
    with postgres.write() as connection:
        connection.execute(text(_PARENTLESS))
        for name in SCOPED:
            for org_id in (OURS, THEIRS):
                connection.execute(insert(metadata.tables[name]).values(rows_of(metadata.tables[name], org_id)))
        connection.execute(text("reset session_replication_role"))
    return postgres


def counts(connection: Connection, table: str) -> int:
    return int(connection.execute(text(f"select count(*) from {table}")).scalar_one())


def test_an_organisation_sees_its_own_rows_of_every_table_and_no_others(both_full: Database) -> None:
    with both_full.read() as connection:
        assert {name: counts(connection, name) for name in SCOPED} == dict.fromkeys(SCOPED, 2)
    for org_id in (OURS, THEIRS):
        with both_full.scoped(org_id).read() as connection:
            assert {name: counts(connection, name) for name in SCOPED} == dict.fromkeys(SCOPED, 1)
            seen = {name: connection.execute(text(f"select org_id from {name}")).scalar_one() for name in SCOPED}
            assert set(seen.values()) == {org_id}


def test_without_an_organisation_there_is_nothing(both_full: Database) -> None:
    with both_full.scoped("").read() as connection:
        assert {name: counts(connection, name) for name in SCOPED} == dict.fromkeys(SCOPED, 0)


def test_an_organisation_that_is_no_id_is_an_error_and_no_way_around(both_full: Database) -> None:
    for wrong in ("' or true --", "x", THEIRS.upper()):
        with pytest.raises(ValueError, match="there is no standing"):
            both_full.scoped(wrong)


@pytest.mark.parametrize("name", [name for name in SCOPED if name != "audit_log"])
def test_rows_of_others_are_neither_changed_nor_deleted_nor_made(both_full: Database, name: str) -> None:
    ours = both_full.scoped(OURS)
    with ours.write() as connection:
        changed = connection.execute(text(f"update {name} set org_id = org_id where org_id = :org"), {"org": THEIRS})
        assert changed.rowcount == 0
    if name != "audit_heads":
        with ours.write() as connection:
            assert connection.execute(text(f"delete from {name} where org_id = :org"), {"org": THEIRS}).rowcount == 0
    with pytest.raises(DBAPIError, match="row-level security"), ours.write() as connection:
        connection.execute(text(f"update {name} set org_id = :org"), {"org": THEIRS})
    with pytest.raises(DBAPIError, match="row-level security"), ours.write() as connection:
        connection.execute(insert(metadata.tables[name]).values(rows_of(metadata.tables[name], THEIRS)))


def test_the_engine_sees_the_jobs_of_all_and_the_documents_of_none(both_full: Database) -> None:
    for name in ("processing_jobs", "processing_job_steps", "processing_job_events", "processing_issues"):
        with both_full.as_engine().read() as connection:
            assert counts(connection, name) == 2
    for name in ("documents", "extracted_fields", "users", "api_keys", "sessions", "audit_log", "ai_prompts"):
        with pytest.raises(DBAPIError, match="permission denied"), both_full.as_engine().read() as connection:
            counts(connection, name)


def test_sign_in_sees_who_there_is_and_nothing_they_have(both_full: Database) -> None:
    for name in ("documents", "processing_jobs", "review_items", "installation_secrets"):
        with pytest.raises(DBAPIError, match="permission denied"), both_full.as_entry().read() as connection:
            counts(connection, name)
    with pytest.raises(DBAPIError, match="row-level security"), both_full.as_entry(OURS).write() as connection:
        connection.execute(
            insert(metadata.tables["memberships"]).values(rows_of(metadata.tables["memberships"], THEIRS))
        )


def test_the_application_sees_no_secret_of_the_installation(postgres: Database) -> None:
    for name in ("installation_secrets", "workers", "sign_in_limits"):
        with pytest.raises(DBAPIError, match="permission denied"), postgres.scoped(OURS).read() as connection:
            counts(connection, name)


def test_a_foreign_child_under_an_own_parent_and_an_own_child_under_a_foreign_one_are_refused(
    both_full: Database,
) -> None:
    with both_full.read() as connection:
        parents = {
            name: connection.execute(text(f"select id from {name} where org_id = :org"), {"org": THEIRS}).scalar_one()
            for name in ("processing_jobs", "review_items", "documents", "process_templates")
        }
    children = (
        (job_steps, "job_id", "processing_jobs"),
        (issues, "job_id", "processing_jobs"),
        (jobs, "template_id", "process_templates"),
        (extracted_fields, "item_id", "review_items"),
        (review_items, "document_id", "documents"),
    )
    for table, column, parent in children:
        row = {**rows_of(table, OURS), column: parents[parent]}
        with pytest.raises(DBAPIError, match="row-level security"), both_full.scoped(OURS).write() as connection:
            connection.execute(insert(table).values(row))


def test_a_pooled_connection_keeps_nothing_of_whom_it_served(both_full: Database) -> None:
    told = text("select current_user, session_user, current_setting('docmill.org', true), pg_backend_pid()")
    seen = []
    for view in (both_full.scoped(OURS), both_full, both_full.scoped(THEIRS), both_full.as_engine(), both_full):
        with view.read() as connection:
            seen.append(connection.execute(told).one())
    assert len({row[3] for row in seen}) == 1, "one connection served them all"
    assert [row[0] for row in seen] == ["docmill_app", seen[0][1], "docmill_app", "docmill_engine", seen[0][1]]
    assert [row[2] or "" for row in seen] == [OURS, "", THEIRS, "", ""]


def test_nor_after_an_error(both_full: Database) -> None:
    with pytest.raises(DBAPIError), both_full.scoped(OURS).write() as connection:
        connection.execute(text("select 1/0"))
    with both_full.scoped("").read() as connection:
        assert counts(connection, "documents") == 0


def test_a_transaction_cannot_be_opened_for_two_organisations(both_full: Database) -> None:
    with both_full.scoped(OURS).borrow() as session:
        with session.write() as connection:
            assert counts(connection, "documents") == 1
        with session.write() as connection:
            assert connection.execute(select(documents.c.org_id)).scalars().all() == [OURS]


def test_a_standing_costs_no_round_trip_of_its_own(postgres: Database, tmp_path: Path) -> None:
    """BEGIN and the standing travel together: the server answers as often as it does to BEGIN alone."""

    def answers(view: Database) -> int:
        with view.read() as connection, (tmp_path / "wire").open("wb") as wire:
            raw: Any = connection.connection.driver_connection
            raw.pgconn.trace(wire.fileno())
            connection.execute(text("select 1"))
            raw.pgconn.untrace()
        return (tmp_path / "wire").read_text().count("ReadyForQuery")

    assert answers(postgres.scoped(OURS)) == answers(postgres) == 2


# A login that is nobody special.


@pytest.fixture
def plain_login(own_postgres_server: PostgresServer) -> str:
    """A database whose owner is no superuser."""
    url = own_postgres_server.create_database("plain")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("create role clerk login noinherit createrole password 'clerk'")
        admin.execute("alter database plain owner to clerk")
        admin.execute("alter schema public owner to clerk")
    plain = Database(url).url.set(drivername="postgresql", username="clerk", password="clerk")
    return plain.render_as_string(hide_password=False)


def test_a_login_that_is_no_superuser_migrates_works_and_sees_nothing_unasked(plain_login: str, tmp_path: Path) -> None:
    migrate(plain_login)
    database = Database(plain_login)
    with closing(SocketBell(tmp_path)) as bell, closing(Jobs(database, bell)) as service:
        template = Templates(database).register(compiled(single_step())).id
        service.submit([NewJob(id=new_id(), template_id=template, org_id=OURS, entity_type="d", entity_id="1")])
        assert len(service.list()) == 1
    with database.read() as connection:
        assert counts(connection, "processing_jobs") == 0
        assert counts(connection, "process_templates") == 0
    with database.as_engine().read() as connection:
        assert counts(connection, "processing_jobs") == 1
    migrate(plain_login)
    database.close()


def test_a_login_that_may_not_take_the_roles_is_told_what_to_do(plain_login: str, tmp_path: Path) -> None:
    migrate(plain_login)
    owner = Database(plain_login)
    with psycopg.connect(plain_login, autocommit=True) as connection:
        connection.execute("create role stranger login password 'stranger'")
    stranger = Database(owner.url.set(username="stranger", password="stranger").render_as_string(hide_password=False))
    for view in (stranger.scoped(OURS), stranger.as_engine()):
        with pytest.raises(RoleRefused, match="GRANT docmill_app"), view.read() as connection:
            connection.execute(text("select 1"))
    with pytest.raises(RoleRefused):
        stranger.scoped(OURS).session()
    stranger.close()
    owner.close()


def test_a_login_that_may_not_make_the_roles_is_told_what_to_do(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.create_database("plain")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("create role clerk login noinherit password 'clerk'")
        admin.execute("alter database plain owner to clerk")
        admin.execute("alter schema public owner to clerk")
    plain = Database(url).url.set(drivername="postgresql", username="clerk", password="clerk")
    with pytest.raises(RolesMissing, match="CREATE ROLE docmill_app") as told:
        migrate(plain.render_as_string(hide_password=False))
    with psycopg.connect(url, autocommit=True) as admin:
        for statement in told.value.message.partition("As a superuser: ")[2].partition("; then run")[0].split(";"):
            admin.execute(statement)
    migrate(plain.render_as_string(hide_password=False))


def test_two_databases_of_one_server_are_migrated_at_once(own_postgres_server: PostgresServer) -> None:
    urls = [own_postgres_server.create_database(f"at_once_{number}") for number in range(4)]
    # Processes, as they would be: Alembic is for one thread.
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        list(pool.map(migrate, urls))
    for url in urls:
        database = Database(url)
        with database.scoped(OURS).read() as connection:
            assert counts(connection, "documents") == 0
        database.close()
