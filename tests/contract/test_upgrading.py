"""Jobs that were begun under the first release finish under this one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, MetaData, Table, select, text

from docmill.db import schema
from docmill.db.database import Database
from docmill.db.tables import jobs
from docmill.engine.batch import Batch
from docmill.model.errors import AlreadyActive
from docmill.model.statuses import JobStatus
from docmill.testing.samples import chain
from docmill.testing.world import World, migrate
from tests.conftest import PostgresCopies

TABLES = ("process_templates", "processing_jobs", "processing_job_steps")


def to_first_release(url: str) -> None:
    database = Database(url)
    with database.write() as connection:
        schema.upgrade(connection, "0001")
    database.close()


@pytest.fixture
def first_release(world: World, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database as the first release made it, of the same kind as the world's."""
    if world.database.kind == "postgresql":
        copies: PostgresCopies = request.getfixturevalue("postgres_copy_of")
        url = copies("first_release", to_first_release)
    else:
        url = f"sqlite:///{tmp_path / 'first.db'}"
        to_first_release(url)
    database = Database(url)
    yield database
    database.close()


def take_over(source: Connection, target: Connection) -> None:
    """Write into the older schema what is in the newer, as far as it goes: as if the older release had."""
    for name in TABLES:
        old = Table(name, MetaData(), autoload_with=target, resolve_fks=False)
        new = Table(name, MetaData(), autoload_with=source, resolve_fks=False)
        rows = source.execute(select(*(new.c[column.name] for column in old.columns))).mappings().all()
        target.execute(old.insert(), [dict(row) for row in rows])
    # Events letter by letter: that is what their chain covers.
    events = "job_id, version, org_id, at, {data}, hash"
    read = text(f"select {events.format(data='cast(data as text) as data')} from processing_job_events")
    json = "cast(:data as json)" if target.dialect.name == "postgresql" else ":data"
    values = f":job_id, :version, :org_id, :at, {json}, :hash"
    write = text(f"insert into processing_job_events ({events.format(data='data')}) values ({values})")
    target.execute(write, [dict(row) for row in source.execute(read).mappings()])


def same_entity(connection: Connection) -> None:
    """The first release let an entity have several active jobs."""
    old = Table("processing_jobs", MetaData(), autoload_with=connection, resolve_fks=False)
    connection.execute(old.update().values(entity_id="d1"))


def test_jobs_under_way_finish_after_the_upgrade(world: World, first_release: Database, tmp_path: Path) -> None:
    plan = chain(3)
    ids = [world.submit(plan) for _ in range(3)]
    world.complete(world.claim_one())
    with world.looking() as source, first_release.write() as target:
        take_over(source, target)
        same_entity(target)
    migrate(first_release.url.render_as_string(hide_password=False))

    upgraded = World(first_release, tmp_path / "upgraded")
    upgraded.register_workers("00000000-0000-7000-8000-0000000000aa")
    assert set(upgraded.states()) == set(ids)
    upgraded.run_to_end()
    assert {state.status for state in upgraded.states().values()} == {JobStatus.COMPLETED}
    upgraded.check()
    upgraded.close()


def test_of_several_active_jobs_the_newest_keeps_the_place_of_its_family(
    world: World, first_release: Database, tmp_path: Path
) -> None:
    plan = chain(1)
    *older, newest = sorted(world.submit(plan) for _ in range(3))
    with world.looking() as source, first_release.write() as target:
        take_over(source, target)
        same_entity(target)
    migrate(first_release.url.render_as_string(hide_password=False))

    upgraded = World(first_release, tmp_path / "upgraded")
    with upgraded.looking() as connection:
        families = dict(connection.execute(select(jobs.c.id, jobs.c.family)).all())
    assert families[newest] == plan.name
    assert {families[job] for job in older}.isdisjoint({plan.name})
    fourth = replace(world.new_job(plan), entity_id="d1")
    with pytest.raises(AlreadyActive, match=newest):
        upgraded.commit(Batch(submissions=[fourth]))
    upgraded.close()
