"""A set of derived rows made what a step produced, and nothing removed that somebody may be using.

Two things may use a row: another row, by a foreign key, and a job that has read it and not yet written what it makes of
it. Both are looked at under locks that hold until the commit (see `sql.entities` and `_lock`), so what was found stays
true. Written for `ApplyContext.reconcile`, in the transaction that completes the step.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import bindparam, text

from docmill.engine.references import Reference, quoted, references_to
from docmill.engine.sql.entities import TRY_ALONE, entity_slot
from docmill.engine.sql.rows import JobHead
from docmill.model.errors import PermanentError
from docmill.model.statuses import FINISHED_JOBS, JobStatus
from docmill.plugin import Database, Reconciled

log = logging.getLogger("docmill.engine")

_AT_ONCE = 500
"""Keys in one statement."""

_LIVE = ", ".join(f"'{status}'" for status in JobStatus if status not in FINISHED_JOBS)

# The statuses stand in the text, as in the partial index that answers this.
_OTHERS = f"""
select count(*) from processing_jobs
where org_id = :org_id and entity_type = :entity_type and entity_id = :entity_id and id <> :own
  and status in ({_LIVE})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSet:
    """The rows a step produced, and which rows of the table they are all of."""

    table: str
    key: str
    scope: Mapping[str, object]
    rows: Sequence[Mapping[str, object]]
    superseded: str | None = None

    def complete(self) -> list[dict[str, object]]:
        """The rows with the columns of their scope; PermanentError if they cannot be one set."""
        rows = [{**row, **self.scope} for row in self.rows]
        if self.superseded:
            rows = [{**row, self.superseded: None} for row in rows]
        columns = set(rows[0]) if rows else set()
        for row, given in zip(rows, self.rows, strict=True):
            if set(row) != columns or self.key not in row:
                raise PermanentError(f"Rows for {self.table} must all have the same columns, {self.key!r} among them.")
            if any(given.get(column, value) != value for column, value in self.scope.items()):
                raise PermanentError(f"A row for {self.table} lies outside its scope: {row[self.key]}.")
        if len({str(row[self.key]) for row in rows}) < len(rows):
            raise PermanentError(
                f"Two rows for {self.table} have the same {self.key}: derive it from the position as well."
            )
        return rows


def reconcile(
    db: Database, kind: str, job: JobHead, wanted: RowSet, *, used_by: Sequence[tuple[str, str]], now: datetime
) -> Reconciled:
    """Write what is new or changed, then remove what is stale and surely unused. Called under the job's lock."""
    if not wanted.scope:
        raise PermanentError(f"Without a scope all of {wanted.table} would be meant; name the rows' owner.")
    rows = wanted.complete()
    written = _upsert(db, kind, wanted, rows)
    stale = _stale(db, wanted, rows)
    removed: set[str] = set()
    busy = False
    if stale:
        _mark(db, wanted, stale, now)
        busy = not _alone(db, kind, job, [(job.entity_type, job.entity_id), *used_by])
        if not busy:
            removed = _remove(db, kind, wanted, stale)
    kept = tuple(name for name in stale if name not in removed)
    if kept:
        reason = "another job of the entity is active" if busy else "foreign keys point at them"
        log.info("job %s: %d stale rows of %s stay: %s", job.id, len(kept), wanted.table, reason)
    return Reconciled(
        written=written, unchanged=len(rows) - written, removed=len(removed), kept=kept, busy=busy and bool(kept)
    )


def _upsert(db: Database, kind: str, wanted: RowSet, rows: Sequence[Mapping[str, object]]) -> int:
    """Insert or change rows; how many were not there as they are. Rows of another scope are left alone."""
    if not rows:
        return 0
    differs = "is distinct from" if kind == "postgresql" else "is not"
    names = list(rows[0])
    own = [name for name in names if name != wanted.key and name not in wanted.scope]
    same_scope = [f"not (present.{quoted(name)} {differs} excluded.{quoted(name)})" for name in wanted.scope]
    changed = " or ".join(f"present.{quoted(name)} {differs} excluded.{quoted(name)}" for name in own)
    update = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in own)
    statement = (
        f"insert into {quoted(wanted.table)} as present ({', '.join(map(quoted, names))}) "
        f"values ({', '.join(f':c{n}' for n in range(len(names)))}) on conflict ({quoted(wanted.key)}) do "
    )
    statement += f"update set {update} where {' and '.join(same_scope)} and ({changed})" if own else "nothing"
    # In order of the keys: two transactions that write the same rows then queue instead of deadlocking.
    in_order = sorted(rows, key=lambda row: str(row[wanted.key]))
    result = db.execute(text(statement), [{f"c{n}": row[name] for n, name in enumerate(names)} for row in in_order])
    return int(result.rowcount)


