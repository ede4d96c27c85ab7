"""The witness's verdict after a run: which of the invariants of reliability.md do not hold. An empty list is a pass.

1 each effect key applied exactly once, and each answered attempt once; 2 no model call after its checkpoint, and before
it no more repeats than the step was given back, each recorded; 3 no unfinished job that nothing will move; 4 progress
and version never fall; 5 every job's chain verifies; 7 what was spent is the sum of the calls; 8 no accepted write
carries an old epoch. Everything is worked out from events, rows and the witness's log, nothing from the engine's own
account of what it did.
"""

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, text

from docmill.bootstrap.clock import this_moment
from docmill.db.database import Database
from docmill.model.statuses import FINISHED_JOBS, SETTLED_STEPS, STEP_TRANSITIONS, StepStatus
from docmill.model.tokens import Tokens
from docmill.templates.document import plan_from_document
from docmill.templates.plan import Plan
from docmill.testing.witness import Witness

CALL_NANOS = 2_500_000
"""What a call of the stand-in model costs; see `fault_steps`, whose import would read the environment."""
PAID = frozenset({"fault.ask"})
KEPT = PAID | {"external.call", "fault.hold"}
"""Whose results are stored before they are applied, by another attempt perhaps."""
_RAISING = {"crashed", "worker_died"}


@dataclass
class _Replayed:
    """One step as its events tell it."""

    status: str = "PENDING"
    epoch: int = 0
    returns: int = 0
    """How often it went from running back to ready."""
    crashes: int = 0


@dataclass
class _Look:
    """All rows, read at one moment."""

    jobs: dict[str, Any] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    steps: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    events: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    effects: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    workers: dict[str, Any] = field(default_factory=dict)
    calls: list[Any] = field(default_factory=list)
    spent: dict[str, int] = field(default_factory=dict)
    batches: list[Any] = field(default_factory=list)
    callbacks: list[Any] = field(default_factory=list)
    secret: bytes = b""


def _look(connection: Connection) -> _Look:
    # Events as text, letter by letter: that is what was hashed.
    as_text = "data::text" if connection.dialect.name == "postgresql" else "data"
    look = _Look()
    for row in connection.execute(text("select * from processing_jobs")):
        look.jobs[row.id] = row
    for row in connection.execute(text("select id, definition from process_templates")):
        look.plans[row.id] = plan_from_document(_json(row.definition))
    for row in connection.execute(text("select * from processing_job_steps")):
        look.steps[row.job_id][row.step_key] = row
    columns = f"job_id, version, org_id, at, {as_text} as data, hash"
    query = f"select {columns} from processing_job_events order by job_id, version"
    for row in connection.execute(text(query)):
        look.events[row.job_id].append(row)
    for row in connection.execute(text("select effect_key, token from effects")):
        look.effects[row.effect_key].append(row.token)
    for row in connection.execute(text("select id, status, expires_at from workers")):
        look.workers[row.id] = row
    look.calls = list(connection.execute(text("select * from ai_calls")).all())
    for row in connection.execute(text("select period, sum(spent_nanos) as spent from ai_budgets group by period")):
        look.spent[row.period] = int(row.spent)
    look.batches = list(connection.execute(text("select * from processing_batches")))
    look.callbacks = list(connection.execute(text("select * from processing_callbacks")))
    for row in connection.execute(text("select value from installation_secrets where name = 'callback_tokens'")):
        look.secret = bytes(row.value)
    return look


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _time(value: Any) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


