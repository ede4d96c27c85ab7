"""Follow-up jobs: named by template, given ids that a repeated attempt would give again."""

from collections.abc import Sequence
from dataclasses import fields

from sqlalchemy import Connection, select, text

from docmill.db.tables import templates
from docmill.engine.batch import NewJob, StepRun
from docmill.engine.context import to_json
from docmill.model.errors import Deferred, PermanentError
from docmill.model.ids import following_id
from docmill.model.statuses import FINISHED_JOBS, JobStatus
from docmill.plugin import FollowUp

_AGAIN = 2.0
"""Seconds until a step looks again whether the follow-up of an earlier run has ended."""

_LIVE = ", ".join(f"'{status}'" for status in JobStatus if status not in FINISHED_JOBS)

# The statuses stand in the text, as in the partial index that answers this.
_UNDER_WAY = text(f"""
select id from processing_jobs
where org_id = :org_id and entity_type = :entity_type and entity_id = :entity_id and family = :family
  and status in ({_LIVE}) and id <> :own and id <> :new""")

_FIELDS = tuple(field.name for field in fields(FollowUp))


def part_name(run: StepRun) -> str:
    """The part in which the follow-ups of a compute wait for its apply; those of an earlier run were submitted then."""
    return f"docmill.follow_ups/{run.run}"


def follow_ups_to_part(wanted: Sequence[FollowUp]) -> str:
    """As they are stored; PermanentError when they cannot be."""
    return to_json([{name: getattr(job, name) for name in _FIELDS} for job in wanted], "the follow-up jobs")


def follow_ups_from_part(stored: object) -> list[FollowUp]:
    """As they were wanted; None: there were none."""
    return [FollowUp(**job) for job in stored] if isinstance(stored, list) else []


def newest_template(connection: Connection, org_id: str, name: str) -> str | None:
    """Id of the newest version of a template, by name."""
    query = (
        select(templates.c.id)
        .where(templates.c.org_id == org_id, templates.c.name == name)
        .order_by(templates.c.version.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def resolve_follow_ups(
    connection: Connection, run: StepRun, wanted: Sequence[FollowUp], *, offset: int = 0
) -> tuple[NewJob, ...]:
    """The jobs to submit with the completion of this step. `offset` keeps the ids of compute and apply apart."""
    return tuple(_resolve(connection, run, job, offset + index) for index, job in enumerate(wanted))


def _resolve(connection: Connection, run: StepRun, wanted: FollowUp, index: int) -> NewJob:
    template_id = newest_template(connection, run.job.org_id, wanted.template)
    if template_id is None:
        raise PermanentError(
            f"The follow-up job names the template {wanted.template!r}, which does not exist; register it first."
        )
    new_id = following_id(run.job.id, "follow-up", run.step.position, run.run, index)
    about = {"org_id": run.job.org_id, "entity_type": wanted.entity_type, "entity_id": wanted.entity_id}
    other = connection.execute(
        _UNDER_WAY, {**about, "family": wanted.template, "own": run.job.id, "new": new_id}
    ).scalar()
    if other is not None:
        # It may have read what was there before this run, so it cannot stand for the one that is wanted now.
        raise Deferred(f"Job {other}, which does the same as the follow-up job, is still under way.", delay=_AGAIN)
    return NewJob(
        id=new_id,
        template_id=template_id,
        org_id=run.job.org_id,
        entity_type=wanted.entity_type,
        entity_id=wanted.entity_id,
        title=wanted.title,
        metadata=wanted.metadata,
        priority=wanted.priority,
        created_by=run.job.created_by,
        parent_job_id=run.job.id,
    )
