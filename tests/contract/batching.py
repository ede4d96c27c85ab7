"""Batches on a world, for tests: small ones, whose counters are held against their jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import select

from docmill.db.tables import batches as batches_table
from docmill.engine.batch import NewJob, StepRun
from docmill.engine.events import Failed
from docmill.model.ids import DEFAULT_ORG
from docmill.services.batch_views import BatchView
from docmill.services.batches import Batches
from docmill.testing.samples import chain
from docmill.testing.world import World, lease
from tests.contract.bells import CountingBell

BROKEN = '{"code":"broken","message":"It broke."}'


@contextmanager
def batches_of(world: World, bell: CountingBell) -> Iterator[Batches]:
    """The service, whose counters must agree with the jobs in the end."""
    batches = Batches(world.database, bell)
    yield batches
    for view in batches.list(limit=100):
        agree(world, view)
    batches.close()


def agree(world: World, view: BatchView) -> None:
    """The batch's own counters say what its jobs say."""
    with world.looking() as connection:
        row = connection.execute(select(batches_table).where(batches_table.c.id == view.id)).one()
    assert (row.active, row.held, row.total) == (view.active, view.held, sum(view.counts.values()))
    assert (row.finished_at is not None) == (view.active == view.held == 0)


def named(world: World, *names: str, org_id: str = DEFAULT_ORG) -> list[NewJob]:
    """Jobs for entities of these names."""
    return [replace(world.new_job(chain(2), org_id=org_id), entity_id=name) for name in names]


def some(world: World, count: int) -> list[NewJob]:
    return named(world, *map(str, range(count)))


def fail(world: World, run: StepRun) -> None:
    assert world.report(run.job.id, Failed(**lease(run), error=BROKEN, permanent=True))


def by_entity(world: World, limit: int = 100) -> dict[str, StepRun]:
    return {run.job.entity_id: run for run in world.claim(limit)}
