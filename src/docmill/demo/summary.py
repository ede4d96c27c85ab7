"""What the demo claims at its end, each claim checked against the database and against the input it wrote itself."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from docmill.bootstrap import App
from docmill.demo.invoices import PAGES, SAMPLES, UNKNOWN_VENDOR
from docmill.demo.play import Played
from docmill.demo.steps import CALLS
from docmill.demo.tale import Tale
from docmill.demo.watch import JobNow
from docmill.model.statuses import JobStatus, StepStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One promise, and whether it was kept."""

    name: str
    kept: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """One row that the processor wrote."""

    invoice: str
    vendor: str
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The demo in figures."""

    seconds: float
    jobs: Mapping[str, int]
    """Status -> how many."""
    steps_run: int
    retries: int
    taken_over: int
    given_back_s: float | None
    """From the kill until the last step of the dead worker was ready again."""
    takeover_s: float | None
    """From the kill until the last of them ran again in another worker."""
    pages: int
    model_calls: int
    bookings: tuple[Booking, ...]
    claims: tuple[Claim, ...]

    @property
    def kept(self) -> bool:
        return all(claim.kept for claim in self.claims)

    def document(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**asdict(self), "kept": self.kept}


def sum_up(app: App, home: Path, played: Played) -> Summary:
    """Count and check."""
    jobs, tale = played.snapshot.jobs, played.tale
    with app.database.read() as connection:
        rows = connection.execute(
            text("select job_id, invoice, vendor, cents from demo_bookings order by invoice")
        ).all()
    bookings = tuple(Booking(invoice=row.invoice, vendor=row.vendor, cents=row.cents) for row in rows)
    invoices = {job.id: job.invoice for job in jobs}
    calls = [line.split() for line in (home / CALLS).read_text().splitlines()]
    asked = Counter((invoices[job], int(page), model) for job, page, model in calls)
    models = {job.invoice: _result(app, job, "extract").get("model") for job in jobs}
    return Summary(
        seconds=round(played.seconds, 1),
        jobs=dict(sorted(Counter(job.status.value for job in jobs).items())),
        steps_run=tale.steps_run,
        retries=tale.retries,
        taken_over=len(tale.resumed),
        given_back_s=_since_kill(tale, tale.given_back),
        takeover_s=_since_kill(tale, tale.resumed),
        pages=len(jobs) * PAGES,
        model_calls=len(calls),
        bookings=bookings,
        claims=(
            _finished(jobs),
            _condition(jobs),
            _retried(jobs, models),
            _optional(jobs),
            _taken_over(jobs, tale),
            _not_asked_again(tale, asked),
            _once(jobs, bookings, [row.job_id for row in rows]),
        ),
    )


def _many(things: Collection[object], noun: str) -> str:
    return f"{len(things)} {noun}" + "s" * (len(things) != 1)


def _result(app: App, job: JobNow, step_key: str) -> Mapping[str, Any]:
    found = next(step.result for step in app.jobs.get(job.id).steps if step.step_key == step_key)
    return found if isinstance(found, Mapping) else {}


def _since_kill(tale: Tale, times: Mapping[tuple[str, str], datetime]) -> float | None:
    if tale.kill is None or not times:
        return None
    return round((max(times.values()) - tale.kill.at).total_seconds(), 2)


def _finished(jobs: tuple[JobNow, ...]) -> Claim:
    ended = sum(job.status in (JobStatus.COMPLETED, JobStatus.PARTIAL_SUCCESS) for job in jobs)
    return Claim(
        name="nothing_lost",
        kept=ended == len(SAMPLES) == len(jobs),
        text=f"nothing lost: {ended} of {len(SAMPLES)} jobs came to a good end",
    )


def _condition(jobs: tuple[JobNow, ...]) -> Claim:
    skipped = {job.invoice for job in jobs if job.steps["convert"].status is StepStatus.SKIPPED}
    return Claim(
        name="condition",
        kept=skipped == {sample.name for sample in SAMPLES if sample.currency == "EUR"},
        text=f"condition: convert was skipped for the {len(skipped)} invoices in euro, and no other",
    )


def _retried(jobs: tuple[JobNow, ...], models: Mapping[str, object]) -> Claim:
    retried = {job.invoice for job in jobs if job.steps["extract"].failures}
    switched = all(models[invoice] == "careful-2" for invoice in retried)
    return Claim(
        name="retry",
        kept=switched and retried == {sample.name for sample in SAMPLES if sample.handwritten},
        text=f"retry: {len(retried)} handwritten invoices beat swift-1 and were read by careful-2",
    )


def _optional(jobs: tuple[JobNow, ...]) -> Claim:
    partial = {job.invoice for job in jobs if job.status is JobStatus.PARTIAL_SUCCESS}
    return Claim(
        name="optional",
        kept=partial == {sample.name for sample in SAMPLES if sample.vendor == UNKNOWN_VENDOR},
        text=f"optional: looking up {UNKNOWN_VENDOR} failed, its job is a PARTIAL_SUCCESS",
    )


def _taken_over(jobs: tuple[JobNow, ...], tale: Tale) -> Claim:
    if tale.kill is None:
        return Claim(
            name="takeover",
            kept=False,
            text="takeover: no worker was killed, none was ever in the middle of a document",
        )
    crashed = {(job.invoice, key) for job in jobs for key, step in job.steps.items() if step.crashes}
    waited, steps = _since_kill(tale, tale.resumed), _many(crashed, "step")
    return Claim(
        name="takeover",
        kept=set(tale.kill.held) <= crashed == set(tale.resumed),
        text=f"takeover: worker {tale.kill.worker} was killed, its {steps} ran elsewhere {waited} s later",
    )


def _not_asked_again(tale: Tale, asked: Mapping[tuple[str, int, str], int]) -> Claim:
    stored = tale.kill.stored if tale.kill else frozenset()
    again = [key for key, times in asked.items() if key[:2] in stored and times > 1]
    return Claim(
        name="checkpoints",
        kept=bool(stored) and not again,
        text=f"checkpoints: {_many(stored, 'page')} stored by then not paid for again",
    )


def _once(jobs: tuple[JobNow, ...], bookings: tuple[Booking, ...], job_ids: list[str]) -> Claim:
    total = sum(booking.cents for booking in bookings)
    expected = {sample.name: sample.cents for sample in SAMPLES}
    right = {booking.invoice: booking.cents for booking in bookings} == expected
    once = len(job_ids) == len(set(job_ids)) == len(jobs)
    return Claim(
        name="exactly_once",
        kept=once and right,
        text=f"exactly once: {len(job_ids)} bookings for {len(jobs)} jobs, {total / 100:,.2f} euro, right to the cent",
    )
