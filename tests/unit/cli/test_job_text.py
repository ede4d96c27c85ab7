"""How long jobs take, and when steps are due, is told as of the moment at which somebody looks."""

from datetime import UTC, datetime, timedelta

import pytest

from docmill.cli import job_text
from docmill.model.statuses import JobStatus, StepStatus
from docmill.services.job_views import JobSummary, JobView, StepView

BEGAN = datetime(2026, 11, 1, 8, tzinfo=UTC)
NOW = BEGAN + timedelta(minutes=3)


def job(finished_at: datetime | None = None) -> JobSummary:
    return JobSummary(
        id="01a1e387-7552-7817-8da3-1ee5c417ee62",
        template="intake",
        template_version=1,
        entity_type="document",
        entity_id="1",
        title="",
        status=JobStatus.IN_PROGRESS,
        progress=0.0,
        run=1,
        priority=0,
        created_at=BEGAN,
        started_at=BEGAN,
        finished_at=finished_at,
    )


def test_a_running_job_took_until_now_and_a_finished_one_until_its_end() -> None:
    ended = BEGAN + timedelta(seconds=20)
    assert job_text.duration(job(), NOW) == job_text.duration(job(finished_at=NOW), NOW + timedelta(days=1))
    assert job_text.duration(job(finished_at=ended), NOW) != job_text.duration(job(), NOW)


@pytest.mark.parametrize(("minutes", "told"), [(5, True), (1, False)], ids=["to come", "over"])
def test_a_step_is_due_in_so_long_from_now_on(capsys: pytest.CaptureFixture[str], minutes: int, told: bool) -> None:
    due = BEGAN + timedelta(minutes=minutes)
    step = StepView(
        step_key="read",
        display_name="Read",
        kind="rule",
        pool="rule",
        execution_group=1,
        optional=False,
        status=StepStatus.READY,
        attempt=1,
        max_attempts=4,
        crashes=0,
        reason=None,
        result=None,
        error=None,
        due_at=due,
        started_at=None,
        finished_at=None,
    )
    view = JobView(
        summary=job(), version=1, metadata={}, file_type=None, created_by=None, parent_job_id=None, steps=(step,)
    )
    job_text.details(view, NOW)
    assert ("due in" in capsys.readouterr().out) is told
