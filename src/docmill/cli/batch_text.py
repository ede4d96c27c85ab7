"""Batches as people read them."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from docmill.cli.job_text import error_text, percent
from docmill.cli.output import counted, print_table, printable, record, styled, took, when
from docmill.model.statuses import JobStatus

if TYPE_CHECKING:
    from rich.text import Text

    from docmill.services.batch_views import BatchView, JobResult


def batch_record(view: "BatchView") -> dict[str, object]:
    """A batch as one JSON object."""
    counts = {status.value: view.counts.get(status, 0) for status in JobStatus}
    return record(view, counts=counts, finished=view.finished, failures=[record(one) for one in view.failures])


def batch_table(batches: "Sequence[BatchView]", now: datetime) -> None:
    """A list of batches on stdout, as they are now."""
    rows: list[list[str | Text]] = [
        [
            view.id,
            styled(view.status),
            percent(view.progress),
            f"{view.finished}/{view.total}",
            str(view.counts.get(JobStatus.FAILED, 0) or ""),
            when(view.created_at),
            duration(view, now),
            view.title,
        ]
        for view in batches
    ]
    heads = ["BATCH", "STATUS", "DONE", "JOBS", "FAILED", "CREATED", "TOOK", "TITLE"]
    print_table(heads, rows, give_way=("TITLE", "CREATED"))


def details(view: "BatchView", now: datetime) -> None:
    """One batch on stdout."""
    facts = {
        "batch": view.id,
        "status": f"{view.status}{' (being cancelled)' if view.cancelling else ''}",
        "title": view.title,
        "jobs": f"{view.total:,}: {standing(view)}" if view.total else "0",
        "progress": f"{percent(view.progress)} of all steps",
        "limit": f"{view.limit:,} ({view.active:,} active, {view.held:,} held)",
        "metadata": json.dumps(view.metadata, ensure_ascii=False) if view.metadata else "",
        "created": when(view.created_at),
        "took": duration(view, now),
    }
    for name, value in facts.items():
        if value:
            print(f"{name:<9} {printable(value)}")
    if view.failures:
        print()
        result_table(view.failures)
        more = sum(view.counts.get(status, 0) for status in (JobStatus.FAILED, JobStatus.PARTIAL_SUCCESS))
        more -= len(view.failures)
        if more > 0:
            print(f"… and {counted(more, 'job')} more: `docmill batch results {view.id} --status FAILED`")


def result_table(results: "Sequence[JobResult]") -> None:
    """Jobs of a batch with their results or errors, on stdout."""
    rows: list[list[str | Text]] = [
        [one.job_id, styled(one.status), f"{one.entity_type}:{one.entity_id}", _outcome(one)] for one in results
    ]
    print_table(["JOB", "STATUS", "ENTITY", "RESULT"], rows, give_way=("ENTITY", "RESULT"))


def standing(view: "BatchView") -> str:
    """How many jobs have which status, in a line."""
    return ", ".join(f"{number:,} {status}" for status, number in view.counts.items())


def duration(view: "BatchView", now: datetime) -> str:
    """From the first start to the end, or until now."""
    if view.started_at is None:
        return ""
    return took((view.finished_at or now) - view.started_at)


def _outcome(one: "JobResult") -> str:
    if one.error is not None:
        return f"{one.step}: {error_text(one.error)}"
    return "" if one.result is None else json.dumps(one.result, ensure_ascii=False)