def _stale(db: Database, wanted: RowSet, rows: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """What is in the scope and was not produced: its key as text, and as the database has it."""
    where = " and ".join(f"{quoted(name)} = :s{n}" for n, name in enumerate(wanted.scope))
    query = f"select {quoted(wanted.key)} from {quoted(wanted.table)} where {where} order by 1"
    found = db.execute(text(query), {f"s{n}": value for n, value in enumerate(wanted.scope.values())})
    present = {str(value): value for (value,) in found}
    produced = {str(row[wanted.key]) for row in rows}
    elsewhere = sorted(produced - present.keys())
    if elsewhere:
        raise PermanentError(
            f"{len(elsewhere)} rows for {wanted.table} have keys that belong to another scope, {elsewhere[0]} for one; "
            "derive the key from what the scope names as well."
        )
    return {name: value for name, value in present.items() if name not in produced}


def _mark(db: Database, wanted: RowSet, stale: Mapping[str, Any], now: datetime) -> None:
    if wanted.superseded:
        column = quoted(wanted.superseded)
        statement = f"update {quoted(wanted.table)} set {column} = :now where {quoted(wanted.key)} = :key"
        values = [{"now": now.isoformat(), "key": value} for value in stale.values()]
        db.execute(text(f"{statement} and {column} is null"), values)


def _alone(db: Database, kind: str, job: JobHead, entities: Sequence[tuple[str, str]]) -> bool:
    """Whether no other job of these entities is active, and none can become so before the commit.

    First the lock, then the look: a job submitted before we had the lock is seen, one submitted later waits for us and
    reads what we left.
    """
    if kind == "postgresql":
        for slot in sorted({entity_slot(job.org_id, *entity) for entity in entities}):
            if not db.execute(TRY_ALONE, {"slot": slot}).scalar():
                return False
    for entity_type, entity_id in entities:
        about = {"org_id": job.org_id, "entity_type": entity_type, "entity_id": entity_id, "own": job.id}
        if db.execute(_OTHERS, about).scalar():
            return False
    return True


def _remove(db: Database, kind: str, wanted: RowSet, stale: Mapping[str, Any]) -> set[str]:
    """Delete those that no foreign key points at; the keys of what was deleted."""
    references = references_to(db, kind, wanted.table)
    left = _lock(db, wanted, stale) if kind == "postgresql" else dict(stale)
    removed: set[str] = set()
    while left:
        free = _unreferenced(db, wanted, references, left)
        for keys in _portions(free.values()):
            db.execute(_with_keys(f"delete from {quoted(wanted.table)} where {quoted(wanted.key)} in :keys"), keys)
        removed |= free.keys()
        left = {name: value for name, value in left.items() if name not in free}
        # What was removed may have pointed at others of the same table.
        if not free or not any(reference.own_table for reference in references):
            break
    return removed


def _lock(db: Database, wanted: RowSet, stale: Mapping[str, Any]) -> dict[str, Any]:
    """Those that nobody holds, ours until the commit: from now on no row can be made to point at them.

    A row that somebody just wrote a reference to, not yet committed, is held by that reference and passed over. A
    plain delete would wait for it and then, with ON DELETE CASCADE, take the new reference along.
    """
    key = quoted(wanted.key)
    query = _with_keys(f"select {key} from {quoted(wanted.table)} where {key} in :keys for update skip locked")
    found = chain.from_iterable(db.execute(query, keys) for keys in _portions(stale.values()))
    return {str(value): value for (value,) in found}


def _unreferenced(
    db: Database, wanted: RowSet, references: Sequence[Reference], left: Mapping[str, Any]
) -> dict[str, Any]:
    key = quoted(wanted.key)
    unused = "".join(f" and not exists ({reference.pointing_at('target', key)})" for reference in references)
    query = _with_keys(f"select target.{key} from {quoted(wanted.table)} as target where target.{key} in :keys{unused}")
    found = chain.from_iterable(db.execute(query, keys) for keys in _portions(left.values()))
    return {str(value): value for (value,) in found}


def _with_keys(statement: str) -> Any:
    return text(statement).bindparams(bindparam("keys", expanding=True))


def _portions(values: Any) -> list[dict[str, list[Any]]]:
    everything = list(values)
    return [{"keys": everything[start : start + _AT_ONCE]} for start in range(0, len(everything), _AT_ONCE)]
