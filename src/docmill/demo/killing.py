"""Whom to kill, and when: a worker in the middle of its papers, at a moment when the others have room for them."""

from collections import Counter

from sqlalchemy import select

from docmill.bootstrap import App
from docmill.bootstrap.clock import this_moment
from docmill.db.tables import step_parts
from docmill.demo.fleet import NAMES, Fleet
from docmill.demo.installation import MODEL_SLOTS
from docmill.demo.papers import PAGES
from docmill.demo.tale import Kill
from docmill.demo.watch import JobNow, Snapshot, Watcher
from docmill.model.statuses import StepStatus

READING = "ocr"
"""The step in whose middle a worker is killed."""


def try_to_kill(app: App, watcher: Watcher, fleet: Fleet, snapshot: Snapshot) -> Kill | None:
    """Kill a worker if one is in the middle of papers, each with a page stored already."""
    name = _victim(snapshot)
    if name is None:
        return None
    held: list[JobNow] = []
    running: list[tuple[str, str]] = []
    killed_at = this_moment()

    def holds_enough() -> bool:
        nonlocal killed_at
        # The worker is stopped: what the database says now stays true.
        present = watcher.glance()
        held.extend(_in_the_middle(present, name))
        running.extend(
            (job.paper, key) for job in present.jobs for key, step in job.steps.items() if step.worker == name
        )
        killed_at = this_moment()
        return bool(held)

    if not fleet.kill_if(name, holds_enough):
        return None
    return Kill(worker=name, at=killed_at, held=tuple(running), stored=_stored_pages(app, held))


def _victim(snapshot: Snapshot) -> str | None:
    reading = [step for job in snapshot.jobs if (step := job.steps.get(READING)) is not None]
    busy = Counter(
        step.worker for job in snapshot.jobs for step in job.steps.values() if step.status is StepStatus.IN_PROGRESS
    )
    waiting = sum(step.status is StepStatus.READY for step in reading)
    to_come = len(snapshot.jobs) - sum(step.status.settled for step in reading)
    held = {name: len(_in_the_middle(snapshot, name)) for name in NAMES}
    name = max(NAMES, key=lambda name: held[name])
    room = MODEL_SLOTS * (len(NAMES) - 1) - (busy.total() - busy[name]) - waiting
    # Best when each of its papers has a page stored: then there is something to keep. Near the end the last paper will
    # do, room or not: somebody must be killed.
    good = held[name] > 1 and held[name] == busy[name] <= room
    return name if held[name] and (good or to_come <= 2) else None


def _in_the_middle(snapshot: Snapshot, worker: str) -> list[JobNow]:
    """Jobs whose paper this worker is reading, some pages stored and some to come."""
    return [
        job
        for job in snapshot.jobs
        if (step := job.steps.get(READING)) is not None
        and step.status is StepStatus.IN_PROGRESS
        and step.worker == worker
        and 0 < step.parts < PAGES
    ]


def _stored_pages(app: App, held: list[JobNow]) -> frozenset[tuple[str, str]]:
    papers = {job.id: job.paper for job in held}
    with app.database.read() as connection:
        rows = connection.execute(select(step_parts.c.job_id, step_parts.c.name)).all()
    return frozenset((papers[row.job_id], row.name) for row in rows if row.job_id in papers)
