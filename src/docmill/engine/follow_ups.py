"""Follow-up jobs: named by template, given ids that a repeated attempt would give again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, select

from docmill.db.tables import templates
from docmill.engine.batch import NewJob, StepRun
from docmill.engine.context import to_json
from docmill.engine.sql.rows import HotSql
from docmill.engine.sql.statements import NAMED_PARTS, NEWEST_TEMPLATE
from docmill.model.errors import PermanentError
from docmill.model.ids import following_id
from docmill.plugin import FollowUp

_FIELDS = tuple(field.name for field in fields(FollowUp))
Newest = Callable[[str, str], str | None]
"""Organisation and name of a template -> the id of its newest version."""
_KEPT = "docmill.follow_ups/"
"""How the parts are called in which the follow-ups of a compute wait for its apply; its run and its epoch follow."""


class Wanted(NamedTuple):
    """The jobs that one compute wants, and the run it was in.

    Their ids follow from that run: its result may be applied in a later one, and again, and they are submitted once.
    """

    run: int
    jobs: Sequence[FollowUp]


def part_name(run: StepRun) -> str:
    """One for each compute: what is stored as a part stays as it was written first."""
    return f"{_KEPT}{run.run}/{run.state.epoch}"


def follow_ups_to_part(wanted: Sequence[FollowUp]) -> str:
    """As they are stored; PermanentError when they cannot be."""
    return to_json([{name: getattr(job, name) for name in _FIELDS} for job in wanted], "the follow-up jobs")


def follow_ups_from_part(stored: object) -> list[FollowUp]:
    """As they were wanted; None: there were none."""
    return [FollowUp(**job) for job in stored] if isinstance(stored, list) else []


def wanted_from_parts(parts: Mapping[str, Any], run: StepRun) -> Wanted:
    """What the newest compute that left a word wanted, which is the one whose result is stored."""
    places = [tuple(map(int, name.removeprefix(_KEPT).split("/"))) for name in parts if name.startswith(_KEPT)]
    if not places:
        return Wanted(run.run, [])
    computed_in, epoch = max(places)
    return Wanted(computed_in, follow_ups_from_part(parts[f"{_KEPT}{computed_in}/{epoch}"]))


def kept_follow_ups(sql: HotSql, run: StepRun) -> tuple[NewJob, ...]:
    """The jobs that the compute of a waiting step wanted: for whoever completes it with an answer."""
    about = {"job_id": run.job.id, "position": run.step.position, "names": f"{_KEPT}%"}
    parts = {name: orjson.loads(value) for name, value in sql.query(NAMED_PARTS, about)}

    def newest(org_id: str, name: str) -> str | None:
        found = sql.query(NEWEST_TEMPLATE, {"org_id": org_id, "name": name})
        return found[0][0] if found else None

    return resolve_follow_ups(newest, run, wanted_from_parts(parts, run))


def newest_template(connection: Connection, org_id: str, name: str) -> str | None:
    """Id of the newest version of a template, by name."""
    query = (
        select(templates.c.id)
        .where(templates.c.org_id == org_id, templates.c.name == name)
        .order_by(templates.c.version.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def resolve_follow_ups(newest: Newest, run: StepRun, wanted: Wanted, *, offset: int = 0) -> tuple[NewJob, ...]:
    """The jobs to submit with the completion of this step. `offset` keeps the ids of compute and apply apart."""
    return tuple(_resolve(newest, run, job, wanted.run, offset + index) for index, job in enumerate(wanted.jobs))


def _resolve(newest: Newest, run: StepRun, wanted: FollowUp, wanted_in: int, index: int) -> NewJob:
    template_id = newest(run.job.org_id, wanted.template)
    if template_id is None:
        raise PermanentError(
            f"The follow-up job names the template {wanted.template!r}, which does not exist; register it first."
        )
    return NewJob(
        id=following_id(run.job.id, "follow-up", run.step.position, wanted_in, index),
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
