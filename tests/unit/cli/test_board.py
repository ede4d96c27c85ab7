"""The live board: whatever the events say, in one piece."""

from datetime import UTC, datetime
from typing import Any

from docmill.cli.board import Board
from docmill.model.statuses import JobStatus, StepStatus
from docmill.services.following import JobEvent
from docmill.services.jobs import JobSummary, JobView, StepView

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def step(key: str) -> StepView:
    return StepView(
        step_key=key,
        display_name=key,
        kind="rule",
        pool="rule",
        execution_group=1,
        optional=False,
        status=StepStatus.PENDING,
        attempt=0,
        max_attempts=4,
        crashes=0,
        reason=None,
        result=None,
        error=None,
        due_at=None,
        started_at=None,
        finished_at=None,
    )


def view(job_id: str = "a") -> JobView:
    summary = JobSummary(
        id=job_id,
        template="t",
        template_version=1,
        entity_type="document",
        entity_id="7",
        title="",
        status=JobStatus.PENDING,
        progress=0.0,
        run=1,
        priority=0,
        created_at=NOW,
        started_at=None,
        finished_at=None,
    )
    return JobView(
        summary=summary,
        version=1,
        metadata={},
        file_type=None,
        created_by=None,
        parent_job_id=None,
        steps=(step("read"), step("finish")),
    )


def event(job_id: str = "a", **data: Any) -> JobEvent:
    return JobEvent(job_id=job_id, version=2, at=NOW, data=data)


def test_events_move_steps_and_job_and_keep_the_last_error_while_it_matters() -> None:
    board = Board([view()])
    job = board.jobs["a"]
    board.hear(event(job=["PENDING", "IN_PROGRESS"], steps=[["read", "READY", "IN_PROGRESS"]]))
    assert job.running == ["read"]
    trouble = {"code": "x", "message": "y"}
    board.hear(event(steps=[["read", "IN_PROGRESS", "READY", "retry"]], errors={"read": trouble}))
    assert job.errors == {"read": trouble}
    board.hear(event(steps=[["read", "IN_PROGRESS", "COMPLETED"], ["finish", "PENDING", "READY"]]))
    assert job.errors == {}
    assert job.settled == 1
    assert job.status is JobStatus.IN_PROGRESS


def test_the_liveliest_jobs_are_shown_first() -> None:
    board = Board([view("a"), view("b"), view("c")])
    board.hear(event("c", job=["PENDING", "IN_PROGRESS"], steps=[]))
    board.hear(event("b", job=["IN_PROGRESS", "FAILED"], steps=[]))
    assert [job.id for job in board.liveliest(2)] == ["c", "b"]
    assert board.counts()[JobStatus.PENDING] == 1
