"""Jobs are found again: by entity while they are active, by the beginning of their id, by what they are like."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import insert

from docmill.db.tables import ai_calls
from docmill.engine.batch import Batch, NewBatch
from docmill.engine.bell import SocketBell
from docmill.engine.events import Failed
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, derived_id, new_id
from docmill.model.statuses import JobStatus
from docmill.services.jobs import JobFilter, Jobs
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, chain, make_plan, single_step
from docmill.testing.world import OTHER_ORG, World, lease


@pytest.fixture
def jobs(world: World) -> Iterator[Jobs]:
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell)) as jobs:
        yield jobs


def test_has_active_processing_job(world: World, jobs: Jobs) -> None:
    """The architecture: hasActiveProcessingJob(type, id)."""
    assert not jobs.has_active("document", "d1")
    first = replace(world.new_job(single_step()), entity_id="d1")
    second = replace(world.new_job(chain(2)), entity_id="d1", family="other")
    elsewhere = replace(world.new_job(single_step(), org_id=OTHER_ORG), entity_id="d1")
    world.commit(Batch(submissions=[first, second, elsewhere]))
    assert jobs.has_active("document", "d1")
    assert jobs.active("document", "d1") == [first.id, second.id]
    assert jobs.active("document", "d1", "single-step") == [first.id]
    assert not jobs.has_active("document", "d1", "nothing of the kind")
    assert not jobs.has_active("transaction", "d1")
    world.run_to_end()
    assert jobs.active("document", "d1") == []


def test_the_beginning_of_an_id_is_enough_if_no_other_begins_so(world: World, jobs: Jobs) -> None:
    ids = ["aaaaaaaa-0000-7000-8000-000000000001", "aaaaaaab-0000-7000-8000-000000000002"]
    for job_id in ids:
        world.submit(single_step(), id=job_id)
    world.submit(single_step(), id="aaaaaaaa-1000-7000-8000-000000000003", org_id=OTHER_ORG)
    assert jobs.find_id("aaaaaaaa") == ids[0]
    assert jobs.find_id("AAAAAAAB-00") == ids[1]
    assert jobs.find_id(ids[0].upper()) == ids[0]
    with pytest.raises(InvalidInput, match=f"Several jobs begin with aaaaaa: {ids[0]}, {ids[1]}"):
        jobs.find_id("aaaaaa")
    for unknown in ("bbbbbb", "aaaaa", "", "aaaaag", new_id()):
        with pytest.raises(NotFound, match="jobs list"):
            jobs.find_id(unknown)


def test_a_list_is_by_time_of_creation_whatever_the_ids(world: World, jobs: Jobs) -> None:
    ids = [world.submit(single_step(), id=derived_id("keyed", n)) for n in range(6)]
    assert ids != sorted(ids)
    assert [job.id for job in jobs.list()] == ids[::-1]


def test_a_list_is_read_page_by_page_without_a_gap(world: World, jobs: Jobs) -> None:
    together = [world.new_job(single_step(), id=derived_id("page", n)) for n in range(5)]
    world.commit(Batch(submissions=together))
    world.submit(single_step())
    pages: list[str] = []
    last = None
    while page := jobs.list(before=last, limit=2):
        pages += [job.id for job in page]
        last = pages[-1]
    assert pages == [job.id for job in jobs.list()]
    assert len(set(pages)) == 6


def test_a_list_shows_what_it_is_asked_for(world: World, jobs: Jobs) -> None:
    batch_id = new_id()
    plain = replace(world.new_job(single_step()), entity_id="d1", created_by="ann")
    batched = replace(world.new_job(chain(2)), batch_id=batch_id)
    batch = NewBatch(id=batch_id, org_id=DEFAULT_ORG)
    world.commit(Batch(submissions=[plain, batched], batches=[batch]))

    def found(only: JobFilter) -> list[str]:
        return [job.id for job in jobs.list(only)]

    assert found(JobFilter(template="single-step")) == [plain.id]
    assert found(JobFilter(entity_type="document", entity_id="d1")) == [plain.id]
    assert found(JobFilter(created_by="ann")) == [plain.id]
    assert found(JobFilter(batch_id=batch_id)) == [batched.id]
    assert found(JobFilter(status=JobStatus.PENDING, created_by="bob")) == []
    with pytest.raises(InvalidInput, match="not the id of a batch"):
        jobs.list(JobFilter(batch_id="mine"))


def test_a_job_tells_its_batch_its_model_its_children_and_their_parent(world: World, jobs: Jobs) -> None:
    plan = make_plan(
        [Draft(key="charge", processor="charge", compensation="refund"), Draft(key="ship", group=2)], compensate=True
    )
    job_id = world.submit(plan)
    world.complete(world.claim_one())
    run = world.claim_one()
    world.report(job_id, Failed(**lease(run), error='{"code":"no"}', permanent=True))
    call = {
        "org_id": DEFAULT_ORG,
        "job_id": job_id,
        "position": 0,
        "provider": "local",
        "outcome": "answered",
        "input_tokens": 1,
        "output_tokens": 1,
        "cost_nanos": 0,
        "duration_ms": 1,
        "priced": True,
        "reserved_nanos": 0,
        "expires_at": START,
        "created_at": START,
    }
    with world.database.write() as connection:
        connection.execute(insert(ai_calls), [{"id": new_id(), "model": model, **call} for model in ("first", "last")])
    view = jobs.get(job_id)
    (child,) = view.children
    assert (child.undoes, child.status) == (True, JobStatus.PENDING)
    assert jobs.get(child.id).parent_job_id == job_id
    assert [step.model for step in view.steps] == ["local:last", None, None]


def test_the_chain_of_events_is_verified(world: World, jobs: Jobs) -> None:
    job_id = world.submit(single_step())
    world.run_to_end()
    assert jobs.verify(job_id) == []
