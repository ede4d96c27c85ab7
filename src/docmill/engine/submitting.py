"""New jobs on their way into a transaction: who may come in, who is held back, and what all of them begin with."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import orjson

from docmill.engine.batch import NewBatch, NewJob, already_active
from docmill.engine.decide import Transition
from docmill.engine.events import Submitted
from docmill.engine.locked import CHAIN_START, KnownJob, LockedJob
from docmill.engine.sql.rows import HotSql, JobHead
from docmill.engine.sql.statements import ACTIVE_JOBS
from docmill.engine.state import JobState, new_state
from docmill.templates.plan import Plan

EntityKey = tuple[str, ...]
"""Organisation, entity type, entity id, family: what only one active job may have."""
PlanOf = Callable[[str], Plan]


def active_jobs(
    new_jobs: Sequence[NewJob], sql: HotSql, plan_of: PlanOf, locked: Mapping[str, LockedJob]
) -> dict[EntityKey, str]:
    """Who is active for the entities of these jobs, unless this very transaction brings it to its end."""
    keys = [_key(new, plan_of(new.template_id)) for new in new_jobs]
    found = sql.query(ACTIVE_JOBS, {"keys": orjson.dumps(keys).decode()})
    return {
        tuple(key): job_id for *key, job_id in found if job_id not in locked or not locked[job_id].state.status.finished
    }


def planned(
    new_jobs: Sequence[NewJob],
    batches: Sequence[NewBatch],
    active: dict[EntityKey, str],
    plan_of: PlanOf,
    now: datetime,
) -> dict[str, tuple[LockedJob, str | None]]:
    """The jobs by id, each with its parent; AlreadyActive names all whose entity has an active job."""
    jobs: dict[str, tuple[LockedJob, str | None]] = {}
    refused: list[tuple[NewJob, str]] = []
    room = {batch.id: batch.max_active for batch in batches}
    first: dict[tuple[str, bool], tuple[JobState, JobState, list[Transition]]] = {}
    for new in new_jobs:
        if new.id in jobs:
            continue
        plan = plan_of(new.template_id)
        key = _key(new, plan)
        other = active.setdefault(key, new.id)
        if other != new.id:
            if not new.unless_active:
                refused.append((new, other))
            continue
        held = new.held
        if new.batch_id in room:
            held = room[new.batch_id] <= 0
            room[new.batch_id] -= 1
        head = _head(new, key[-1], now)
        # All new jobs of a plan begin alike, so the first one is planned for all.
        alike = (new.template_id, held)
        if alike in first:
            blank, state, transitions = first[alike]
            job = LockedJob(KnownJob(0, head, blank, CHAIN_START, {}), plan)
            job.state, job.transitions = state, transitions
        else:
            job = LockedJob(KnownJob(0, head, new_state(len(plan.steps)), CHAIN_START, {}), plan)
            job.fold(Submitted(held=held), now)
            first[alike] = (job.was.state, job.state, job.transitions)
        jobs[new.id] = (job, new.parent_job_id)
    if refused:
        raise already_active(refused)
    return jobs


def entity_key(head: JobHead) -> EntityKey:
    """What no other active job may have beside the job of this head."""
    return (head.org_id, head.entity_type, head.entity_id, head.family)


def _key(new: NewJob, plan: Plan) -> EntityKey:
    return (new.org_id, new.entity_type, new.entity_id, new.family or plan.name)


def _head(new: NewJob, family: str, now: datetime) -> JobHead:
    return JobHead(
        new.id,
        new.org_id,
        new.template_id,
        new.entity_type,
        new.entity_id,
        new.priority,
        new.title,
        dict(new.metadata),
        new.file_type,
        new.created_by,
        now,
        family,
        new.batch_id,
    )
