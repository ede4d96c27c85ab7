"""The demo from beginning to end: an installation in a temporary folder, workers, jobs, and a kill."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from threading import Event
from time import monotonic

from rich.console import Console
from sqlalchemy import select, text

from docmill.bootstrap import App, open_app
from docmill.db.tables import step_parts
from docmill.demo import steps
from docmill.demo.fleet import NAMES, Fleet
from docmill.demo.invoices import PAGES, write_samples
from docmill.demo.screen import open_screen
from docmill.demo.tale import Kill, Tale
from docmill.demo.watch import JobNow, Snapshot, Watcher
from docmill.engine.batch import NewJob
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.model.statuses import JobStatus, StepStatus
from docmill.settings import load_settings
from docmill.templates.compile import compile_template

_FRAME = 0.1
"""Seconds between looks."""
MODEL_SLOTS = 3
_SETTINGS = f"""\
plugins: [docmill.demo.steps]
pools:
  ai: {{capacity: {MODEL_SLOTS}}}    # model calls at once, in each worker
  rule: {{capacity: 6}}
"""


class DemoStuck(DocmillError):
    """The demo did not come to its end in time; the message says what was still open."""

    code = "demo_stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What is left to be summed up."""

    snapshot: Snapshot
    tale: Tale
    seconds: float


@contextmanager
def installation(keep: Path | None) -> Iterator[tuple[App, Path]]:
    """A fresh installation, in a folder that goes with the demo unless it is to be kept."""
    home = keep.resolve() if keep else Path(tempfile.mkdtemp(prefix="docmill-demo-"))
    try:
        home.mkdir(parents=True, exist_ok=True)
        if any(home.iterdir()):
            raise DocmillError(f"The folder {home} is not empty; name one that is, or one that does not exist yet.")
        (home / "docmill.yaml").write_text(_SETTINGS)
        # The demo is the same for everybody: nobody's own settings reach it.
        for name in [name for name in os.environ if name.startswith("DOCMILL_")]:
            del os.environ[name]
        os.environ |= {"DOCMILL_HOME": str(home), "DOCMILL_CONFIG": str(home / "docmill.yaml")}
        with open_app(load_settings()) as app:
            yield app, home
    finally:
        if keep is None:
            shutil.rmtree(home, ignore_errors=True)


def play(app: App, home: Path, console: Console, *, timeout: float) -> Played:
    """Run it all; raises DemoStuck when it takes longer than `timeout` seconds, WorkerFailed when a worker gives up."""
    started = monotonic()
    template_text = files("docmill.demo").joinpath("invoice.yaml").read_text()
    compiled = compile_template(template_text, catalogue=app.catalogue, source="invoice.yaml")
    template = app.templates.register(compiled)
    invoices = write_samples(home / "inbox")
    with app.database.write() as connection:
        for table in steps.TABLES:
            connection.execute(text(table))
        rows = [{"id": name, "path": str(path)} for name, path in invoices.items()]
        connection.execute(text("insert into demo_invoices (id, path) values (:id, :path)"), rows)
    with Fleet(os.environ, home / "logs") as fleet, open_screen(console, compiled.plan) as screen:
        watcher = Watcher(app, fleet.names_by_pid())
        tale = Tale(plan=compiled.plan, began=datetime.now(UTC))
        planned = tuple(JobNow(id="", invoice=name, status=JobStatus.PENDING, steps={}) for name in invoices)
        while len(workers := watcher.glance().workers) < len(NAMES):
            screen.show(Snapshot(jobs=planned, workers=workers), tale, [])
            _check(fleet, "the workers did not all start; the machine may be very busy", started + timeout)
        tale.began = datetime.now(UTC)
        app.jobs.submit(
            [
                NewJob(template_id=template.id, org_id=DEFAULT_ORG, entity_type="demo_invoice", entity_id=name)
                for name in invoices
            ]
        )
        while True:
            snapshot = watcher.look()
            told = len(tale.lines)
            tale.take_in(snapshot)
            if tale.kill is None:
                _try_to_kill(app, watcher, fleet, snapshot, tale)
            screen.show(snapshot, tale, tale.lines[told:])
            if snapshot.finished:
                break
            _check(fleet, _what_is_open(snapshot), started + timeout)
    return Played(snapshot=snapshot, tale=tale, seconds=monotonic() - started)


def _check(fleet: Fleet, state: str, deadline: float) -> None:
    """Between two frames: all well, and time left?"""
    fleet.check()
    if monotonic() > deadline:
        raise DemoStuck(f"Out of time: {state}.")
    Event().wait(_FRAME)


def _try_to_kill(app: App, watcher: Watcher, fleet: Fleet, snapshot: Snapshot, tale: Tale) -> None:
    """Kill a worker that is in the middle of its documents, each with a page stored already."""
    name = _victim(snapshot)
    if name is None:
        return
    held: list[JobNow] = []
    running: list[tuple[str, str]] = []
    killed_at = datetime.now(UTC)

    def holds_enough() -> bool:
        nonlocal killed_at
        # The worker is stopped: what the database says now stays true.
        present = watcher.glance()
        held.extend(_in_the_middle(present, name))
        running.extend(
            (job.invoice, key) for job in present.jobs for key, step in job.steps.items() if step.worker == name
        )
        killed_at = datetime.now(UTC)
        return bool(held)

    if fleet.kill_if(name, holds_enough):
        tale.killed(
            Kill(
                worker=name,
                pid=next(worker.pid for worker in snapshot.workers if worker.name == name),
                at=killed_at,
                held=tuple(running),
                stored=_stored_pages(app, held),
            )
        )


def _victim(snapshot: Snapshot) -> str | None:
    """Whom to kill now, if anybody: when the others have room for its documents, so that the takeover is seen."""
    extracting = [step for job in snapshot.jobs if (step := job.steps.get("extract")) is not None]
    running = Counter(step.worker for step in extracting if step.status is StepStatus.IN_PROGRESS)
    waiting = sum(step.status is StepStatus.READY for step in extracting)
    to_come = len(snapshot.jobs) - sum(step.status.settled for step in extracting)
    held = {name: len(_in_the_middle(snapshot, name)) for name in NAMES}
    name = max(NAMES, key=lambda name: held[name])
    room = MODEL_SLOTS * (len(NAMES) - 1) - (running.total() - running[name]) - waiting
    # Near the end the last document will do, room or not: somebody must be killed.
    enough = held[name] > 1 or to_come <= 2
    return name if held[name] and enough and (room >= running[name] or to_come <= 2) else None


def _in_the_middle(snapshot: Snapshot, worker: str) -> list[JobNow]:
    """Jobs whose invoice this worker is reading, some pages stored and some to come."""
    return [
        job
        for job in snapshot.jobs
        if (step := job.steps.get("extract")) is not None
        and step.status is StepStatus.IN_PROGRESS
        and step.worker == worker
        and 0 < step.parts < PAGES
    ]


def _stored_pages(app: App, held: list[JobNow]) -> frozenset[tuple[str, int]]:
    invoices = {job.id: job.invoice for job in held}
    with app.database.read() as connection:
        rows = connection.execute(select(step_parts.c.job_id, step_parts.c.name)).all()
    return frozenset((invoices[row.job_id], int(row.name.split()[1])) for row in rows if row.job_id in invoices)


def _what_is_open(snapshot: Snapshot) -> str:
    jobs = [job for job in snapshot.jobs if not job.status.finished]
    steps = [
        f"  {job.invoice}: {key} {step.status}"
        for job in jobs
        for key, step in job.steps.items()
        if not step.status.settled
    ]
    return "still open are\n" + "\n".join(steps)
