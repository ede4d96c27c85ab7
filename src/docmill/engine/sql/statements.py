"""Statements that are not hot: written once for both databases, run a row at a time.

A parameter is written `:name`. What only PostgreSQL needs, the row lock, is given apart: on SQLite whoever writes is
alone anyway.
"""

import re
from typing import NamedTuple

_PARAMETER = re.compile(r"(?<!:):(\w+)")


class Statement(NamedTuple):
    """One statement in both dialects."""

    postgres: str
    sqlite: str


def statement(text: str, lock: str = "") -> Statement:
    """The statement; `lock` is appended on PostgreSQL."""
    return Statement(_PARAMETER.sub(r"%(\1)s", text) + lock, text)


# The batch's row is locked after the jobs of the batch, never before: see `Transaction`.
LOCK_BATCH = statement(
    "select max_active, active, held, cancelling from processing_batches where id = :id", lock=" for no key update"
)

INSERT_BATCH = statement("""
insert into processing_batches (id, org_id, title, max_active, total, active, held, digest, metadata, created_by,
  created_at, finished_at)
values (:id, :org_id, :title, :max_active, :total, :active, :held, :digest, :metadata, :created_by, :now, :finished_at)
on conflict do nothing""")

# The condition is the limit in the database itself: what is active may rise up to it, and above it only fall. Even
# counting gone wrong cannot let one more in.
UPDATE_BATCH = statement("""
update processing_batches set active = :active, held = :held, finished_at = :finished_at, cancelling = :cancelling
where id = :id and (:active <= max_active or :active <= active)""")

# SKIP LOCKED: whoever holds the batch must not wait for a job that somebody is cancelling. What is passed over is found
# by the sweeper.
LOCK_HELD = statement(
    "select id, version from processing_jobs where batch_id = :batch_id and held order by id limit :limit",
    lock=" for no key update skip locked",
)

HUNGRY_BATCHES = statement("""
select id from processing_batches
where finished_at is null and held > 0 and active < max_active and not cancelling order by id limit :limit""")

# Somebody is cancelling them, or was and died.
CANCELLED_BATCHES = statement("""
select id from processing_batches where finished_at is null and cancelling order by id limit :limit""")

UNFINISHED_OF_BATCH = statement("""
select id from processing_jobs
where batch_id = :batch_id and id > :after and status in ('PENDING', 'IN_PROGRESS', 'WAITING')
order by id limit :limit""")

# For many at once: `keys` is a JSON array of [organisation, entity type, entity id, family]. No lock: an answer that is
# out of date makes the insert fail, which is then tried again.
ACTIVE_JOBS = Statement(
    # LATERAL with its own limit: one look into the index for each key. As a plain join, a table that has grown since it
    # was last analysed would be held against the keys row by row. MATERIALIZED: the keys are taken apart before they
    # meet the table, whose row-level security lets no function that might tell on it see its rows first.
    postgres="""
with keys as materialized (
  select (k->>0)::uuid as org_id, k->>1 as entity_type, k->>2 as entity_id, k->>3 as family
  from json_array_elements(%(keys)s::json) as k)
select k.org_id, k.entity_type, k.entity_id, k.family, j.id from keys k, lateral (
  select id from processing_jobs
  where org_id = k.org_id and entity_type = k.entity_type and entity_id = k.entity_id and family = k.family
    and status in ('PENDING', 'IN_PROGRESS', 'WAITING')
  limit 1) as j""",
    # CROSS JOIN keeps the order: one look into the index for each key.
    sqlite="""
select k.value->>0, k.value->>1, k.value->>2, k.value->>3, j.id from json_each(:keys) k cross join processing_jobs j
  on j.org_id = k.value->>0 and j.entity_type = k.value->>1 and j.entity_id = k.value->>2 and j.family = k.value->>3
where j.status in ('PENDING', 'IN_PROGRESS', 'WAITING')""",
)

INSERT_UNDO_TEMPLATE = statement("""
insert into process_templates (id, org_id, name, version, processable_type, task_type, service_name, digest,
  definition, created_at, undoes_id)
values (:id, :org_id, :name, :version, :processable_type, :task_type, :service_name, :digest, :definition, :now,
  :undoes_id)
on conflict do nothing""")

TEMPLATE_VERSION = statement("select version from process_templates where id = :id")

NEWEST_TEMPLATE = statement("""
select id from process_templates where org_id = :org_id and name = :name order by version desc limit 1""")

NAMED_PARTS = statement("""
select name, cast(value as text) from processing_step_parts
where job_id = :job_id and position = :position and name like :names""")

# Read under the lock of the job, for steps that end where they become ready.
STORED_RESULTS = statement("""
select position, cast(result as text) from processing_job_steps where job_id = :job_id and result is not null""")

# Both rows are under the lock of their job: the one was completed before, the other is being inserted.
COPY_RESULT = statement("""
update processing_job_steps set result = (
  select o.result from processing_job_steps o where o.job_id = :from_job and o.position = :from_position)
where job_id = :job_id and position = :position""")

INSERT_CALLBACK = statement("""
insert into processing_callbacks (id, org_id, message_id, job_id, position, epoch, payload, outcome, received_at,
  settled_at)
values (:id, :org_id, :message_id, :job_id, :position, :epoch, :payload, :outcome, :now, :settled_at)
on conflict do nothing""")

# Read under the job's lock, so whatever was stored before the step began to wait is seen by whoever lets it wait.
RECEIVED_CALLBACKS = statement("""
select id, epoch, cast(payload as text) from processing_callbacks
where job_id = :job_id and position = :position and outcome = 'received' order by id""")

SETTLE_CALLBACK = statement("""
update processing_callbacks set outcome = :outcome, settled_at = :now where id = :id and outcome = 'received'""")

# Not those whose step is being sent out this moment: they are acted on when it begins to wait.
FORGOTTEN_CALLBACKS = statement("""
select distinct c.job_id, c.position from processing_callbacks c
where c.outcome = 'received' and not exists (
  select 1 from processing_job_steps s
  where s.job_id = c.job_id and s.position = c.position and s.status = 'IN_PROGRESS' and s.epoch = c.epoch)
order by c.job_id, c.position limit :limit""")

INSERT_ISSUE = statement("""
insert into processing_issues (id, org_id, processable_type, processable_id, job_id, position, step_key, epoch, code,
  severity, blocking, corrects, status, title, details, answer_schema, assigned_to, created_by, created_at)
values (:id, :org_id, :processable_type, :processable_id, :job_id, :position, :step_key, :epoch, :code,
  :severity, :blocking, :corrects, 'open', :title, :details, :answer_schema, :assigned_to, :created_by, :now)
on conflict do nothing""")

# The lock of the job guards the issues of its steps.
WITHDRAW_ISSUES = statement("""
update processing_issues set status = 'withdrawn', resolved_at = :now
where job_id = :job_id and position = :position and status = 'open' and blocking""")

# What was raised with a result is asked again with it, unless somebody answered.
FORGET_PARTS = statement("""
delete from processing_step_parts where job_id = :job_id and position = :position and name like :names""")
