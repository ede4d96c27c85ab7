"""Issues that a job opens on its way: they are stored by the transaction that reports on the step, or not at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from docmill.engine.locked import LockedJob
from docmill.engine.sql.rows import HotSql
from docmill.engine.sql.statements import INSERT_ISSUE, WITHDRAW_ISSUES
from docmill.model.issues import IssueSeverity


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIssue:
    """An issue to open with a report. Its id must come out the same if the report is made again."""

    id: str
    code: str
    title: str
    severity: IssueSeverity = IssueSeverity.ERROR
    blocking: bool = False
    """The step waits until it is resolved."""
    details: Mapping[str, object] = field(default_factory=dict)
    answer_schema: Mapping[str, object] | None = None
    """What the data of a resolution must look like."""
    assigned_to: str | None = None


def write_issues(
    sql: HotSql,
    opened: Iterable[tuple[LockedJob, int | None, NewIssue]],
    moved_on: Iterable[LockedJob],
    now: datetime,
) -> None:
    """Withdraw the questions of steps that no longer wait for an answer, then open the new ones."""
    sql.run_each(
        WITHDRAW_ISSUES,
        [
            {"job_id": job.was.head.id, "position": position, "now": now}
            for job in moved_on
            for position in job.left_waiting
        ],
    )
    sql.run_each(INSERT_ISSUE, [_row(job, position, issue, now) for job, position, issue in opened])


def _row(job: LockedJob, position: int | None, issue: NewIssue, now: datetime) -> dict[str, object]:
    head = job.was.head
    schema = issue.answer_schema
    return {
        "id": issue.id,
        "org_id": head.org_id,
        "processable_type": head.entity_type,
        "processable_id": head.entity_id,
        "job_id": head.id,
        "position": position,
        "step_key": None if position is None else job.plan.steps[position].step_key,
        "epoch": None if position is None else job.state.steps[position].epoch,
        "code": issue.code,
        "severity": issue.severity.value,
        "blocking": issue.blocking,
        "title": issue.title,
        "details": orjson.dumps(issue.details).decode(),
        "answer_schema": None if schema is None else orjson.dumps(schema).decode(),
        "assigned_to": issue.assigned_to,
        "created_by": head.created_by,
        "now": now,
    }
