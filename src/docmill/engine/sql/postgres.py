"""The hot statements on PostgreSQL: arrays in, one round trip for all writes of a batch (pipeline mode)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import orjson
from psycopg import Connection, Cursor, Pipeline

from docmill.engine.sql.arrays import bytes_array, plain_array, step_columns, text_array
from docmill.engine.sql.entities import SHARE_ENTITIES
from docmill.engine.sql.rows import (
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
from docmill.model.statuses import SkipReason, StepStatus

_STATUS = {status.value: status for status in StepStatus}
_REASON = {reason.value: reason for reason in SkipReason}

# NO KEY UPDATE: the foreign keys of new steps take KEY SHARE on the job, which this lets through. Id order: two batches
# that share jobs queue instead of deadlocking.
LOCK_JOBS = """
select id, version from processing_jobs where id = any(%s::uuid[]) order by id for no key update"""

TRY_LOCK_JOBS = LOCK_JOBS + " skip locked"

LOAD_JOBS = """
select id, org_id, template_id, entity_type, entity_id, priority, title, metadata, file_type, created_by, created_at,
       family, batch_id, status, run, version, held, chain
from processing_jobs where id = any(%s::uuid[])"""

LOAD_STEPS = """
select job_id, position, status, epoch, failures, crashes, checkpointed, worker_id, due_at, deadline_at, reason
from processing_job_steps where job_id = any(%s::uuid[])"""

# A loose index scan: one index descent per (organisation, rank), however long the queue is.
READY_QUEUES = """
with recursive pair(org_id, rank) as (
  (select org_id, rank from processing_job_steps where status = 'READY' and queue = %(queue)s
   order by org_id, rank limit 1)
  union all
  select next.org_id, next.rank from pair, lateral (
    select org_id, rank from processing_job_steps
    where status = 'READY' and queue = %(queue)s and (org_id, rank) > (pair.org_id, pair.rank)
    order by org_id, rank limit 1) next
)
select org_id, rank from pair"""

# The steps are read unlocked and may be stale by the time their job is locked: the caller plans on what it loads
# after the lock. SKIP LOCKED below LIMIT: jobs that others hold do not use up the limit.
LOCK_CANDIDATES = """
select s.job_id, j.version, s.position from processing_job_steps s join processing_jobs j on j.id = s.job_id
where s.status = 'READY' and s.queue = %s and s.org_id = %s and s.rank = %s and s.due_at <= %s
order by s.due_at, s.job_id limit %s
for no key update of j skip locked"""

INSERT_JOBS = """
insert into processing_jobs (id, org_id, template_id, entity_type, entity_id, priority, title, metadata, file_type,
  created_by, created_at, parent_job_id, family, batch_id, status, run, version, settled, total, held, chain)
select u.id, u.org_id, u.template_id, u.entity_type, u.entity_id, u.priority, u.title, u.metadata::jsonb, u.file_type,
  u.created_by, %s, u.parent_job_id, u.family, u.batch_id, u.status, 1, u.version, u.settled, u.total, u.held, u.chain
from unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[],
  %s::text[], %s::uuid[], %s::text[], %s::uuid[], %s::text[], %s::int[], %s::int[], %s::int[], %s::bool[],
  %s::bytea[])
  as u(id, org_id, template_id, entity_type, entity_id, priority, title, metadata, file_type, created_by,
       parent_job_id, family, batch_id, status, version, settled, total, held, chain)"""

INSERT_STEPS = """
insert into processing_job_steps (job_id, position, org_id, step_key, queue, rank, status, epoch, failures, crashes,
  checkpointed, worker_id, due_at, deadline_at, reason, result, error, started_at, finished_at)
select u.job_id, u.position, u.org_id, u.step_key, u.queue, u.rank, u.status, u.epoch, u.failures, u.crashes,
  u.checkpointed, u.worker_id, u.due_at, u.deadline_at, u.reason, nullif(u.result, '')::jsonb,
  nullif(u.error, '')::jsonb, case when u.status in ('IN_PROGRESS', 'COMPLETED') then %(now)s end,
  case when u.status in ('COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED') then %(now)s end
