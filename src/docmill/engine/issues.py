"""Issues that a job opens on its way: they are stored by the transaction that reports on the step, or not at all.

The lock of the job guards the issues of its steps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from docmill.engine.locked import LockedJob
from docmill.engine.sql.rows import HotSql
from docmill.engine.sql.statements import FORGET_PARTS, INSERT_ISSUE, WITHDRAW_ISSUES
from docmill.model.issues import IssueSeverity

RAISED = "docmill.issues/"
"""How the parts are called in which the issues of a compute stay with its result; its epoch follows."""

ITEM = "docmill.item/"
"""How the parts are called in which the items stay that are done."""
ASKING_ITEM = f"{ITEM}?"
"""The same for items that raised an issue which blocks: they are done again when whoever is asked wants that."""


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
    corrects: bool = False
    """The data of a resolution corrects the result that the step has; otherwise it is the result."""


def write_issues(
    sql: HotSql,
    opened: Iterable[tuple[LockedJob, int | None, NewIssue]],
    moved_on: Iterable[LockedJob],
    now: datetime,
) -> None:
    """Open the new ones, then withdraw those of steps that no longer wait: also what came too late to be asked."""
    sql.run_each(INSERT_ISSUE, [_row(job, position, issue, now) for job, position, issue in opened])
    left = [({"job_id": job.was.head.id, "position": place}, by) for job in moved_on for place, by in job.left_waiting]
    sql.run_each(WITHDRAW_ISSUES, [{**step, "now": now} for step, _ in left])
    forgotten = [{**step, "names": f"{RAISED}%"} for step, by in left if by is not None]
    forgotten += [{**step, "names": f"{ASKING_ITEM}%"} for step, by in left if by == "reopened"]
    sql.run_each(FORGET_PARTS, forgotten)


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
        "corrects": issue.corrects,
        "title": issue.title,
        "details": orjson.dumps(issue.details).decode(),
        "answer_schema": None if schema is None else orjson.dumps(schema).decode(),
        "assigned_to": issue.assigned_to,
        "created_by": head.created_by,
        "now": now,
    }
