"""At most one active job per entity and template, whoever submits at the same moment."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from docmill.engine.batch import Batch, NewJob
from docmill.engine.bell import SocketBell
from docmill.model.errors import AlreadyActive, InvalidInput
from docmill.model.ids import new_id
from docmill.services.jobs import Jobs, Retry
from docmill.testing.samples import single_step
from docmill.testing.world import World


@contextmanager
def opened(world: World) -> Iterator[Jobs]:
    """The service, as a person's command would have it."""
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell)) as jobs:
        yield jobs


def job_of(world: World, entity_id: str = "d1") -> NewJob:
    return replace(world.new_job(single_step()), entity_id=entity_id)


def test_a_second_active_job_of_the_same_template_is_refused_and_names_the_first(world: World) -> None:
    first = job_of(world)
    world.commit(Batch(submissions=[first]))
    with pytest.raises(AlreadyActive, match=first.id) as caught:
        world.commit(Batch(submissions=[job_of(world)]))
    assert caught.value.details["job_id"] == first.id
    assert list(world.states()) == [first.id]


def test_two_of_the_same_entity_in_one_submission_are_refused_together(world: World) -> None:
    with pytest.raises(AlreadyActive):
        world.commit(Batch(submissions=[job_of(world), job_of(world)], check=False))
    assert world.states() == {}


def test_whoever_names_an_entity_twice_is_told_so(world: World) -> None:
    with opened(world) as jobs, pytest.raises(InvalidInput, match=r"more than once: document:d1\. Give each once"):
        jobs.submit([job_of(world), job_of(world)])
    assert world.states() == {}


def test_another_entity_or_another_template_may_be_active_beside_it(world: World) -> None:
    other_template = replace(job_of(world), family="another template")
    world.commit(Batch(submissions=[job_of(world), job_of(world, "d2"), other_template]))
    assert len(world.states()) == 3


def test_once_the_first_has_finished_the_next_may_come(world: World) -> None:
    world.commit(Batch(submissions=[job_of(world)]))
    world.run_to_end()
    world.commit(Batch(submissions=[job_of(world)]))
    assert len(world.states()) == 2


def test_a_job_that_only_should_be_there_is_left_out_instead(world: World) -> None:
    first = job_of(world)
    world.commit(Batch(submissions=[first]))
    outcome = world.commit(Batch(submissions=[replace(job_of(world), unless_active=True)]))
    assert outcome.submitted == 0
    assert list(world.states()) == [first.id]


def test_a_finished_job_cannot_run_again_beside_an_active_one(world: World) -> None:
    first = job_of(world)
    world.commit(Batch(submissions=[first]))
    world.run_to_end()
    world.commit(Batch(submissions=[job_of(world)]))
    with opened(world) as jobs, pytest.raises(AlreadyActive, match="cannot run again now"):
        jobs.retry(first.id, Retry(everything=True))


def test_of_many_who_submit_at_the_same_moment_one_succeeds(world: World) -> None:
    template_id = world.template(single_step())
    org_id = job_of(world).org_id

    def submit(jobs: Jobs, number: int) -> bool:
        entity_id = f"e{number % 10}"
        job = NewJob(id=new_id(), template_id=template_id, org_id=org_id, entity_type="document", entity_id=entity_id)
        try:
            return jobs.submit([job]) == 1
        except AlreadyActive:
            return False

    with opened(world) as jobs, ThreadPoolExecutor(8) as pool:
        succeeded = list(pool.map(lambda number: submit(jobs, number), range(80)))
    assert sum(succeeded) == 10
    assert len(world.states()) == 10
