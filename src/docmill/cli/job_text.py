"""Jobs as people read them."""

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from docmill.cli.output import counted, print_table, printable, record, styled, took, when
from docmill.model.statuses import StepStatus

if TYPE_CHECKING:
    from rich.text import Text

    from docmill.services.jobs import JobSummary, JobView, StepView

_ROOMY = 110
"""Columns from which a list of jobs also shows when they were created and how long they took."""


_BRIEF = 100
"""Characters of a result that are shown unless all of it is asked for."""


def job_record(view: "JobView") -> dict[str, object]:
    """A job with its steps as one flat JSON object."""
    steps = [record(step, items=None if step.items is None else record(step.items)) for step in view.steps]
    whole = record(view, steps=steps, children=[record(child) for child in view.children])
    whole.pop("summary")
    return record(view.summary) | whole


def job_table(jobs: "Sequence[JobSummary]", now: datetime) -> None:
    """A list of jobs on stdout, as they are now."""
    roomy = not sys.stdout.isatty() or shutil.get_terminal_size().columns >= _ROOMY
    heads = ["JOB", "STATUS", "TEMPLATE", "ENTITY"]
    titled = any(job.title for job in jobs)
    heads += ["CREATED", "TOOK"] if roomy else []
    heads += ["TITLE"] if roomy and titled else []
    rows: list[list[str | Text]] = []
    for job in jobs:
        entity = f"{job.entity_type}:{job.entity_id}"
        row: list[str | Text] = [job.id, _status(job), job.template, entity]
        row += [when(job.created_at), duration(job, now)] if roomy else []
        row += [job.title] if roomy and titled else []
        rows.append(row)
    print_table(heads, rows, give_way=("TEMPLATE", "ENTITY", "TITLE"))


def details(view: "JobView", now: datetime, *, whole_results: bool = False) -> None:
    """One job with its steps on stdout; results in a line each, or whole."""
    job = view.summary
    settled = sum(step.status.settled for step in view.steps)
    facts = {
        "job": job.id,
        "status": f"{job.status} ({settled} of {counted(len(view.steps), 'step')} settled)",
        "template": f"{job.template} version {job.template_version}",
        "entity": f"{job.entity_type}:{job.entity_id}",
        "title": job.title,
        "file type": view.file_type or "",
        "metadata": json.dumps(view.metadata, ensure_ascii=False) if view.metadata else "",
        "created by": view.created_by or "",
        "batch": view.batch_id or "",
        "parent job": view.parent_job_id or "",
        "priority": str(job.priority) if job.priority else "",
        "run": str(job.run) if job.run > 1 else "",
        "created": when(job.created_at),
        "took": duration(job, now),
    }
    for name, value in facts.items():
        if value:
            print(f"{name:<11} {printable(value)}")
    print()
    rows = [
        (step.step_key, styled(step.status), _tries(step), took(_length(step, now)), _note(step, now))
        for step in view.steps
    ]
    print_table(("STEP", "STATUS", "TRIES", "TOOK", "NOTE"), rows, give_way=("NOTE",))
    for step in view.steps:
        if step.error:
            print(f"\n{step.step_key}: {error_text(step.error)}")
    _results(view, whole=whole_results)
    _children(view)


def _results(view: "JobView", *, whole: bool) -> None:
    shown = [step for step in view.steps if step.status is StepStatus.COMPLETED and step.result is not None]
    if not shown:
        return
    print("\nresults" if whole else "\nresults (in full with --results)")
    for step in shown:
        if whole:
            print(f"{step.step_key}:\n{_lines(json.dumps(step.result, ensure_ascii=False, indent=2))}")
        else:
            text = printable(json.dumps(step.result, ensure_ascii=False))
            print(f"  {step.step_key}: {text if len(text) <= _BRIEF else text[:_BRIEF] + '…'}")


def _lines(text: str) -> str:
    return "\n".join(f"  {printable(line)}" for line in text.splitlines())


def _children(view: "JobView") -> None:
    if view.children:
        print("\njobs that it brought about")
        rows = [
            (child.id, styled(child.status), child.template, "undoes this one" if child.undoes else "follow-up")
            for child in view.children
        ]
        print_table(("JOB", "STATUS", "TEMPLATE", ""), rows, give_way=("TEMPLATE",))


def _status(job: "JobSummary") -> "Text":
    """The status, with progress while it means something."""
    text = styled(job.status)
    return text if job.status.finished or not job.progress else text.append(f" {percent(job.progress)}")


def percent(progress: float) -> str:
    """Progress, rounded down: 100% means all of it."""
    return f"{int(progress * 100)}%"


def duration(job: "JobSummary", now: datetime) -> str:
    """From start to end, or until now."""
    if job.started_at is None:
        return ""
    return took((job.finished_at or now) - job.started_at)


def error_text(error: object) -> str:
    """An error record in a line: message and code."""
    if not isinstance(error, dict):
        return printable(str(error))
    attempt = f" (attempt {error['attempt']})" if error.get("attempt", 1) != 1 else ""
    return printable(f"{error.get('message', '')} [{error.get('code', 'error')}]{attempt}")


def _tries(step: "StepView") -> str:
    return f"{step.attempt}/{step.max_attempts}" if step.attempt else ""


def _length(step: "StepView", now: datetime) -> timedelta | None:
    if step.started_at is None:
        return None
    if step.finished_at is None and step.status is not StepStatus.IN_PROGRESS:
        return None
    return (step.finished_at or now) - step.started_at


def _note(step: "StepView", now: datetime) -> str:
    notes = ["optional"] if step.optional else []
    if step.reason is not None:
        notes.append({"condition": "its condition does not hold"}.get(step.reason, step.reason.replace("_", " ")))
    if step.items is not None:
        notes.append(f"{step.items.completed} of {counted(step.items.total, 'item')}")
    if step.model is not None:
        notes.append(f"model {step.model}")
    if step.crashes:
        notes.append(counted(step.crashes, "crash", "crashes"))
    if step.due_at is not None and step.due_at > now:
        notes.append(f"due in {took(step.due_at - now)}")
    return ", ".join(notes)
