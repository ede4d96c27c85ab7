"""Organisations are served in turn, however much one of them has queued."""

import os
from collections import Counter

from docmill.engine.batch import Batch
from docmill.model.ids import DEFAULT_ORG
from docmill.testing.samples import single_step
from docmill.testing.world import OTHER_ORG, World

MANY = int(os.environ.get("DOCMILL_FAIRNESS_JOBS", "10000"))
"""`DOCMILL_FAIRNESS_JOBS=100000` for the full promise."""


def submit_many(world: World, count: int, *, org_id: str = DEFAULT_ORG, priority: int = 0) -> None:
    jobs = [world.new_job(single_step(), org_id=org_id, priority=priority) for _ in range(count)]
    for start in range(0, count, 1000):
        world.commit(Batch(submissions=jobs[start : start + 1000]))


def test_anothers_first_job_is_claimed_within_two_rounds(world: World) -> None:
    submit_many(world, MANY, priority=9)
    world.submit(single_step(), org_id=OTHER_ORG)
    for start in (0, 1):
        rounds = [world.claim(1, turn=start + turn) for turn in (0, 1)]
        if start == 0:
            assert OTHER_ORG in {run.job.org_id for runs in rounds for run in runs}
        else:
            assert {run.job.org_id for runs in rounds for run in runs} == {DEFAULT_ORG}


def test_a_large_claim_serves_both_at_once(world: World) -> None:
    submit_many(world, 50)
    submit_many(world, 3, org_id=OTHER_ORG)
    served = Counter(run.job.org_id for run in world.claim(10))
    assert served == {DEFAULT_ORG: 7, OTHER_ORG: 3}


def test_many_priorities_do_not_multiply_an_organisations_share(world: World) -> None:
    for priority in range(5):
        submit_many(world, 10, priority=priority)
    submit_many(world, 50, org_id=OTHER_ORG)
    for turn in (0, 1):
        served = Counter(run.job.org_id for run in world.claim(10, turn=turn))
        assert served == {DEFAULT_ORG: 5, OTHER_ORG: 5}


def test_what_one_does_not_need_the_other_gets(world: World) -> None:
    submit_many(world, 20)
    submit_many(world, 20, org_id=OTHER_ORG, priority=3)
    assert len(world.claim(40)) == 40
