"""One transaction of the store: lock jobs, load what is not known, fold events, claim, write what follows.

Lock order: jobs by id, then their steps, then domain rows, then entities, then batches by id. Jobs named in reports are
locked waiting; claims pass over what others hold, so two transactions never wait for each other in a circle.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from docmill.engine.answering import answer, nobody_asked
from docmill.engine.batch import AtOnce, Batch, NewJob, Outcome, Part, QueueClaim, Report, StepRun
from docmill.engine.events import Claimed, Suspended
from docmill.engine.failpoints import failpoint
from docmill.engine.follow_ups import kept_follow_ups
from docmill.engine.issues import NewIssue, write_issues
from docmill.engine.known import KnownJobs
from docmill.engine.locked import KnownJob, LockedJob, queue_of
from docmill.engine.on_the_spot import end_on_the_spot, run_of
from docmill.engine.resubmission import check_same
from docmill.engine.rooms import Rooms, in_turn
from docmill.engine.sql.rows import HotSql, PartWrite, StepWrite
from docmill.engine.state import JobState, StepState
from docmill.engine.submitting import active_jobs, entity_key, planned
from docmill.engine.undoing import calls_for_undoing, copy_results, undoing_failed, undoing_of
from docmill.model.callbacks import CallbackOutcome
from docmill.model.errors import InvalidInput
from docmill.model.statuses import JobStatus, StepKind, StepStatus
from docmill.templates.plan import Plan

log = logging.getLogger("docmill.engine")

_JOB_STATUS = {status.value: status for status in JobStatus}


_Start = tuple[LockedJob, int, bool]


class Plans(Protocol):
    """Where compiled plans come from."""

    def get(self, template_id: str, sql: HotSql) -> Plan: ...


class Transaction:
    """The work of one commit, inside the transaction that the store opened."""

    def __init__(self, sql: HotSql, plans: Plans, known: KnownJobs) -> None:
        self._sql = sql
        self._plans = plans
        self._cache = known
        self._jobs: dict[str, LockedJob] = {}
        self._new: dict[str, tuple[LockedJob, str | None]] = {}
        self._written: list[KnownJob] = []
        self._queued: dict[str, list[tuple[str, int]]] = {}
        self._undoings: list[tuple[LockedJob, LockedJob]] = []
        self._issues: list[tuple[LockedJob, int | None, NewIssue]] = []
        self._callbacks: dict[str, CallbackOutcome] = {}
        self.now: datetime
        """The database's clock, the same for all of the transaction; known once `lock` was called."""

    def run(self, batch: Batch) -> Outcome:
        """The whole batch, in lock order: reports, claims, writes."""
        self.lock(batch)
        return self.finish(batch, self.fold(batch.reports))

    def lock(self, batch: Batch) -> None:
        """Lock the jobs that the batch speaks of, in id order; waiting, unless the batch is one that never waits."""
        named = {report.job_id for report in batch.reports} | {part.job_id for part in batch.parts}
        ids = sorted(named | {*batch.hold} | {job_id for job_id, _ in batch.answer})
        self.now, locked, self._queued = self._sql.begin(
            ids, wait=batch.wait, queues=[claim.queue for claim in batch.claims]
        )
        self._load(locked)

    def holds(self, job_id: str, position: int, epoch: int) -> bool:
        """Whether this epoch has the right to the running step; an answer that stays true until the commit."""
        job = self._jobs.get(job_id)
        if job is None:
            return False
        step = job.state.steps[position]
        return step.status is StepStatus.IN_PROGRESS and step.epoch == epoch

    def step(self, job_id: str, position: int) -> StepRun | None:
        """The step as it stands under the job's lock; None if there is no such job here."""
        job = self._jobs.get(job_id)
        return None if job is None else run_of(job, position, False)

    def kept_follow_ups(self, run: StepRun) -> tuple[NewJob, ...]:
        """The jobs that the compute of a waiting step wanted: for whoever completes it with an answer."""
        return kept_follow_ups(self._sql, run)

    def fold(self, reports: Sequence[Report]) -> list[bool]:
        """Fold the reports into their jobs; for each, whether it was accepted."""
        accepted = []
        for report in reports:
            job = self._jobs.get(report.job_id)
            accepted.append(job is not None and job.fold(in_turn(job, report.event), self.now))
        return accepted

    def finish(self, batch: Batch, accepted: Sequence[bool]) -> Outcome:
        """Claim on the spot and from the queues, write everything, tell what came of it."""
        parts = [self.holds(part.job_id, part.position, part.epoch) for part in batch.parts]
        # Before all that depends on which jobs have ended: their undoing, the room that they leave in their batch.
        self._end_on_the_spot(batch, batch.at_once)
        follow_ups = [
            job for report, good in zip(batch.reports, accepted, strict=True) if good for job in report.follow_ups
        ]
        follow_ups += self._answer(batch, accepted)
        self._open_issues(batch, accepted)
        self._undo()
        self._take_in(batch, follow_ups)
        self._share_entities()
        self._give_room(batch)
        started = self._claim_on_the_spot(batch)
        exhausted = self._claim_from_queues(batch, started)
        self._write([part for part, good in zip(batch.parts, parts, strict=True) if good])
        if follow_ups:
            failpoint("follow_up.inserted")
        unclaimed = list(self._unclaimed())
        return Outcome(
            accepted=tuple(accepted),
            parts_accepted=tuple(parts),
            started=tuple(run_of(job, position, on_the_spot) for job, position, on_the_spot in started),
            left_ready=Counter(queue for queue, due_at in unclaimed if due_at <= self.now),
            due=tuple(entry for entry in unclaimed if entry[1] > self.now),
            exhausted=exhausted,
            finished=tuple(job.head.id for job in self._written if job.state.status.finished),
            submitted=len(self._new),
            callbacks=self._callbacks,
        )

    def known(self) -> list[KnownJob]:
        """The jobs as they stand once this is committed."""
        return self._written

    def _load(self, versions: Mapping[str, int]) -> None:
        """Take locked jobs in, reading only those whose version is not the remembered one."""
        missing = []
        for job_id, version in versions.items():
            known = self._cache.get(job_id)
            if known is not None and known.version == version:
                self._jobs[job_id] = LockedJob(known, self._plans.get(known.head.template_id, self._sql))
            else:
                missing.append(job_id)
        if not missing:
            return
        rows, steps_of = self._sql.load(missing)
        stored = {(step.job_id, step.position): step.state for step in steps_of}
        untouched = StepState()
        for row in rows:
            try:
                plan = self._plans.get(row.head.template_id, self._sql)
            except InvalidInput as error:
                # Written by a newer release: for its workers, while we go on with what we can read.
                log.warning("job %s is passed over: %s", row.head.id, error)
                continue
            steps = tuple(stored.get((row.head.id, position), untouched) for position in range(len(plan.steps)))
            state = JobState(_JOB_STATUS[row.status], steps, row.run, row.held)
            # A step that nobody has claimed has no result; those of others are read when somebody asks.
            results: dict[int, str] | None = None if any(step.epoch for step in steps) else {}
            known = KnownJob(row.version, row.head, state, bytes(row.chain), results)
            self._jobs[row.head.id] = LockedJob(known, plan)

    def _answer(self, batch: Batch, accepted: Sequence[bool]) -> list[NewJob]:
        """Act on callbacks: of steps that begin to wait here (they may have been quicker than we), and as told.

        Returns the jobs to submit with what they bring to its end.
        """
        steps = dict.fromkeys(batch.answer)
        for report, good in zip(batch.reports, accepted, strict=True):
            if good and isinstance(report.event, Suspended):
                position = report.event.position
                if self._jobs[report.job_id].plan.steps[position].kind is StepKind.EXTERNAL:
                    steps[report.job_id, position] = None
        follow_ups: list[NewJob] = []
        for job_id, position in steps:
            job = self._jobs.get(job_id)
            if job is not None:
                answers = answer(self._sql, job, run_of(job, position, False), self.now)
                self._callbacks |= answers.outcomes
                follow_ups += answers.follow_ups
            elif batch.wait or not self._sql.existing_jobs([job_id]):
                # Without waiting it may be there, and in the hands of somebody else.
                self._callbacks |= nobody_asked(self._sql, job_id, position, self.now)
        return follow_ups

    def _open_issues(self, batch: Batch, accepted: Sequence[bool]) -> None:
        for report, good in zip(batch.reports, accepted, strict=True):
            if good and report.issues:
                job = self._jobs[report.job_id]
                self._issues += [(job, getattr(report.event, "position", None), issue) for issue in report.issues]

    def _undo(self) -> None:
        """Submit the undoing of jobs that came to a bad end; an undoing that did is for people to look at."""
        for job in list(self._jobs.values()):
            if calls_for_undoing(job):
                undoing = undoing_of(job, self._sql, self.now)
                self._undoings.append((job, undoing))
                self._new[undoing.was.head.id] = (undoing, job.was.head.id)
            issue = undoing_failed(job)
            if issue is not None:
                self._issues.append((job, None, issue))

    def _share_entities(self) -> None:
        """Share the entities of jobs that become active here, before anybody sees them so.

        Who removes rows that jobs may use then knows, or is done before the job can have read them. Before any batch
        is locked: who has an entity alone may be waiting for the batch of its own job.
        """
        active = [job for job, _ in self._new.values()]
        active += [
            job for job in self._jobs.values() if job.was.state.status.finished and not job.state.status.finished
        ]
        self._sql.share_entities(sorted({job.entity_slot for job in active}))

    def _give_room(self, batch: Batch) -> None:
        def load(versions: dict[str, int]) -> list[LockedJob]:
            self._load({job_id: version for job_id, version in versions.items() if job_id not in self._jobs})
            return [self._jobs[job_id] for job_id in versions if job_id in self._jobs]

        rooms = Rooms(self._sql, self.now, load)
        if batch.batches:
            rooms.open(batch.batches, [job for job, _ in self._new.values()])
        rooms.settle(list(self._jobs.values()), batch.look_at)

    def _take_in(self, batch: Batch, follow_ups: Sequence[NewJob]) -> None:
        """Plan what is submitted with the batch."""
        new_jobs = [*batch.submissions, *follow_ups]
        if not new_jobs:
            return
        check = batch.check or bool(follow_ups)
        active = active_jobs(new_jobs, self._sql, self._plan_of, self._jobs) if check else {}
        # An undoing that begins here takes the place of the job it undoes.
        active |= {entity_key(undoing.was.head): undoing.was.head.id for _, undoing in self._undoings}
        existing = self._sql.existing_jobs([job.id for job in new_jobs]) if check else set()
        wanted = [job for job in new_jobs if job.id not in existing]
        self._new |= planned(wanted, batch.batches, active, self._plan_of, self.now)
        # Follow-ups are known by their parent, step and run: a repeated one is the same, whatever it carries.
        check_same([job for job in batch.submissions if job.id in existing], self._sql, self._plan_of)

    def _plan_of(self, template_id: str) -> Plan:
        return self._plans.get(template_id, self._sql)

    def _end_on_the_spot(self, batch: Batch, at_once: AtOnce | None) -> None:
        if batch.reserve is not None and batch.worker is not None:
            for job in self._jobs.values():
                end_on_the_spot(job, batch.worker, self.now, self._sql, at_once)

    def _claim_on_the_spot(self, batch: Batch) -> list[_Start]:
        """Steps that just became ready start here if there is a slot: no second transaction, no wake-up."""
        started: list[_Start] = []
        if batch.reserve is None or batch.worker is None:
            return started
        # What answers and room have made ready since; only skipped, so that no job ends here.
        self._end_on_the_spot(batch, None)
        for job in self._jobs.values():
            for position in list(job.fresh()):
                step = job.state.steps[position]
                due = step.due_at is None or step.due_at <= self.now
                # Claimed from its queue, as a whole: here the last free slots might split its group.
                sent = job.plan.steps[position].kind is StepKind.EXTERNAL and not step.checkpointed
                if due and not sent and batch.reserve(queue_of(job.plan.steps[position], step)):
                    job.fold(Claimed(position=position, worker=batch.worker), self.now)
                    started.append((job, position, True))
        return started

    def _claim_from_queues(self, batch: Batch, started: list[_Start]) -> frozenset[str]:
        exhausted = set()
        for claim in batch.claims:
            left = claim.limit
            waiting = self._waiting(claim)
            taken = dict.fromkeys(((org_id, rank) for org_id, ranks in waiting for rank in ranks), 0)
            # Organisations in turn: an even share for each first, then what is left to whoever has more.
            share = -(-claim.limit // len(waiting)) if waiting else 0
            for allowance in (share, claim.limit) if len(waiting) > 1 else (share,):
                for org_id, ranks in waiting:
                    room = max(0, min(allowance, left))
                    for rank in ranks:
                        if room > 0 and (org_id, rank) in taken:
                            found = self._claim_some(claim.queue, org_id, rank, room, taken[org_id, rank], batch)
                            started += found
                            left -= len(found)
                            taken[org_id, rank] += len(found)
                            if len(found) < room:
                                del taken[org_id, rank]
                            room -= len(found)
            if left > 0:
                exhausted.add(claim.queue)
        return frozenset(exhausted)

    def _waiting(self, claim: QueueClaim) -> list[tuple[str, list[int]]]:
        """The organisations with something in the queue, beginning with the one whose turn it is; ranks in order."""
        ranks: dict[str, list[int]] = {}
        for org_id, rank in self._queued[claim.queue]:
            ranks.setdefault(org_id, []).append(rank)
        in_order = [(org_id, sorted(ranks[org_id])) for org_id in sorted(ranks)]
        turn = claim.turn % len(in_order) if in_order else 0
        return in_order[turn:] + in_order[:turn]

    def _claim_some(self, queue: str, org_id: str, rank: int, limit: int, taken: int, batch: Batch) -> list[_Start]:
        """Up to `limit` due steps (more if their groups are); fewer only if there are no more that nobody else holds.

        Candidates that this transaction has claimed (`taken`) or settled still look ready in the database, and others
        may have been claimed between the look and the lock: they must not use up the limit.
        """
        started: list[_Start] = []
        asked = limit + taken
        while True:
            found = self._sql.lock_candidates(queue, org_id, rank, self.now, asked)
            self._load({entry.job_id: entry.version for entry in found if entry.job_id not in self._jobs})
            for candidate in found:
                job = self._jobs.get(candidate.job_id)
                claimed = Claimed(position=candidate.position, worker=batch.worker or "")
                if job is not None and job.fold(claimed, self.now):
                    started.append((job, candidate.position, False))
                    started += self._claim_group(job, candidate.position, queue, claimed.worker)
                    if len(started) >= limit:
                        return started
            if len(found) < asked:
                return started
            asked += limit

    def _claim_group(self, job: LockedJob, position: int, queue: str, worker: str) -> Iterator[_Start]:
        """With a step that goes to an outside executor, its ready siblings: they go in one message."""
        planned = job.plan.steps[position]
        if planned.kind is not StepKind.EXTERNAL or job.state.steps[position].checkpointed or queue != planned.pool:
            return
        for other in job.plan.steps:
            step = job.state.steps[other.position]
            alike = other.kind is planned.kind and other.execution_group == planned.execution_group
            alike = alike and not step.checkpointed and queue_of(other, step) == queue
            # Refused unless it is ready and due.
            if alike and job.fold(Claimed(position=other.position, worker=worker), self.now):
                yield job, other.position, False

    def _write(self, parts: Sequence[Part]) -> None:
        changed = [job for job in self._jobs.values() if job.changed]
        new = list(self._new.values())
        inserts: list[StepWrite] = []
        updates: list[StepWrite] = []
        for job in [*changed, *(job for job, _ in new)]:
            for is_new, write in job.step_writes():
                (inserts if is_new else updates).append(write)
        events = [job.event_write(self.now) for job in changed]
        new_events = [job.event_write(self.now) for job, _ in new]
        orgs = {job_id: job.was.head.org_id for job_id, job in self._jobs.items()}
        sql, now = self._sql, self.now
        with sql.writing():
            # Updates first: a job that ends makes room for the next active one of its entity.
            sql.update_jobs([job.job_write(event.hash) for job, event in zip(changed, events, strict=True)], now)
            sql.insert_jobs(
                [job.new_row(parent, event.hash) for (job, parent), event in zip(new, new_events, strict=True)], now
            )
            sql.insert_steps(inserts, now)
            sql.update_steps(updates, now)
            sql.insert_events([*events, *new_events], now)
            sql.delete_parts([(job.was.head.id, position) for job in changed for position in job.cleared])
            sql.upsert_parts(
                [PartWrite(part.job_id, part.position, part.name, orgs[part.job_id], part.value) for part in parts], now
            )
        for job, undoing in self._undoings:
            copy_results(job, undoing, sql)
            failpoint("undo.submitted")
        write_issues(sql, self._issues, [job for job in changed if job.left_waiting], now)
        self._written = [
            *(job.known(event.hash) for job, event in zip(changed, events, strict=True)),
            *(job.known(event.hash) for (job, _), event in zip(new, new_events, strict=True)),
        ]

    def _unclaimed(self) -> Iterator[tuple[str, datetime]]:
        """Queue and due time of every step that became ready here and was not taken.

        Also of steps that were ready before, for whoever claimed while we held their job passed over them and
        believes the queue to be empty: without a word they would lie there until the next poll.
        """
        for job in [*self._jobs.values(), *(job for job, _ in self._new.values())]:
            if job.state.held:
                continue
            fresh = set(job.fresh())
            for position, step in enumerate(job.state.steps):
                if step.status is StepStatus.READY:
                    due_at = step.due_at or self.now
                    if position in fresh or due_at <= self.now:
                        yield queue_of(job.plan.steps[position], step), due_at
