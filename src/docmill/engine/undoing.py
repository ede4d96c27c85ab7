"""Compensation: when a job whose template says so fails or is cancelled, a job that undoes it is submitted with that.

The undoing is a job like any other, so it is retried, fenced and taken over as any other; its steps begin with the
results of the steps they undo, and only their processors run. It belongs to the family of the job it undoes, so that
nothing of this template can happen to the entity before it has ended.
"""

from collections.abc import Iterator
from datetime import datetime

import orjson

from docmill.engine.events import Submitted
from docmill.engine.issues import NewIssue
from docmill.engine.locked import CHAIN_START, KnownJob, LockedJob
from docmill.engine.sql.rows import HotSql, JobHead
from docmill.engine.sql.statements import COPY_RESULT, INSERT_UNDO_TEMPLATE, TEMPLATE_VERSION
from docmill.engine.state import new_state
from docmill.model.ids import derived_id, following_id
from docmill.model.issues import IssueSeverity
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.document import digest, document_from_plan
from docmill.templates.plan import Plan
from docmill.templates.undo import undo_plan, undo_positions

_TO_BE_UNDONE = frozenset({JobStatus.FAILED, JobStatus.CANCELLED})


def calls_for_undoing(job: LockedJob) -> bool:
    """Whether the job came to a bad end just now, with something done that can be undone."""
    if not job.plan.compensate or not _ended_badly(job):
        return False
    return next(_undoable(job), None) is not None


def undoing_id(job_id: str, run: int) -> str:
    """The id of the job that undoes this run of a job."""
    return following_id(job_id, "undo", run)


def undoing_of(job: LockedJob, sql: HotSql, now: datetime) -> LockedJob:
    """The job that undoes this one, not yet written; the template it pins is."""
    head = job.was.head
    plan = undo_plan(job.plan)
    template_id = _store_template(sql, plan, head, now)
    undo_head = JobHead(
        undoing_id(head.id, job.state.run),
        head.org_id,
        template_id,
        head.entity_type,
        head.entity_id,
        head.priority,
        f"Undo: {head.title or job.plan.name}",
        head.metadata,
        head.file_type,
        head.created_by,
        now,
        head.family,
        None,
    )
    undo = LockedJob(KnownJob(0, undo_head, new_state(len(plan.steps)), CHAIN_START), plan)
    places = undo_positions(job.plan)
    wanted = frozenset(places[position] for position in _undoable(job))
    undo.fold(Submitted(computed=wanted, without=frozenset(places.values()) - wanted), now)
    return undo


def copy_results(job: LockedJob, undo: LockedJob, sql: HotSql) -> None:
    """Give the undoing steps the results of those they undo; after both were written."""
    places = undo_positions(job.plan)
    sql.run_each(
        COPY_RESULT,
        [
            {
                "job_id": undo.was.head.id,
                "position": places[position],
                "from_job": job.was.head.id,
                "from_position": position,
            }
            for position in _undoable(job)
        ],
    )


def undoing_failed(job: LockedJob) -> NewIssue | None:
    """What a person must know when an undoing came to a bad end itself."""
    if not job.plan.undoes or not _ended_badly(job):
        return None
    left = [
        planned.step_key
        for planned, step in zip(job.plan.steps[:-1], job.state.steps, strict=False)
        if step.status is not StepStatus.COMPLETED and not _unneeded(job, planned.position)
    ]
    return NewIssue(
        id=derived_id(job.was.head.id, "undo-failed", job.state.run),
        code="compensation_failed",
        title=f"{job.was.head.title}: {', '.join(left)} could not be undone",
        severity=IssueSeverity.CRITICAL,
        details={
            "not_undone": left,
            "remedy": f"Mend the cause, then `docmill jobs retry {job.was.head.id}`; or undo by hand and resolve this.",
        },
    )


def _ended_badly(job: LockedJob) -> bool:
    return job.state.status in _TO_BE_UNDONE and not job.was.state.status.finished


def _undoable(job: LockedJob) -> Iterator[int]:
    for planned, step in zip(job.plan.steps, job.state.steps, strict=True):
        if planned.compensation is not None and step.status is StepStatus.COMPLETED:
            yield planned.position


def _unneeded(job: LockedJob, position: int) -> bool:
    """Skipped from the start: the job that is undone had not done it."""
    step = job.state.steps[position]
    return step.status is StepStatus.SKIPPED and not step.checkpointed


def _store_template(sql: HotSql, plan: Plan, head: JobHead, now: datetime) -> str:
    """The id of its template, stored when it is needed for the first time.

    Versions that undo alike share one, so the id follows from what it says.
    """
    document = document_from_plan(plan)
    fingerprint = digest(document)
    template_id = derived_id(head.org_id, plan.name, fingerprint)
    ((version,),) = sql.query(TEMPLATE_VERSION, {"id": head.template_id})
    sql.run_each(
        INSERT_UNDO_TEMPLATE,
        [
            {
                "id": template_id,
                "org_id": head.org_id,
                "name": plan.name,
                "version": version,
                "processable_type": plan.processable_type,
                "task_type": plan.task_type,
                "service_name": plan.service_name,
                "digest": fingerprint,
                "definition": orjson.dumps(document).decode(),
                "now": now,
                "undoes_id": head.template_id,
            }
        ],
    )
    return template_id
