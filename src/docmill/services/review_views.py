"""Review as it is shown: items, fields, history, comments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from docmill.db.tables import documents, field_history, review_comments, review_items
from docmill.model.review import FieldState, ReviewStatus, SlaState
from docmill.review.fields import FieldRow
from docmill.review.merging import locked_tables
from docmill.review.priority import Breakdown, breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSummary:
    """One item, as a list shows it."""

    id: str
    document_id: str
    file_name: str
    round: int
    """1 for the first item of a document; each that a later run opened counts on."""
    status: ReviewStatus
    version: int
    """Moves with every change; give it with a change to be told if somebody was quicker."""
    schema: str
    document_type: str | None
    assigned_to: str | None
    assigned_to_name: str | None
    """As of now, like the other names; of somebody who has left, what they were called."""
    claimed_by: str | None
    claimed_by_name: str | None
    claim_expires_at: datetime | None
    postponed_until: datetime | None
    confidence: float
    priority: Breakdown
    sla_state: SlaState
    due_at: datetime | None
    fields_total: int
    fields_to_review: int
    created_at: datetime
    updated_at: datetime
    decided_by: str | None
    decided_by_name: str | None
    decided_at: datetime | None
    automatic: bool
    """Decided by the setting `review.auto_approve`, not by a person."""
    reason: str | None
    superseded_by: str | None
    """The item of a later reading of the same bytes, which stands in the place of this one; nobody decides it any
    more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One field or cell."""

    path: str
    value: str | None
    state: FieldState
    locked: bool
    """No run overwrites it."""
    needs_review: bool
    required: bool
    confidence: float | None
    """Of what the machine read."""
    threshold: float
    extracted: str | None
    raw: str | None
    evidence: Sequence[Mapping[str, Any]]
    """Where the value stands: page and box. Empty for a value that a person wrote."""
    passed: Sequence[str]
    failed: Sequence[str]
    alternatives: Sequence[str]
    reader: str | None
    differs: bool
    """A later run read something else than the person said: `proposed`, None if it found nothing."""
    proposed: str | None
    changed_by: str | None
    changed_by_name: str | None
    changed_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """An item with all its fields."""

    item: ItemSummary
    fields: Sequence[FieldView]
    checks: Sequence[Mapping[str, Any]]
    """The rules of the schema, held against the values as they are now."""
    missing: Sequence[str]
    """Required, and not there: until they are, nobody can approve it."""
    addable: Sequence[str]
    """Fields and tables that the schema knows besides."""
    comments: int
    supersedes: Sequence[str]
    """Items of earlier readings of the same bytes, in whose place this one stands; what was said there is told here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """What somebody did to a field."""

    path: str
    action: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    by: str
    by_name: str
    at: datetime
    undone_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A remark about an item, or about one of its fields."""

    id: str
    path: str | None
    body: str
    by: str
    by_name: str
    at: datetime


SUMMARIES: Select[Any] = select(review_items, documents.c.file_name).join(
    documents, documents.c.id == review_items.c.document_id
)


def whose(row: Row[Any]) -> Sequence[str | None]:
    """Everybody whom a row of `SUMMARIES` names."""
    return row.assigned_to, row.claimed_by, row.decided_by


def summary(row: Row[Any], now: datetime, names: Mapping[str, str]) -> ItemSummary:
    """The record of a row of `SUMMARIES`; `names` by id."""
    parts = breakdown(
        confidence=row.confidence,
        complexity=row.complexity,
        value=row.value,
        created_at=row.created_at,
        due_at=row.due_at,
        now=row.decided_at or now,
    )
    return ItemSummary(
        id=row.id,
        document_id=row.document_id,
        file_name=row.file_name,
        round=row.round,
        status=ReviewStatus(row.status),
        version=row.version,
        schema=row.schema_name,
        document_type=row.document_type,
        assigned_to=row.assigned_to or None,
        assigned_to_name=names.get(row.assigned_to),
        claimed_by=row.claimed_by or None,
        claimed_by_name=names.get(row.claimed_by),
        claim_expires_at=row.claim_expires_at,
        postponed_until=row.postponed_until,
        confidence=row.confidence,
        priority=parts,
        sla_state=SlaState(row.sla_state),
        due_at=row.due_at,
        fields_total=row.fields_total,
        fields_to_review=row.fields_to_review,
        created_at=row.created_at,
        updated_at=row.updated_at,
        decided_by=row.decided_by,
        decided_by_name=names.get(row.decided_by),
        decided_at=row.decided_at,
        automatic=row.automatic,
        reason=row.reason,
        superseded_by=row.superseded_by,
    )


def field_views(rows: Sequence[FieldRow], names: Mapping[str, str]) -> list[FieldView]:
    """The fields as they are shown; `names` by id."""
    tables = locked_tables(rows)
    return [_field_view(row, row.locked or (row.row_index is not None and row.name in tables), names) for row in rows]


def _field_view(row: FieldRow, locked: bool, names: Mapping[str, str]) -> FieldView:
    read = row.value is not None and row.value == row.extracted
    details = row.details
    return FieldView(
        path=row.path,
        value=row.value,
        state=row.state,
        locked=locked,
        needs_review=row.needs_review,
        required=row.required,
        confidence=row.confidence,
        threshold=row.threshold,
        extracted=row.extracted,
        raw=details["raw"],
        evidence=details["evidence"] if read else (),
        passed=details["passed"],
        failed=details["failed"],
        alternatives=details["alternatives"],
        reader=details["reader"],
        differs=row.differs,
        proposed=row.proposed,
        changed_by=row.changed_by,
        changed_by_name=names.get(row.changed_by or ""),
        changed_at=row.changed_at,
    )


def line_of(connection: Connection, item_id: str) -> list[str]:
    """An item and those in whose place it stands, the nearest first."""
    line, last = [item_id], [item_id]
    while last:
        query = select(review_items.c.id).where(review_items.c.superseded_by.in_(last)).order_by(review_items.c.id)
        last = [each for each in connection.execute(query).scalars() if each not in line]
        line += last
    return line


def history_query(line: Sequence[str], path: str | None) -> Select[Any]:
    """What was done to the fields of items, oldest first."""
    query = select(field_history).where(field_history.c.item_id.in_(line)).order_by(field_history.c.id)
    return query if path is None else query.where(field_history.c.path == path)


def field_change(row: Row[Any]) -> FieldChange:
    """The record of a row."""
    return FieldChange(
        path=row.path,
        action=row.action,
        before=row.before,
        after=row.after,
        by=row.by,
        by_name=row.by_name,
        at=row.at,
        undone_at=row.undone_at,
    )


def comments_query(line: Sequence[str]) -> Select[Any]:
    """What was said about items, oldest first."""
    return select(review_comments).where(review_comments.c.item_id.in_(line)).order_by(review_comments.c.id)


def comment_of(row: Row[Any]) -> Comment:
    """The record of a row."""
    return Comment(id=row.id, path=row.path, body=row.body, by=row.by, by_name=row.by_name, at=row.at)
