"""What is left behind when all is done: the plug-in's tables, the installation's records, and the books of others."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from docmill.bootstrap import App
from docmill.demo.fleet import OFFICE
from docmill.demo.model import Charge, charges
from docmill.demo.watch import JobNow
from docmill.model.callbacks import CallbackOutcome
from docmill.model.statuses import StepStatus
from docmill.services.models import CallView
from docmill.templates.plan import Plan

_MOST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """One row that the finish method wrote."""

    job_id: str
    paper: str
    reference: str
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How the steps of one job followed each other, by its events."""

    in_order: bool
    """No group began before the ones before it had settled."""
    most_at_once: int
    """Steps that ran at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the claims are held against."""

    effects: Mapping[tuple[str, str], int]
    """(job id, step key) -> how often its processor took effect."""
    bookings: tuple[Booking, ...]
    calls: tuple[CallView, ...]
    """As the installation recorded them."""
    charges: tuple[Charge, ...]
    """As the vendor of the models did."""
    callbacks: Mapping[str, Mapping[CallbackOutcome, int]]
    """Paper -> what became of the callbacks about it."""
    callers: Mapping[str, int]
    """Paper -> the process that called back."""
    told: Mapping[str, frozenset[float]]
    """Paper -> totals that the office was told, by its own log."""
    courses: Mapping[str, Course]


def gather(app: App, home: Path, plan: Plan, jobs: Sequence[JobNow], callers: Mapping[str, int]) -> Evidence:
    """Read it all."""
    with app.database.read() as connection:
        effects = connection.execute(text("select job_id, step_key from demo_effects")).all()
        booked = connection.execute(
            text("select job_id, paper, reference, cents from demo_bookings order by paper")
        ).all()
    told: dict[str, set[float]] = {}
    for line in (home / OFFICE / "hub.log").read_text().splitlines():
        message = json.loads(line)["message"]
        told.setdefault(message["entityId"], set()).add(message["entity"]["total"])
    return Evidence(
        effects=Counter((row.job_id, row.step_key) for row in effects),
        bookings=tuple(Booking(**row._mapping) for row in booked),
        calls=tuple(app.model_use.calls(limit=_MOST)),
        charges=tuple(charges(home)),
        callbacks={job.paper: Counter(view.outcome for view in app.callbacks.list(job.id)) for job in jobs},
        callers=callers,
        told={paper: frozenset(totals) for paper, totals in told.items()},
        courses={job.paper: _course(app, plan, job.id) for job in jobs},
    )


def _course(app: App, plan: Plan, job_id: str) -> Course:
    settled: set[str] = set()
    running: set[str] = set()
    in_order, most = True, 0
    for started, ended, left in _moves(app, job_id):
        settled |= ended
        running = (running - left) | started
        earlier = {
            step.step_key
            for step in plan.steps
            for key in started
            if step.execution_group < plan.step(key).execution_group
        }
        in_order = in_order and earlier <= settled
        most = max(most, len(running))
    return Course(in_order=in_order, most_at_once=most)


def _moves(app: App, job_id: str) -> Iterator[tuple[set[str], set[str], set[str]]]:
    """Transaction by transaction: the steps that began, that settled, and that run no longer."""
    for event in app.jobs.events(job_id):
        last = {key: StepStatus(after) for key, _, after, *_ in event.data["steps"]}
        began = {key for key, _, after, *_ in event.data["steps"] if after == StepStatus.IN_PROGRESS}
        ended = {key for key, status in last.items() if status.settled}
        yield began, ended, {key for key, status in last.items() if status is not StepStatus.IN_PROGRESS}
