"""Drives a system under test and the oracle through the same program and compares every answer and every state.

The system is anything with the few named operations of `System`: the pure engine (`docmill.testing.pure`), a store on
SQLite, a store on PostgreSQL. After each operation the driver compares the answer and the snapshots of all jobs, and
checks the invariants.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from docmill.engine.events import (
    Answered,
    Checkpointed,
    Claimed,
    Completed,
    Crashed,
    Deferred,
    Failed,
    Released,
    Reopened,
    Skipped,
    StepEvent,
    Suspended,
)
from docmill.engine.state import JobState
from docmill.model.statuses import StepStatus
from docmill.templates.plan import Plan
from docmill.testing.invariants import check_change, check_state
from docmill.testing.kinds import kind_of
from docmill.testing.oracle import Oracle
from docmill.testing.sequences import Choice, Deed, Program
from docmill.testing.system import Lease, Report, System

WORKERS = ("ann", "bob", "cyd")


class Mismatch(AssertionError):
    """The system and the oracle disagree; the message ends with everything that was done, in order."""


class Driver:
    """One system, one oracle, one program after another."""

    def __init__(
        self, system: System, oracle: Oracle | None = None, *, max_jobs: int = 3, job_prefix: str = "job"
    ) -> None:
        self.system = system
        self.oracle = oracle or Oracle()
        self.done: Counter[str] = Counter()
        """Accepted operations by kind, see `KINDS`."""
        self.trace: list[str] = []
        self._max_jobs = max_jobs
        self._prefix = job_prefix
        self._plans: Sequence[Plan] = ()
        self._leases: list[Lease] = []
        self._last_batch: list[Report] = []
        self._seen: dict[str, JobState] = {}

    def run(self, program: Program) -> None:
        """Every choice in turn, then every job to its end."""
        self._plans = program.plans
        for choice in program.choices:
            self.step(choice)
        self.finish()

    def step(self, choice: Choice) -> None:
        """One choice, resolved to what is possible now, done to both and compared."""
        self._deeds[choice.deed](self, choice)
        self._compare()

    def finish(self, limit: int = 2000) -> None:
        """Claim and complete until nothing is left; every job must then have ended."""
        for _ in range(limit):
            if all(self.oracle.snapshot(job).status.finished for job in self.oracle.jobs):
                return
            taken = [*self.oracle.running(), *self.oracle.waiting()]
            back = [job for job in self.oracle.jobs if self.oracle.snapshot(job).held]
            if back:
                self._free(Choice(Deed.FREE, pick=self.oracle.jobs.index(back[0])))
            elif taken:
                self._report([Report(t.job_id, Completed(position=t.position, epoch=t.epoch)) for t in taken])
            else:
                self._claim_or_wait(WORKERS[0], limit=100)
            self._compare()
        self._fail("jobs do not end although every step is driven to its end")

    # What each deed does. Where it is impossible now, the nearest thing that brings it closer happens instead.

    def _submit(self, choice: Choice) -> None:
        if len(self.oracle.jobs) >= self._max_jobs:
            return self._claim(choice)
        job_id = f"{self._prefix}{len(self.oracle.jobs)}"
        plan = self._plans[len(self.oracle.jobs) % len(self._plans)]
        held = choice.detail % 4 == 3
        self.trace.append(f"submit {job_id} {plan.name} held={held}")
        self.oracle.submit(job_id, plan, held)
        self.system.submit(job_id, plan, held)
        self.done["submit: held" if held else "submit"] += 1
        return None

    def _free(self, choice: Choice) -> None:
        """A job's batch has room for it."""
        job_id = self._job(choice)
        if job_id is None:
            return self._claim(choice)
        got, expected = self.system.free(job_id), self.oracle.free(job_id)
        self.trace.append(f"free {job_id} -> {got}")
        self._expect(got == expected, f"free answered {got}, expected {expected}")
        self.done["free" if got else "free refused"] += 1
        return None

    def _claim(self, choice: Choice) -> None:
        job_id = self._job(choice) if choice.detail % 4 == 0 else None
        self._claim_or_wait(WORKERS[choice.pick % len(WORKERS)], limit=1 + choice.detail % 3, job_id=job_id)

    def _claim_or_wait(self, worker: str, limit: int, job_id: str | None = None) -> None:
        due = [lease for lease in self.oracle.claimable() if job_id in (None, lease.job_id)]
        leases = self.system.claim(worker, limit, job_id)
        self.trace.append(f"claim {worker} {limit} {job_id} -> {leases}")
        self._expect(len(leases) <= limit and set(leases) <= set(due), f"claimed {leases} but only {due} are due")
        self._expect(len(set(leases)) == len(leases) and bool(leases) == bool(due), f"claimed {leases} of {due}")
        for lease in leases:
            self.oracle.offer(lease.job_id, Claimed(position=lease.position, worker=worker))
        self._leases += leases
        self.done["claim"] += len(leases)
        later = self.oracle.next_due()
        if not leases and later is not None:
            self._advance((later - self.oracle.now).total_seconds())

    def _tick(self, choice: Choice) -> None:
        self._advance((0.25, 1.0, 8.0, 60.0)[choice.detail % 4])

    def _advance(self, seconds: float) -> None:
        self.trace.append(f"advance {seconds}")
        self.oracle.advance(seconds)
        self.system.advance(seconds)
        self.done["tick"] += 1

    def _on_running(self, choice: Choice) -> None:
        """A worker reports on a step it holds."""
        lease = self._pick(self.oracle.running(), choice)
        if lease is None:
            return self._claim(choice)
        return self._report([*self._checkpoint_first(choice, lease), Report(lease.job_id, self._event(choice, lease))])

    def _checkpoint_first(self, choice: Choice, lease: Lease) -> list[Report]:
        """Now and then the checkpoint travels in the same batch as what follows it."""
        if choice.deed is Deed.CHECKPOINT or choice.detail % 8 != 7:
            return []
        return [Report(lease.job_id, Checkpointed(position=lease.position, epoch=lease.epoch, result='"early"'))]

    def _answer(self, choice: Choice) -> None:
        """A person or a callback answers a waiting step."""
        lease = self._pick(self.oracle.waiting(), choice)
        if lease is None:
            return self._on_running(Choice(Deed.SUSPEND, choice.pick, choice.detail))
        position, epoch, detail = lease.position, lease.epoch, choice.detail
        events: dict[int, StepEvent] = {
            0: self._event(Choice(Deed.FAIL, choice.pick, detail // 4), lease),
            1: self._event(Choice(Deed.COMPLETE, choice.pick, detail // 4), lease),
            2: Reopened(position=position, epoch=epoch),
        }
        answered = Answered(position=position, epoch=epoch, result='"answered"')
        return self._report([Report(lease.job_id, events.get(detail % 4, answered))])

    def _join(self, choice: Choice) -> None:
        """All running steps complete in one batch, in either direction: siblings must join exactly once."""
        held = list(self.oracle.running())
        if not held:
            return self._claim(choice)
        held = held[:: -1 if choice.detail % 2 else 1]
        self.done["join"] += len(held) > 1
        return self._report([Report(h.job_id, self._event(Choice(Deed.COMPLETE), h)) for h in held])

    def _stale(self, choice: Choice) -> None:
        """Somebody reports under a lease of the past (or never given)."""
        lease = self._pick(self._leases, choice)
        if lease is None:
            return self._claim(choice)
        if choice.detail % 8 == 0:
            lease = lease._replace(epoch=lease.epoch + 1)
        deeds = (
            Deed.COMPLETE,
            Deed.FAIL,
            Deed.CHECKPOINT,
            Deed.SUSPEND,
            Deed.RELEASE,
            Deed.DEFER,
            Deed.SWEEP,
            Deed.SKIP,
            Deed.ANSWER,
        )
        event = self._event(
            Choice(deeds[(choice.detail // 7 + choice.pick) % len(deeds)], choice.pick, choice.detail), lease
        )
        return self._report([Report(lease.job_id, event)])

    def _resend(self, choice: Choice) -> None:
        if not self._last_batch:
            return self._claim(choice)
        return self._report(self._last_batch)

    def _sweep(self, choice: Choice) -> None:
        holders = sorted({step.worker for lease in self.oracle.running() if (step := self.oracle.step(lease)).worker})
        if not holders:
            return self._claim(choice)
        worker = holders[choice.pick % len(holders)]
        lost = self.system.sweep(worker)
        expected = self.oracle.sweep(worker)
        self.trace.append(f"sweep {worker} -> {lost}")
        self._expect(sorted(lost) == sorted(expected), f"swept {lost}, expected {expected}")
        for lease in lost:
            last = self.oracle.step(lease).status is StepStatus.FAILED
            self.done["crash: last" if last else "crash"] += 1
        return None

    def _cancel(self, choice: Choice) -> None:
        job_id = self._job(choice)
        if job_id is None or choice.detail % 2:
            return self._claim(choice)
        got, expected = self.system.cancel(job_id), self.oracle.cancel(job_id)
        self.trace.append(f"cancel {job_id} -> {got}")
        self._expect(got == expected, f"cancel answered {got}, expected {expected}")
        self.done["cancel" if got else "cancel refused"] += 1
        return None

    def _rerun(self, choice: Choice) -> None:
        finished = [job for job in self.oracle.jobs if self.oracle.snapshot(job).status.finished]
        job_id = self._job(choice)
        if choice.detail % 8:
            if not finished:
                return self._on_running(Choice(Deed.COMPLETE, choice.pick, choice.detail))
            job_id = finished[choice.pick % len(finished)]
        if job_id is None:
            return self._claim(choice)
        count = len(self.oracle.plan(job_id).steps)
        positions = frozenset(
            {choice.detail % count, choice.pick % count} if choice.detail % 3 else {choice.pick % count}
        )
        keep, held = choice.detail % 2 == 0, choice.pick % 4 == 3
        got = self.system.rerun(job_id, positions, keep, held)
        expected = self.oracle.rerun(job_id, positions, keep, held)
        self.trace.append(f"rerun {job_id} {sorted(positions)} keep={keep} held={held} -> {got}")
        self._expect(got == expected, f"rerun answered {got}, expected {expected}")
        self.done[("rerun: keep" if keep else "rerun: drop") if got else "rerun refused"] += 1
        self.done["rerun: held"] += got and held
        return None

    _deeds: dict[Deed, Callable[["Driver", Choice], None]] = {  # noqa: RUF012 - a table of methods, never changed
        Deed.SUBMIT: _submit,
        Deed.FREE: _free,
        Deed.CLAIM: _claim,
        Deed.CHECKPOINT: _on_running,
        Deed.COMPLETE: _on_running,
        Deed.JOIN: _join,
        Deed.FAIL: _on_running,
        Deed.SKIP: _on_running,
        Deed.DEFER: _on_running,
        Deed.SUSPEND: _on_running,
        Deed.ANSWER: _answer,
        Deed.RELEASE: _on_running,
        Deed.SWEEP: _sweep,
        Deed.STALE: _stale,
        Deed.RESEND: _resend,
        Deed.CANCEL: _cancel,
        Deed.RERUN: _rerun,
        Deed.TICK: _tick,
    }

    def _event(self, choice: Choice, lease: Lease) -> StepEvent:
        """The event a deed amounts to for this lease."""
        position, epoch, detail = lease.position, lease.epoch, choice.detail
        finish = position == self.oracle.plan(lease.job_id).finish
        match choice.deed:
            case Deed.CHECKPOINT:
                return Checkpointed(position=position, epoch=epoch, result='"paid"')
            case Deed.FAIL:
                return Failed(
                    position=position,
                    epoch=epoch,
                    error='"no luck"',
                    permanent=detail % 8 == 1,
                    retry_after=float(detail // 8) if detail % 4 == 2 else None,
                    jitter=(detail * 7 % 64) / 64,
                    result='"kept"' if detail % 8 == 3 else None,
                )
            case Deed.SKIP if not finish:
                # A template refuses a condition on the finish step, so nobody can report this of it.
                return Skipped(position=position, epoch=epoch)
            case Deed.DEFER:
                return Deferred(position=position, epoch=epoch, until=self.oracle.now + timedelta(seconds=detail % 5))
            case Deed.SUSPEND:
                deadline = self.oracle.now + timedelta(days=3650) if detail % 2 else None
                return Suspended(position=position, epoch=epoch, deadline=deadline, paid=detail % 4 == 2)
            case Deed.ANSWER:
                return Answered(position=position, epoch=epoch, result='"answered"')
            case Deed.RELEASE:
                return Released(position=position, epoch=epoch)
            case Deed.SWEEP:
                return Crashed(position=position, epoch=epoch)
            case _:
                return Completed(position=position, epoch=epoch, result='"done"', paid=detail % 4 == 1)

    def _report(self, reports: Sequence[Report]) -> None:
        """One batch to both; the oracle takes the events one by one."""
        expected: list[bool] = []
        for report in reports:
            before = self.oracle.snapshot(report.job_id)
            expected.append(self.oracle.offer(report.job_id, report.event))
            after = self.oracle.snapshot(report.job_id)
            self.done[kind_of(report, before, after, accepted=expected[-1])] += 1
        got = list(self.system.report(reports))
        self.trace.append(f"report {[(r.job_id, r.event) for r in reports]} -> {got}")
        self._expect(got == expected, f"answered {got}, expected {expected}")
        self._last_batch = list(reports)

    def _pick(self, leases: Sequence[Lease], choice: Choice) -> Lease | None:
        return leases[choice.pick % len(leases)] if leases else None

    def _job(self, choice: Choice) -> str | None:
        jobs = self.oracle.jobs
        return jobs[choice.pick % len(jobs)] if jobs else None

    def _compare(self) -> None:
        """Every job on both sides, and what must hold of each."""
        for job_id in self.oracle.jobs:
            got, expected = self.system.snapshot(job_id), self.oracle.snapshot(job_id)
            if got != expected:
                self._fail(f"{job_id} differs:\n" + _difference(got, expected))
            try:
                check_state(self.oracle.plan(job_id), got)
                check_change(self._seen.get(job_id, got), got)
            except AssertionError as error:
                self._fail(f"{job_id} breaks an invariant: {error}")
            self._seen[job_id] = got

    def _expect(self, holds: bool, message: str) -> None:
        if not holds:
            self._fail(message)

    def _fail(self, message: str) -> None:
        raise Mismatch("\n".join([message, "after:", *self.trace]))


def _difference(got: JobState, expected: JobState) -> str:
    lines = [
        f"  step {position}:\n    system {mine}\n    oracle {right}"
        for position, (mine, right) in enumerate(zip(got.steps, expected.steps, strict=True))
        if mine != right
    ]
    lines.append(f"  job: system {got.status} run {got.run}, oracle {expected.status} run {expected.run}")
    return "\n".join(lines)
