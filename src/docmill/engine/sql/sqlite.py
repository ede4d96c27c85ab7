"""The hot statements on SQLite. The caller holds the write lock, so what is read stays true until it commits."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import orjson

from docmill.db.types import iso
from docmill.engine.sql.rows import (
    CLEAR,
    Beginning,
    Candidate,
    EventWrite,
    JobHead,
    JobRow,
    JobWrite,
    NewJobRow,
    PartWrite,
    StepRow,
    StepWrite,
    WrongCount,
)
from docmill.engine.sql.statements import Statement
from docmill.engine.state import StepState
from docmill.model.statuses import JobStatus, SkipReason, StepStatus

_STATUS = {status.value: status for status in StepStatus}
_REASON = {reason.value: reason for reason in SkipReason}
_BEGUN = (StepStatus.IN_PROGRESS, StepStatus.COMPLETED)
"""A step that is new as COMPLETED was claimed in the same transaction."""

LOCK_JOBS = "select id, version from processing_jobs where id in (select value from json_each(?))"

LOAD_JOBS = """
select id, org_id, template_id, entity_type, entity_id, priority, title, metadata, file_type, created_by, created_at,
       family, batch_id, status, run, version, held, chain
from processing_jobs where id in (select value from json_each(?))"""

LOAD_STEPS = """
select job_id, position, status, epoch, failures, crashes, checkpointed, worker_id, due_at, deadline_at, reason
from processing_job_steps where job_id in (select value from json_each(?))"""

# A loose index scan, a descent per (organisation, rank): SQLite has no LATERAL, so the loop is in Python.
NEXT_READY_QUEUE = """
select org_id, rank from processing_job_steps
where status = 'READY' and queue = ? and (org_id, rank) > (?, ?) order by org_id, rank limit 1"""

CANDIDATES = """
select s.job_id, j.version, s.position from processing_job_steps s join processing_jobs j on j.id = s.job_id
where s.status = 'READY' and s.queue = ? and s.org_id = ? and s.rank = ? and s.due_at <= ?
order by s.due_at, s.job_id limit ?"""

INSERT_JOBS = """
insert into processing_jobs (id, org_id, template_id, entity_type, entity_id, priority, title, metadata, file_type,
  created_by, created_at, parent_job_id, family, batch_id, status, run, version, settled, total, held, chain)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)"""

INSERT_STEPS = """
insert into processing_job_steps (job_id, position, org_id, step_key, queue, rank, status, epoch, failures, crashes,
  checkpointed, worker_id, due_at, deadline_at, reason, result, error, started_at, finished_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

# The epoch in WHERE is the fence in the database itself.
UPDATE_STEPS = """
update processing_job_steps set
  queue = ?1, status = ?2, failures = ?4, crashes = ?5, checkpointed = ?6, worker_id = ?7, due_at = ?8,
  deadline_at = ?9, reason = ?10,
  result = case when ?11 is null then result when ?11 <> '' then ?11 end,
  error = case when ?12 is null then error when ?12 <> '' then ?12 end,
  started_at = case when ?2 in ('IN_PROGRESS', 'COMPLETED') and ?3 > epoch then ?13 else started_at end,
  finished_at = ?14,
  epoch = ?3
where job_id = ?15 and position = ?16 and epoch = ?17"""

UPDATE_JOBS = """
update processing_jobs set
  version = ?1, status = ?2, run = ?3, settled = ?4, held = ?5, chain = ?6,
  started_at = coalesce(started_at, case when ?2 <> 'PENDING' then ?7 end), finished_at = ?8
where id = ?9 and version = ?1 - 1"""

INSERT_EVENTS = """
insert into processing_job_events (job_id, version, org_id, data, hash, at) values (?, ?, ?, ?, ?, ?)"""

UPSERT_PARTS = """
insert into processing_step_parts (job_id, position, name, org_id, value, created_at) values (?, ?, ?, ?, ?, ?)
on conflict (job_id, position, name) do nothing"""

DELETE_PARTS = "delete from processing_step_parts where job_id = ? and position = ?"

RUNNING_STEPS = """
select job_id, position, epoch from processing_job_steps
where status = 'IN_PROGRESS' and worker_id = ? order by job_id, position limit ?"""

# Told which index: for the sake of the order SQLite would read every step there ever was.
ORPHANED_STEPS = """
select s.job_id, s.position, s.epoch from processing_job_steps s indexed by ix_processing_job_steps_running
where s.status = 'IN_PROGRESS' and not exists (select 1 from workers w where w.id = s.worker_id and w.status = 'alive')
order by s.job_id, s.position limit ?"""

OVERDUE_STEPS = """
select job_id, position, epoch from processing_job_steps
where status = 'WAITING' and deadline_at <= ? order by deadline_at limit ?"""

NEXT_DUE = """
select due_at from processing_job_steps
where status = 'READY' and queue = ? and org_id = ? and rank = ? and due_at > ? order by due_at limit 1"""


class SqliteSql:
    """`HotSql` over one sqlite3 connection."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._raw.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._raw.execute("COMMIT")
        except BaseException:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            raise

    def begin(self, ids: Sequence[str], *, wait: bool, queues: Sequence[str] = ()) -> Beginning:
        locked = dict(self._raw.execute(LOCK_JOBS, [_array(ids)])) if ids else {}
        return Beginning(datetime.now(UTC), locked, {queue: self._waiting(queue) for queue in queues})

    def query(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        return self._raw.execute(statement.sqlite, _plain(parameters)).fetchall()

    def run_each(self, statement: Statement, rows: Sequence[Mapping[str, object]]) -> int:
        return sum([self._raw.execute(statement.sqlite, _plain(row)).rowcount for row in rows])

    def load_template(self, template_id: str) -> dict[str, object] | None:
        row = self._raw.execute("select definition from process_templates where id = ?", [template_id]).fetchone()
        return orjson.loads(row[0]) if row else None

    def load(self, ids: Sequence[str]) -> tuple[list[JobRow], list[StepRow]]:
        if not ids:
            return [], []
        array = _array(ids)
        jobs = [
            JobRow(
                JobHead._make((*row[:7], orjson.loads(row[7]), *row[8:10], _time(row[10]), *row[11:13])),
                status=row[13],
                run=row[14],
                version=row[15],
                held=bool(row[16]),
                chain=row[17],
            )
            for row in self._raw.execute(LOAD_JOBS, [array])
        ]
        steps = [StepRow(row[0], row[1], _state(row[2:])) for row in self._raw.execute(LOAD_STEPS, [array])]
        return jobs, steps

    def _waiting(self, queue: str) -> list[tuple[str, int]]:
        pairs: list[tuple[str, int]] = []
        after = ("", 0)
        while row := self._raw.execute(NEXT_READY_QUEUE, (queue, *after)).fetchone():
            pairs.append(row)
            after = row
        return pairs

    def lock_candidates(self, queue: str, org_id: str, rank: int, now: datetime, limit: int) -> list[Candidate]:
        rows = self._raw.execute(CANDIDATES, (queue, org_id, rank, iso(now), limit))
        return [Candidate(*row) for row in rows]

    def existing_jobs(self, ids: Sequence[str]) -> set[str]:
        return {row[0] for row in self._raw.execute(LOCK_JOBS, [_array(ids)])} if ids else set()

    @contextmanager
    def writing(self) -> Iterator[None]:
        yield

    def _write(self, name: str, statement: str, rows: Sequence[Sequence[object]]) -> None:
        changed = self._raw.executemany(statement, rows).rowcount
        if changed != len(rows):
            raise WrongCount(f"{name} changed {changed} rows, {len(rows)} were planned")

    def share_entities(self, slots: Sequence[int]) -> None:
        pass  # Who writes is alone with everything.

    def insert_jobs(self, rows: Sequence[NewJobRow], now: datetime) -> None:
        at = iso(now)
        if rows:
            values = [
                (
                    *head[:7],
                    orjson.dumps(head.metadata).decode(),
                    head.file_type,
                    head.created_by,
                    at,
                    parent,
                    head.family,
                    head.batch_id,
                    *rest,
                )
                for head, parent, *rest in rows
            ]
            self._write("insert_jobs", INSERT_JOBS, values)

    def insert_steps(self, rows: Sequence[StepWrite], now: datetime) -> None:
        at = iso(now)
        values: list[Sequence[object]] = []
        for row in rows:
            state = row.state
            values.append(
                (
                    *row[:6],
                    *_state_columns(state),
                    row.result or None,
                    row.error or None,
                    at if state.status in _BEGUN else None,
                    at if state.status.settled else None,
                )
            )
        if values:
            self._write("insert_steps", INSERT_STEPS, values)

    def update_steps(self, rows: Sequence[StepWrite], now: datetime) -> None:
        at = iso(now)
        values: list[Sequence[object]] = []
        for row in rows:
            settled_at = at if row.state.status.settled else None
            values.append(
                (
                    row.queue,
                    *_state_columns(row.state),
                    row.result,
                    row.error,
                    at,
                    settled_at,
                    row.job_id,
                    row.position,
                    row.old_epoch,
                )
            )
        if values:
            self._write("update_steps", UPDATE_STEPS, values)

    def update_jobs(self, rows: Sequence[JobWrite], now: datetime) -> None:
        at = iso(now)
        values: list[Sequence[object]] = [
            (*row[1:], at, at if JobStatus(row.status).finished else None, row.id) for row in rows
        ]
        if values:
            self._write("update_jobs", UPDATE_JOBS, values)

    def insert_events(self, rows: Sequence[EventWrite], now: datetime) -> None:
        at = iso(now)
        if rows:
            self._write("insert_events", INSERT_EVENTS, [(*row, at) for row in rows])

    def upsert_parts(self, rows: Sequence[PartWrite], now: datetime) -> None:
        at = iso(now)
        self._raw.executemany(UPSERT_PARTS, [(*row, at) for row in rows])

    def delete_parts(self, steps: Sequence[tuple[str, int]]) -> None:
        self._raw.executemany(DELETE_PARTS, steps)

    def running_steps(self, worker: str, limit: int) -> list[tuple[str, int, int]]:
        return self._raw.execute(RUNNING_STEPS, (worker, limit)).fetchall()

    def orphaned_steps(self, limit: int) -> list[tuple[str, int, int]]:
        return self._raw.execute(ORPHANED_STEPS, (limit,)).fetchall()

    def overdue_steps(self, now: datetime, limit: int) -> list[tuple[str, int, int]]:
        return self._raw.execute(OVERDUE_STEPS, (iso(now), limit)).fetchall()

    def end_silent(self, patience: float) -> int:
        return 0  # Whoever is stopped inside a transaction holds the one write lock there is.

    def next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        lines = [(queue, org_id, rank) for queue in queues for org_id, rank in self._waiting(queue)]
        firsts = (self._raw.execute(NEXT_DUE, (*line, iso(now))).fetchone() for line in lines)
        return _time(min((first[0] for first in firsts if first), default=None))


def _plain(parameters: Mapping[str, object]) -> dict[str, object]:
    return {name: iso(value) if isinstance(value, datetime) else value for name, value in parameters.items()}


def _array(values: Iterable[str]) -> str:
    return orjson.dumps(list(values)).decode()


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _state(row: Sequence[object]) -> StepState:
    status, epoch, failures, crashes, checkpointed, worker, due_at, deadline, reason = row
    return StepState(
        _STATUS[str(status)],
        epoch,  # type: ignore[arg-type]  # the table's own types; checked by the contract suite
        failures,  # type: ignore[arg-type]
        crashes,  # type: ignore[arg-type]
        bool(checkpointed),
        worker,  # type: ignore[arg-type]
        _time(due_at),  # type: ignore[arg-type]
        _time(deadline),  # type: ignore[arg-type]
        _REASON[str(reason)] if reason else None,
    )


def _state_columns(state: StepState) -> tuple[object, ...]:
    status, epoch, failures, crashes, checkpointed, worker, due_at, deadline, reason = state
    return (
        status._value_,
        epoch,
        failures,
        crashes,
        checkpointed,
        worker,
        iso(due_at) if due_at else None,
        iso(deadline) if deadline else None,
        reason and reason._value_,
    )


assert CLEAR == ""  # `row.result or None` above relies on it
