"""Follow-up jobs: named by template, given ids that a repeated attempt would give again."""

from collections.abc import Sequence
from dataclasses import fields

from sqlalchemy import Connection, select

from docmill.db.tables import step_parts, templates
from docmill.engine.batch import NewJob, StepRun
from docmill.engine.context import to_json
from docmill.model.errors import PermanentError
from docmill.model.ids import following_id
from docmill.plugin import FollowUp

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


def kept_follow_ups(connection: Connection, run: StepRun) -> tuple[NewJob, ...]:
    """The jobs that the compute of a waiting step wanted: for whoever completes it with an answer."""
    query = select(step_parts.c.value).where(
        step_parts.c.job_id == run.job.id,
        step_parts.c.position == run.step.position,
        step_parts.c.name == part_name(run),
    )
    return resolve_follow_ups(connection, run, follow_ups_from_part(connection.execute(query).scalar()))


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
    return NewJob(
        id=following_id(run.job.id, "follow-up", run.step.position, run.run, index),
        template_id=template_id,
        org_id=run.job.org_id,
        entity_type=wanted.entity_type,
        entity_id=wanted.entity_id,
        title=wanted.title,
        metadata=wanted.metadata,
        priority=wanted.priority,
        created_by=run.job.created_by,
        parent_job_id=run.job.id,
        unless_active=True,
    )