from unnest(%(job_id)s::uuid[], %(position)s::smallint[], %(org_id)s::uuid[], %(step_key)s::text[], %(queue)s::text[],
  %(rank)s::int[], %(status)s::text[], %(epoch)s::int[], %(failures)s::int[], %(crashes)s::int[],
  %(checkpointed)s::bool[], %(worker_id)s::uuid[], %(due_at)s::timestamptz[], %(deadline_at)s::timestamptz[],
  %(reason)s::text[], %(result)s::text[], %(error)s::text[])
  as u(job_id, position, org_id, step_key, queue, rank, status, epoch, failures, crashes, checkpointed, worker_id,
       due_at, deadline_at, reason, result, error)"""

# The epoch in WHERE is the fence in the database itself: even a planner gone wrong cannot write under an old lease.
UPDATE_STEPS = """
update processing_job_steps s set
  queue = u.queue, status = u.status, epoch = u.epoch, failures = u.failures, crashes = u.crashes,
  checkpointed = u.checkpointed, worker_id = u.worker_id, due_at = u.due_at, deadline_at = u.deadline_at,
  reason = u.reason,
  result = case when u.result is null then s.result when u.result <> '' then u.result::jsonb end,
  error = case when u.error is null then s.error when u.error <> '' then u.error::jsonb end,
  started_at = case
    when u.status in ('IN_PROGRESS', 'COMPLETED') and u.epoch > s.epoch then %(now)s else s.started_at end,
  finished_at = case when u.status in ('COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED') then %(now)s end
from unnest(%(job_id)s::uuid[], %(position)s::smallint[], %(queue)s::text[], %(status)s::text[], %(epoch)s::int[],
  %(failures)s::int[], %(crashes)s::int[], %(checkpointed)s::bool[], %(worker_id)s::uuid[],
  %(due_at)s::timestamptz[], %(deadline_at)s::timestamptz[], %(reason)s::text[], %(result)s::text[],
  %(error)s::text[], %(old_epoch)s::int[])
  as u(job_id, position, queue, status, epoch, failures, crashes, checkpointed, worker_id, due_at, deadline_at,
       reason, result, error, old_epoch)
where s.job_id = u.job_id and s.position = u.position and s.epoch = u.old_epoch"""

UPDATE_JOBS = """
update processing_jobs j set
  version = u.version, status = u.status, run = u.run, settled = u.settled, held = u.held, chain = u.chain,
  started_at = coalesce(j.started_at, case when u.status <> 'PENDING' then %s::timestamptz end),
  finished_at = case when u.status in ('COMPLETED', 'PARTIAL_SUCCESS', 'FAILED', 'CANCELLED') then %s::timestamptz end
from unnest(%s::uuid[], %s::int[], %s::text[], %s::int[], %s::int[], %s::bool[], %s::bytea[])
  as u(id, version, status, run, settled, held, chain)
where j.id = u.id and j.version = u.version - 1"""

INSERT_EVENTS = """
insert into processing_job_events (at, job_id, version, org_id, data, hash)
select %s, u.job_id, u.version, u.org_id, u.data::json, u.hash
from unnest(%s::uuid[], %s::int[], %s::uuid[], %s::text[], %s::bytea[]) as u(job_id, version, org_id, data, hash)"""

UPSERT_PARTS = """
insert into processing_step_parts (created_at, job_id, position, name, org_id, value)
select %s, u.job_id, u.position, u.name, u.org_id, u.value::json
from unnest(%s::uuid[], %s::smallint[], %s::text[], %s::uuid[], %s::text[]) as u(job_id, position, name, org_id, value)
on conflict (job_id, position, name) do nothing"""

DELETE_PARTS = """
delete from processing_step_parts p using unnest(%s::uuid[], %s::smallint[]) as u(job_id, position)
where p.job_id = u.job_id and p.position = u.position"""

RUNNING_STEPS = """
select job_id, position, epoch from processing_job_steps
where status = 'IN_PROGRESS' and worker_id = %s order by job_id, position limit %s"""

# Walks the distinct workers of the partial index, so its cost follows the number of workers, not of steps.
ORPHANED_STEPS = """
with recursive holder(id) as (
  (select worker_id from processing_job_steps where status = 'IN_PROGRESS' order by worker_id limit 1)
  union all
  select next.worker_id from holder, lateral (
    select worker_id from processing_job_steps where status = 'IN_PROGRESS' and worker_id > holder.id
    order by worker_id limit 1) next
)
select s.job_id, s.position, s.epoch from holder h join processing_job_steps s
  on s.worker_id = h.id and s.status = 'IN_PROGRESS'
where not exists (select 1 from workers w where w.id = h.id and w.status = 'alive')
order by s.job_id, s.position limit %s"""

OVERDUE_STEPS = """
select job_id, position, epoch from processing_job_steps
where status = 'WAITING' and deadline_at <= %s order by deadline_at limit %s"""

# A process that is stopped in the middle of a transaction keeps its locks. idle_in_transaction_session_timeout does not
# end it if it happened in a pipeline (the server calls that `active`) or after one (a Flush on the wire has turned the
# timer off), and before PostgreSQL 17 there is no transaction_timeout. So whoever still lives does it.
END_SILENT = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and usename = session_user and pid <> pg_backend_pid()
  and application_name = current_setting('application_name') and xact_start is not null
  and state in ('active', 'idle in transaction') and wait_event = 'ClientRead'
  and state_change < clock_timestamp() - make_interval(secs => %s)"""

