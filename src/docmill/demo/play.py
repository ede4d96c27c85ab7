"""The demo from beginning to end: processes, jobs, a kill, and a person at the command line."""

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic

from rich.console import Console

from docmill.bootstrap import App
from docmill.bootstrap.clock import this_moment
from docmill.demo.clerk import Clerk, Resolved
from docmill.demo.fleet import NAMES, OFFICE, Fleet
from docmill.demo.installation import compiled_template, fill, store_prompts
from docmill.demo.killing import try_to_kill
from docmill.demo.papers import write_papers
from docmill.demo.screen import open_screen
from docmill.demo.tale import Tale
from docmill.demo.watch import JobNow, Snapshot, Watcher
from docmill.engine.batch import NewJob
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.model.statuses import JobStatus
from docmill.templates.plan import Plan

_FRAME = 0.1
"""Seconds between looks."""


class DemoStuck(DocmillError):
    """The demo did not come to its end in time; the message says what was still open."""

    code = "demo_stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What is left to be summed up."""

    plan: Plan
    snapshot: Snapshot
    tale: Tale
    resolved: tuple[Resolved, ...]
    office_pid: int
    worker_pids: frozenset[int]
    began: float
    """On the monotonic clock."""


def play(app: App, home: Path, fleet: Fleet, console: Console, *, began: float, timeout: float) -> Played:
    """Run it all; raises DemoStuck when it takes longer than `timeout` seconds, ProcessFailed when one gives up."""
    store_prompts(app)
    compiled = compiled_template(app.catalogue)
    template = app.templates.register(compiled)
    papers = write_papers(home / "inbox")
    fill(app, papers)
    fleet.start_workers()
    watcher = Watcher(app, fleet.names_by_pid())
    tale = Tale(plan=compiled.plan, began=this_moment())
    with open_screen(console, compiled.plan) as screen, closing(Clerk(app, os.environ)) as clerk:
        planned = tuple(JobNow(id="", paper=name, status=JobStatus.PENDING, steps={}) for name in papers)
        while len(workers := watcher.glance().workers) < len(NAMES):
            screen.show(Snapshot(jobs=planned, workers=workers), tale, [])
            _check(fleet, "the workers did not all start; the machine may be very busy", began + timeout)
        tale.began = this_moment()
        app.jobs.submit(
            [
                NewJob(template_id=template.id, org_id=DEFAULT_ORG, entity_type="demo_transaction", entity_id=name)
                for name in papers
            ]
        )
        while True:
            snapshot = watcher.look()
            told = len(tale.lines)
            tale.take_in(snapshot)
            if tale.kill is None and (kill := try_to_kill(app, watcher, fleet, snapshot)) is not None:
                tale.killed(kill)
            tale.lines.extend(clerk.act(this_moment()))
            screen.show(snapshot, tale, tale.lines[told:])
            if snapshot.finished and not clerk.busy:
                break
            _check(fleet, _what_is_open(snapshot), began + timeout)
    return Played(
        plan=compiled.plan,
        snapshot=snapshot,
        tale=tale,
        resolved=tuple(clerk.resolved),
        office_pid=fleet.pid(OFFICE),
        worker_pids=frozenset(fleet.pid(name) for name in NAMES),
        began=began,
    )


def _check(fleet: Fleet, state: str, deadline: float) -> None:
    """Between two frames: all well, and time left?"""
    fleet.check()
    if monotonic() > deadline:
        raise DemoStuck(f"Out of time: {state}.")
    Event().wait(_FRAME)


def _what_is_open(snapshot: Snapshot) -> str:
    jobs = [job for job in snapshot.jobs if not job.status.finished]
    steps = [
        f"  {job.paper}: {key} {step.status}"
        for job in jobs
        for key, step in job.steps.items()
        if not step.status.settled
    ]
    return "still open are\n" + "\n".join(steps)