class Verdict:
    """What the rows, the events and the witness say."""

    def __init__(self, database: Database, witness: Witness) -> None:
        with database.read() as connection:
            self._look = _look(connection)
        self._now = this_moment()
        self._asked = witness.counts("asked")
        self._notes = list(witness.notes("asked", "applying"))
        self.violations: list[str] = []
        self.crashes = 0
        """Crashes that the events tell of."""
        self.expected: Counter[str] = Counter()
        for job_id in self._look.jobs:
            self._judge(job_id)
        self._judge_batches()
        self._judge_effects()
        self._judge_calls()
        self._judge_callbacks()
        self._judge_spending()

    def _say(self, number: int, job_id: str, what: str) -> None:
        self.violations.append(f"{number}: job {job_id}: {what}")

    def _judge(self, job_id: str) -> None:
        job, plan = self._look.jobs[job_id], self._look.plans[self._look.jobs[job_id].template_id]
        replayed = self._replay(job_id, plan)
        rows = self._look.steps[job_id]
        for planned in plan.steps:
            step, row = replayed[planned.step_key], rows.get(planned.step_key)
            self.crashes += step.crashes
            if row is None:
                continue
            if row.status != step.status:
                self._say(4, job_id, f"{planned.step_key} is {row.status}, its events say {step.status}")
            if row.epoch != step.epoch:
                self._say(8, job_id, f"{planned.step_key} has epoch {row.epoch}, its events give {step.epoch}")
            key = f"{job_id}/{planned.step_key}/{job.run}"
            if row.status == StepStatus.COMPLETED:
                if not plan.undoes:
                    self._judge_result(job_id, planned, row)
                if planned.processor:
                    self.expected[key] += 1
            if planned.step_type in PAID and self._asked[key] > 1 + step.returns:
                self._say(2, job_id, f"{planned.step_key} asked {self._asked[key]} times, given back {step.returns}")
            if row.status == StepStatus.COMPLETED and plan.undoes and not planned.finish:
                self._judge_undoing(job_id, planned.step_key, row)
            if planned.step_type == "fault.follow":
                children = sum(1 for other in self._look.jobs.values() if other.parent_job_id == job_id)
                if children != (row.status == StepStatus.COMPLETED):
                    self._say(1, job_id, f"{children} follow-up jobs of a step that is {row.status}")
        if job.status not in FINISHED_JOBS and not job.held:
            self._judge_unfinished(job_id, rows)
        if plan.compensate and job.status in ("FAILED", "CANCELLED"):
            self._judge_saga(job_id, plan)

    def _replay(self, job_id: str, plan: Plan) -> dict[str, _Replayed]:
        # What an undoing begins with has a row, and an epoch, from the start.
        given = {key for key, row in self._look.steps[job_id].items() if plan.undoes and row.checkpointed}
        steps = {planned.step_key: _Replayed(epoch=planned.step_key in given) for planned in plan.steps}
        chain, settled = b"", 0
        for expected, event in enumerate(self._look.events[job_id], start=1):
            if event.version != expected:
                self._say(4, job_id, f"event {event.version} follows event {expected - 1}")
            record = (
                f"{job_id}|{event.version}|{event.org_id}|{_time(event.at).astimezone(UTC).isoformat()}|{event.data}"
            )
            chain = hashlib.sha256(chain + record.encode()).digest()
            if bytes(event.hash) != chain:
                self._say(5, job_id, f"the chain breaks at version {event.version}")
            for key, before, after, *reason in json.loads(event.data)["steps"]:
                self._step(job_id, key, steps[key], before, after, reason[0] if reason else None)
            now_settled = sum(1 for step in steps.values() if step.status in SETTLED_STEPS)
            if now_settled < settled:
                self._say(4, job_id, f"progress fell from {settled} to {now_settled}")
            settled = now_settled
        job = self._look.jobs[job_id]
        if bytes(job.chain) != chain or job.version != len(self._look.events[job_id]):
            self._say(5, job_id, "the job's version or chain is not that of its last event")
        if job.settled != settled:
            self._say(4, job_id, f"{job.settled} settled steps, its events say {settled}")
        return steps

    def _step(self, job_id: str, key: str, step: _Replayed, before: str, after: str, reason: str | None) -> None:
        if step.status != before or StepStatus(after) not in STEP_TRANSITIONS[StepStatus(before)]:
            self._say(4, job_id, f"{key} goes from {before} to {after}, but was {step.status}")
        step.status = after
        if after in ("IN_PROGRESS", "CANCELLED") or reason in _RAISING:
            step.epoch += 1
        if reason in _RAISING:
            step.crashes += 1
        if before == "IN_PROGRESS" and after == "READY":
            step.returns += 1

    def _judge_result(self, job_id: str, planned: Any, row: Any) -> None:
        """The stored result is that of the attempt that had the right to report it."""
        result = _json(row.result)
        if not isinstance(result, dict) or "token" not in result:
            if planned.step_type.startswith("fault."):
                self._say(8, job_id, f"{planned.step_key} completed without the result of its attempt")
            return
        made = Tokens(self._look.secret)
        tokens = {made.make(job_id, row.position, epoch): epoch for epoch in range(1, row.epoch + 1)}
        epoch = tokens.get(result["token"])
        # A checkpoint survives the attempt that wrote it; any other result belongs to the attempt that completed.
        checkpointed = planned.step_type in KEPT and planned.processor
        if epoch is None or (epoch != row.epoch and not checkpointed):
            self._say(8, job_id, f"{planned.step_key} completed under epoch {row.epoch} with a result of {epoch}")
        applied = self._look.effects.get(f"{job_id}/{planned.step_key}/{self._look.jobs[job_id].run}", [])
        if planned.processor and applied and set(applied) != {result["token"]}:
            self._say(8, job_id, f"{planned.step_key}: what was applied is not what is stored")

    def _judge_undoing(self, job_id: str, key: str, row: Any) -> None:
        """It undoes with the result of the step it undoes."""
        parent = self._look.jobs[job_id].parent_job_id
        if _json(row.result) != _json(self._look.steps[parent][key].result):
            self._say(8, job_id, f"{key} is undone with another result than it was done with")

    def _judge_saga(self, job_id: str, plan: Plan) -> None:
        """Everything that was done and can be undone is, once, in reverse."""
        rows = self._look.steps[job_id]
        done = [s.step_key for s in plan.steps if s.compensation and s.step_key in rows]
        done = [key for key in done if rows[key].status == StepStatus.COMPLETED]
        undoings = [other.id for other in self._look.jobs.values() if other.parent_job_id == job_id]
        if len(undoings) != bool(done):
            self._say(1, job_id, f"{len(undoings)} undoings of {done}")
        for undoing in undoings:
            steps = self._look.steps[undoing].values()
            undone = [step for step in steps if step.status == StepStatus.COMPLETED and step.step_key != "undone"]
            order = [step.step_key for step in sorted(undone, key=lambda step: _time(step.finished_at))]
            if order != done[::-1]:
                self._say(1, job_id, f"{done} was undone as {order}")

    def _judge_unfinished(self, job_id: str, rows: dict[str, Any]) -> None:
        moving = False
        for key, row in rows.items():
            if row.status == StepStatus.IN_PROGRESS:
                worker = self._look.workers.get(row.worker_id)
                alive = worker is not None and worker.status == "alive" and _time(worker.expires_at) > self._now
                if not alive:
                    self._say(3, job_id, f"{key} is held by a worker without a live lease")
                moving = moving or alive
            moving = moving or (row.status == StepStatus.READY and row.due_at is not None)
            moving = moving or (row.status == StepStatus.WAITING and row.deadline_at is not None)
        if not moving:
            self._say(3, job_id, "unfinished, and nothing will ever move it")

    def _judge_batches(self) -> None:
        """Invariants of batches: the row counts what its jobs are, and no more are active than may be."""
        for batch in self._look.batches:
            jobs = [job for job in self._look.jobs.values() if job.batch_id == batch.id]
            open_jobs = [job for job in jobs if job.status not in FINISHED_JOBS]
            held = sum(bool(job.held) for job in open_jobs)
            if (batch.active, batch.held) != (len(open_jobs) - held, held):
                self.violations.append(f"4: batch {batch.id} counts {batch.active} active, {batch.held} held")
            if batch.active > batch.max_active or len(jobs) != batch.total:
                self.violations.append(f"4: batch {batch.id} has {batch.active} active jobs, {len(jobs)} in all")
            if (batch.finished_at is not None) != (not open_jobs):
                self.violations.append(f"4: batch {batch.id} has {len(open_jobs)} open jobs, but says otherwise")

    def _judge_effects(self) -> None:
        for key in self.expected.keys() | self._look.effects.keys():
            found, wanted = len(self._look.effects.get(key, ())), self.expected[key]
            if found != wanted:
                self.violations.append(f"1: effect {key} applied {found} times, {wanted} expected")

    def _judge_callbacks(self) -> None:
        """A callback moved its step once, under the epoch its token was made for, or not at all."""
        applied = Counter(
            (row.job_id, row.position, row.epoch) for row in self._look.callbacks if row.outcome == "applied"
        )
        for (job_id, position, epoch), count in applied.items():
            if count > 1:
                self._say(1, job_id, f"{count} callbacks were applied to step {position} under epoch {epoch}")
        for row in self._look.callbacks:
            if row.outcome == "received" and self._look.jobs[row.job_id].status in FINISHED_JOBS:
                self._say(3, row.job_id, "a callback was stored and never acted on")

    def _judge_calls(self) -> None:
        """An apply of a paid result means that its checkpoint was written: whoever asks after that pays again."""
        applied: set[str] = set()
        for note in self._notes:
            if note.what == "applying":
                applied.add(note.key)
            elif note.key in applied:
                self.violations.append(f"2: the model was asked for {note.key} after its checkpoint")

    def _judge_spending(self) -> None:
        """Every call the witness saw has a row, and the rows add up to what counts as spent, by month and by day."""
        recorded = Counter(f"{call.job_id}/{call.step_key}" for call in self._look.calls)
        seen: Counter[str] = Counter()
        for key, count in self._asked.items():
            seen[key.rpartition("/")[0]] += count
        for key, count in seen.items():
            if recorded[key] < count:
                self.violations.append(f"2: {key} asked {count} times, recorded {recorded[key]} times")
        spent: Counter[str] = Counter()
        for call in self._look.calls:
            day = _time(call.created_at).astimezone(UTC).date().isoformat()
            spent[day] += call.cost_nanos
            spent[day[:7]] += call.cost_nanos
            if call.outcome == "answered" and call.model == "model" and call.cost_nanos != CALL_NANOS:
                self.violations.append(f"7: call {call.id} cost {call.cost_nanos}")
        if +spent != +Counter(self._look.spent):
            self.violations.append(f"7: spent {self._look.spent}, the calls add up to {dict(spent)}")


def examine(database: Database, witness: Witness, *, finished: bool = True) -> list[str]:
    """Violations, at most twenty of them; with `finished`, an unfinished job is one too."""
    verdict = Verdict(database, witness)
    violations = verdict.violations
    if finished:
        with database.read() as connection:
            query = text("select id, status from processing_jobs where finished_at is null")
            violations += [f"3: job {row.id} is still {row.status}" for row in connection.execute(query)]
    return violations[:20]