# One descent per (queue, organisation, rank): a long queue costs no more than a short one.
NEXT_DUE = """
with recursive line(queue, org_id, rank) as (
  (select queue, org_id, rank from processing_job_steps where status = 'READY' order by queue, org_id, rank limit 1)
  union all
  select next.queue, next.org_id, next.rank from line, lateral (
    select queue, org_id, rank from processing_job_steps
    where status = 'READY' and (queue, org_id, rank) > (line.queue, line.org_id, line.rank)
    order by queue, org_id, rank limit 1) next
)
select min(first.due_at) from line, lateral (
  select s.due_at from processing_job_steps s
  where s.status = 'READY' and s.queue = line.queue and s.org_id = line.org_id and s.rank = line.rank and s.due_at > %s
  order by s.due_at limit 1) first
where line.queue = any(%s::text[])"""


class PostgresSql:
    """`HotSql` over one psycopg connection."""

    def __init__(self, raw: Connection[Any]) -> None:
        self._raw = raw
        self._sent: list[tuple[str, Cursor[Any], int]] = []
        self._pipeline: Pipeline | None = None

    def _fetch(self, statement: str, parameters: Sequence[object]) -> list[Any]:
        return self._raw.execute(statement, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            # In pipeline mode BEGIN travels with the first statement, and COMMIT with the end of the pipeline.
            with self._raw.pipeline() as self._pipeline:
                yield
                commit = self._raw.execute("commit")
            if commit.statusmessage != "COMMIT":
                raise WrongCount(f"the server answered {commit.statusmessage} to a commit")
        except BaseException:
            if not self._raw.closed:
                self._raw.rollback()
            raise
        finally:
            self._pipeline = None

    def begin(self, ids: Sequence[str], *, wait: bool, queues: Sequence[str] = ()) -> Beginning:
        # All are sent before the first answer is awaited.
        now = self._raw.execute("select now()")
        locked = self._raw.execute(LOCK_JOBS if wait else TRY_LOCK_JOBS, [plain_array(ids)]) if ids else None
        waiting = {queue: self._raw.execute(READY_QUEUES, {"queue": queue}) for queue in queues}
        return Beginning(
            now.fetchall()[0][0],
            dict(locked.fetchall()) if locked else {},
            {queue: cursor.fetchall() for queue, cursor in waiting.items()},
        )

    def query(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        return self._raw.execute(statement.postgres, parameters).fetchall()

    def run_each(self, statement: Statement, rows: Sequence[Mapping[str, object]]) -> int:
        cursors = [self._raw.execute(statement.postgres, row) for row in rows]
        if cursors and self._pipeline is not None:
            self._pipeline.sync()
        return sum(cursor.rowcount for cursor in cursors)

    def load_template(self, template_id: str) -> dict[str, object] | None:
        rows = self._fetch("select definition from process_templates where id = %s", [template_id])
        return rows[0][0] if rows else None

    def load(self, ids: Sequence[str]) -> tuple[list[JobRow], list[StepRow]]:
        if not ids:
            return [], []
        jobs = self._raw.execute(LOAD_JOBS, [plain_array(ids)])
        steps = self._raw.execute(LOAD_STEPS, [plain_array(ids)])
        return [JobRow(JobHead(*row[:13]), *row[13:]) for row in jobs.fetchall()], [
            StepRow(row[0], row[1], StepState._make((_STATUS[row[2]], *row[3:10], _REASON.get(row[10]))))
            for row in steps.fetchall()
        ]

    def lock_candidates(self, queue: str, org_id: str, rank: int, now: datetime, limit: int) -> list[Candidate]:
        rows = self._fetch(LOCK_CANDIDATES, [queue, org_id, rank, now, limit])
        return [Candidate(*row) for row in rows]

    def existing_jobs(self, ids: Sequence[str]) -> set[str]:
        query = "select id from processing_jobs where id = any(%s::uuid[])"
        return {row[0] for row in self._fetch(query, [plain_array(ids)])} if ids else set()

    @contextmanager
    def writing(self) -> Iterator[None]:
        # What an earlier, failed transaction sent is none of ours.
        self._sent.clear()
        if self._pipeline is None:
            with self._raw.pipeline():
                yield
            self._check_counts()
            return
        yield
        # An insert changes all its rows or fails; an update must be known to have met its rows before we commit. Not by
        # a pipeline within the pipeline, which would begin with a round trip of its own.
        if any(name.startswith("update") for name, _, _ in self._sent):
            self._pipeline.sync()
            self._check_counts()

    def _check_counts(self) -> None:
        sent, self._sent = self._sent, []
        for name, cursor, planned in sent:
            if cursor.rowcount != planned:
                raise WrongCount(f"{name} changed {cursor.rowcount} rows, {planned} were planned")

    def _write(self, name: str, statement: str, parameters: Any, planned: int) -> None:
        self._sent.append((name, self._raw.execute(statement, parameters), planned))

    def share_entities(self, slots: Sequence[int]) -> None:
        if slots:
            self._raw.execute(SHARE_ENTITIES, [plain_array(slots)])

    def insert_jobs(self, rows: Sequence[NewJobRow], now: datetime) -> None:
        if not rows:
            return
        heads = [row.head for row in rows]
        parameters = [
            now,
            plain_array([head.id for head in heads]),
            plain_array([head.org_id for head in heads]),
            plain_array([head.template_id for head in heads]),
            text_array([head.entity_type for head in heads]),
            text_array([head.entity_id for head in heads]),
            plain_array([head.priority for head in heads]),
            text_array([head.title for head in heads]),
            text_array([orjson.dumps(head.metadata).decode() for head in heads]),
            text_array([head.file_type for head in heads]),
            text_array([head.created_by for head in heads]),
            plain_array([row.parent_job_id for row in rows]),
            text_array([head.family for head in heads]),
            plain_array([head.batch_id for head in heads]),
            plain_array([row.status for row in rows]),
            plain_array([row.version for row in rows]),
            plain_array([row.settled for row in rows]),
            plain_array([row.total for row in rows]),
            plain_array([row.held for row in rows]),
            bytes_array([row.chain for row in rows]),
        ]
        self._write("insert_jobs", INSERT_JOBS, parameters, len(rows))

    def insert_steps(self, rows: Sequence[StepWrite], now: datetime) -> None:
        if rows:
            parameters = step_columns(rows, now)
            parameters["org_id"] = plain_array([row.org_id for row in rows])
            parameters["step_key"] = text_array([row.step_key for row in rows])
            parameters["rank"] = plain_array([row.rank for row in rows])
            self._write("insert_steps", INSERT_STEPS, parameters, len(rows))

    def update_steps(self, rows: Sequence[StepWrite], now: datetime) -> None:
        if rows:
            parameters = step_columns(rows, now)
            parameters["old_epoch"] = plain_array([row.old_epoch for row in rows])
            self._write("update_steps", UPDATE_STEPS, parameters, len(rows))

    def update_jobs(self, rows: Sequence[JobWrite], now: datetime) -> None:
        if not rows:
            return
        parameters = [
            now,
            now,
            plain_array([row.id for row in rows]),
            plain_array([row.version for row in rows]),
            plain_array([row.status for row in rows]),
            plain_array([row.run for row in rows]),
            plain_array([row.settled for row in rows]),
            plain_array([row.held for row in rows]),
            bytes_array([row.chain for row in rows]),
        ]
        self._write("update_jobs", UPDATE_JOBS, parameters, len(rows))

    def insert_events(self, rows: Sequence[EventWrite], now: datetime) -> None:
        if not rows:
            return
        parameters = [
            now,
            plain_array([row.job_id for row in rows]),
            plain_array([row.version for row in rows]),
            plain_array([row.org_id for row in rows]),
            text_array([row.data for row in rows]),
            bytes_array([row.hash for row in rows]),
        ]
        self._write("insert_events", INSERT_EVENTS, parameters, len(rows))

    def upsert_parts(self, rows: Sequence[PartWrite], now: datetime) -> None:
        if not rows:
            return
        parameters = [
            now,
            plain_array([row.job_id for row in rows]),
            plain_array([row.position for row in rows]),
            text_array([row.name for row in rows]),
            plain_array([row.org_id for row in rows]),
            text_array([row.value for row in rows]),
        ]
        self._raw.execute(UPSERT_PARTS, parameters)

    def delete_parts(self, steps: Sequence[tuple[str, int]]) -> None:
        if steps:
            jobs, positions = zip(*steps, strict=True)
            self._raw.execute(DELETE_PARTS, [plain_array(jobs), plain_array(positions)])

    def running_steps(self, worker: str, limit: int) -> list[tuple[str, int, int]]:
        return self._fetch(RUNNING_STEPS, [worker, limit])

    def orphaned_steps(self, limit: int) -> list[tuple[str, int, int]]:
        return self._fetch(ORPHANED_STEPS, [limit])

    def overdue_steps(self, now: datetime, limit: int) -> list[tuple[str, int, int]]:
        return self._fetch(OVERDUE_STEPS, [now, limit])

    def end_silent(self, patience: float) -> int:
        # Only a login may end what the same login has open.
        self._raw.execute("set local role none")
        count: int = self._fetch(END_SILENT, [patience])[0][0]
        return count

    def next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        value: datetime | None = self._fetch(NEXT_DUE, [now, text_array(queues)])[0][0]
        return value
