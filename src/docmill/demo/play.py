"""The demo from beginning to end: an installation in a temporary folder, workers, jobs, a kill, and the end of it all."""

import os
import shutil
import tempfile
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
from docmill.model.statuses import StepStatus
from docmill.settings import load_settings
from docmill.templates.compile import compile_template

_FRAME = 0.1
"""Seconds between looks."""
_SETTINGS = """\
plugins: [docmill.demo.steps]
pools:
  ai: {capacity: 2}     # model calls at once, in each worker
  rule: {capacity: 6}
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
        _wait_for_workers(watcher, fleet, started + timeout)
        tale = Tale(plan=compiled.plan, began=datetime.now(UTC))
        app.jobs.submit(
            [
                NewJob(template_id=template.id, org_id=DEFAULT_ORG, entity_type="demo_invoice", entity_id=name)
                for name in invoices
            ]
        )
        pause = Event()
        while True:
            snapshot = watcher.look()
            told = len(tale.lines)
            tale.take_in(snapshot)
            if tale.kill is None:
                _try_to_kill(app, watcher, fleet, snapshot, tale)
            screen.show(snapshot, tale, tale.lines[told:])
            if snapshot.finished:
                break
            fleet.check()
            if monotonic() > started + timeout:
                raise DemoStuck(_what_is_open(snapshot, timeout))
            pause.wait(_FRAME)
    return Played(snapshot=snapshot, tale=tale, seconds=monotonic() - started)


def _wait_for_workers(watcher: Watcher, fleet: Fleet, deadline: float) -> None:
    pause = Event()
    while len(watcher.glance().workers) < len(NAMES):
        fleet.check()
        if monotonic() > deadline:
            raise DemoStuck("The workers did not start in time; the machine may be very busy. Try again.")
        pause.wait(0.02)


def _try_to_kill(app: App, watcher: Watcher, fleet: Fleet, snapshot: Snapshot, tale: Tale) -> None:
    """Kill a worker that is in the middle of as many documents as it may hold, each with a page stored already."""
    held = {worker.name: _in_the_middle(snapshot, worker.name) for worker in snapshot.workers}
    most = max(held.values(), key=len, default=[])
    name = next((name for name in ("B", "C", "A") if len(held.get(name, ())) == len(most)), "B")
    # Late in the demo the last document will do: somebody must be killed.
    late = tale.seconds(datetime.now(UTC)) > 6
    if len(most) < (1 if late else 2):
        return
    killed_at: list[datetime] = []

    def holds_enough() -> bool:
        # The worker is stopped: what the database says now stays true.
        held[name] = _in_the_middle(watcher.glance(), name)
        killed_at.append(datetime.now(UTC))
        return bool(held[name])

    if fleet.kill_if(name, holds_enough):
        tale.killed(
            Kill(
                worker=name,
                pid=next(worker.pid for worker in snapshot.workers if worker.name == name),
                at=killed_at[0],
                held=tuple((job.invoice, "extract") for job in held[name]),
                stored=_stored_pages(app, held[name]),
            )
        )


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


def _what_is_open(snapshot: Snapshot, timeout: float) -> str:
    jobs = [job for job in snapshot.jobs if not job.status.finished]
    steps = [
        f"  {job.invoice}: {key} {step.status}"
        for job in jobs
        for key, step in job.steps.items()
        if not step.status.settled
    ]
    return f"The demo did not finish within {timeout:g} s. Still open:\n" + "\n".join(steps)
