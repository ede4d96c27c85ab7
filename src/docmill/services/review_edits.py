"""What reviewers do to fields: correct, add, clear, confirm, undo. Each is one transaction.

A value that a person decided is locked with the same commit in the document's row, where every run finds it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, String, bindparam, delete, insert, select, update

from docmill.db.tables import documents, extracted_fields, field_history
from docmill.db.types import IdType, iso
from docmill.model.errors import Conflict
from docmill.model.ids import new_id
from docmill.model.people import Permission, Principal
from docmill.people.audit import Deed
from docmill.review.editing import Change, Editor, applied, rechecked
from docmill.review.fields import FieldRow
from docmill.review.merging import locks_of
from docmill.review.recording import ITEM
from docmill.review.rows import Packed, fields_of, insert_fields
from docmill.services.review_base import ReviewBase
from docmill.services.review_views import FieldChange, ItemSummary, field_change, history_query, line_of

_WRITTEN = (
    *("value", "needs_review", "state", "locked", "proposed", "differs", "details", "changed_by", "changed_at"),
    *("position", "extracted"),
)
_ITEM, _PATH = bindparam("the_item", type_=IdType()), bindparam("the_path", type_=String())
_UPDATE_FIELD = (
    update(extracted_fields)
    .where(extracted_fields.c.item_id == _ITEM, extracted_fields.c.path == _PATH)
    .values({name: bindparam(name) for name in _WRITTEN})
)
_DELETE_FIELD = delete(extracted_fields).where(extracted_fields.c.item_id == _ITEM, extracted_fields.c.path == _PATH)
_INSERT_HISTORY = insert(field_history)


class FieldEdits(ReviewBase):
    """The fields of items that somebody has claimed."""

    def correct(
        self, principal: Principal, item_id: str, path: str, value: str, *, version: int | None = None
    ) -> ItemSummary:
        """Give a field or cell this value; one that was not found is added. The value is locked."""
        return self._edit(principal, item_id, version, lambda editor: [editor.correct(path, value)])

    def add(
        self, principal: Principal, item_id: str, path: str, value: str, *, version: int | None = None
    ) -> ItemSummary:
        """Give a value to a field that has none; Conflict if it has one."""

        def change(editor: Editor) -> list[Change]:
            if any(row.path == path and row.value is not None for row in editor.rows):
                raise Conflict(f"{path} has a value; correct it instead.", path=path)
            return [editor.correct(path, value)]

        return self._edit(principal, item_id, version, change)

    def clear(self, principal: Principal, item_id: str, path: str, *, version: int | None = None) -> ItemSummary:
        """Say that the document has no such value; a row (`line_items[2]`) is cleared as a whole."""
        return self._edit(principal, item_id, version, lambda editor: editor.clear(path))

    def confirm(
        self, principal: Principal, item_id: str, paths: Sequence[str] | None = None, *, version: int | None = None
    ) -> ItemSummary:
        """Say that values are right; without paths, all that need a look and have a value."""
        return self._edit(principal, item_id, version, lambda editor: editor.confirm(paths))

    def undo(
        self, principal: Principal, item_id: str, path: str | None = None, *, version: int | None = None
    ) -> ItemSummary:
        """Take back the last thing done to the item, or to this field, that was not taken back yet."""
        self._allow(principal, Permission.REVIEW_DECIDE)
        self._warm(item_id)
        with self._writing() as (connection, now):
            item = self._hold(connection, item_id, version)
            self._check_claim(connection, item, principal, now)
            done = _last_change(connection, item.id, path)
            if not done:
                where = f" at {path}" if path else ""
                raise Conflict(f"There is nothing to undo{where} in item {item.id}.", id=item.id)
            write = update(field_history).where(field_history.c.change_id == done[0].change_id)
            connection.execute(write.values(undone_at=now))
            changes = self._change(
                connection,
                principal,
                item,
                now,
                lambda editor: [editor.restore(row.path, row.before) for row in done],
                undone=now,
            )
            shown = self._summary(connection, item.id, now, principal)
            self._record_changes(connection, principal, item, changes, now)
            return shown

    def history(self, principal: Principal, item_id: str, path: str | None = None) -> Sequence[FieldChange]:
        """What was done to the fields of an item, or to one of them, oldest first."""
        self._allow(principal, Permission.REVIEW_READ)
        with self._database.read() as connection:
            item = self._found(connection, item_id)
            return [field_change(row) for row in connection.execute(history_query(line_of(connection, item.id), path))]

    def _edit(
        self,
        principal: Principal,
        item_id: str,
        version: int | None,
        change: Callable[[Editor], list[Change]],
    ) -> ItemSummary:
        self._allow(principal, Permission.REVIEW_DECIDE)
        self._warm(item_id)
        with self._writing() as (connection, now):
            item = self._hold(connection, item_id, version)
            self._check_claim(connection, item, principal, now)
            changes = self._change(connection, principal, item, now, change)
            shown = self._summary(connection, item.id, now, principal)
            self._record_changes(connection, principal, item, changes, now)
            return shown

    def _change(
        self,
        connection: Connection,
        principal: Principal,
        item: Row[Any],
        now: datetime,
        change: Callable[[Editor], list[Change]],
        undone: datetime | None = None,
    ) -> list[Change]:
        extraction, schema = self._extraction_of(item)
        before = fields_of(connection, item.id)
        editor = Editor(rows=before, schema=schema, cut=item.cut, by=principal.id, at=iso(now))
        changes = change(editor)
        after, _ = rechecked(applied(before, changes), extraction, schema)
        _store(connection, item, before, after)
        _store_history(connection, item, changes, principal, now, undone)
        _lock(connection, item.document_id, before, after)
        to_review = sum(row.needs_review for row in after)
        self._write(connection, item, now, fields_total=len(after), fields_to_review=to_review, **self._renewed(now))
        return changes

    def _record_changes(
        self, connection: Connection, principal: Principal, item: Row[Any], changes: Sequence[Change], now: datetime
    ) -> None:
        subject = (ITEM, item.id)
        deeds = [
            Deed(
                f"review.{change.action}",
                subject,
                {"path": change.path, **_told(change.before)},
                {"path": change.path, **_told(change.after)},
            )
            for change in changes
        ]
        self._recorder.record(connection, principal, deeds, now)


def _told(row: FieldRow | None) -> dict[str, Any]:
    return {} if row is None else {"value": row.value, "state": row.state.value}


def _last_change(connection: Connection, item_id: str, path: str | None) -> Sequence[Row[Any]]:
    """The rows of the last action that still stands."""
    standing = select(field_history).where(
        field_history.c.item_id == item_id, field_history.c.undone_at.is_(None), field_history.c.action != "undo"
    )
    if path is not None:
        standing = standing.where(field_history.c.path == path)
    last = connection.execute(standing.order_by(field_history.c.id.desc()).limit(1)).first()
    if last is None:
        return ()
    query = select(field_history).where(field_history.c.change_id == last.change_id).order_by(field_history.c.id)
    return connection.execute(query).all()


def _store(connection: Connection, item: Row[Any], before: Sequence[FieldRow], after: Sequence[FieldRow]) -> None:
    """Write what is different; one executemany for each kind of difference."""
    held = {row.path: row for row in before}
    changed = [row for row in after if row.path in held and row != held[row.path]]
    if changed:
        connection.execute(_UPDATE_FIELD, [_values(item.id, row) for row in changed])
    new = Packed.of([row for row in after if row.path not in held])
    insert_fields(connection, connection.dialect.name, item.org_id, item.id, new)
    gone = held.keys() - {row.path for row in after}
    if gone:
        connection.execute(_DELETE_FIELD, [{"the_item": item.id, "the_path": path} for path in sorted(gone)])


def _values(item_id: str, row: FieldRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _WRITTEN}
    changed_at = None if row.changed_at is None else datetime.fromisoformat(row.changed_at)
    return values | {
        "the_item": item_id,
        "the_path": row.path,
        "state": row.state.value,
        "changed_at": changed_at,
        "details": dict(row.details),
    }


def _store_history(
    connection: Connection,
    item: Row[Any],
    changes: Sequence[Change],
    principal: Principal,
    now: datetime,
    undone: datetime | None,
) -> None:
    change_id = new_id()
    rows = [
        {
            "id": new_id(),
            "org_id": item.org_id,
            "item_id": item.id,
            "change_id": change_id,
            "path": change.path,
            "action": change.action,
            "before": _kept(change.before),
            "after": _kept(change.after),
            "by": principal.id,
            "by_name": principal.name,
            "at": now,
            "undone_at": undone,
        }
        for change in changes
    ]
    if rows:
        connection.execute(_INSERT_HISTORY, rows)


def _kept(row: FieldRow | None) -> Mapping[str, Any] | None:
    if row is None:
        return None
    return {"value": row.value, "state": row.state.value, "changed_by": row.changed_by, "changed_at": row.changed_at}


def _lock(connection: Connection, document_id: str, before: Sequence[FieldRow], after: Sequence[FieldRow]) -> None:
    """What is locked in the item is locked in the document; what others locked there stays."""
    mine = {row.name for row in (*before, *after)}
    locked = connection.execute(select(documents.c.locked).where(documents.c.id == document_id)).scalar_one()
    wanted = {name: value for name, value in locked.items() if name not in mine} | locks_of(after)
    if wanted != locked:
        connection.execute(update(documents).where(documents.c.id == document_id).values(locked=wanted))
