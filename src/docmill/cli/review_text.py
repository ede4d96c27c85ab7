"""Review items as people read them."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from docmill.cli.output import is_narrow, note_left_out, print_table, printable, record, short_ids, styled, when
from docmill.model.percents import percent
from docmill.model.review import FieldState, SlaState

if TYPE_CHECKING:
    from rich.text import Text

    from docmill.services.review import Comment, FieldChange, FieldView, ItemSummary, ItemView


def item_json(item: "ItemSummary") -> dict[str, object]:
    """An item as a program reads it."""
    return record(item, priority=record(item.priority))


def view_json(view: "ItemView") -> dict[str, object]:
    """An item with its fields, likewise."""
    return {
        "item": item_json(view.item),
        "fields": [record(each) for each in view.fields],
        "checks": list(view.checks),
        "missing": list(view.missing),
        "addable": list(view.addable),
        "supersedes": list(view.supersedes),
    }


def item_table(items: "Sequence[ItemSummary]", now: datetime) -> None:
    """Many items, a line each, called as people call them: by their files. With little room, an id stands there only
    where files of one name would be taken for each other."""
    narrow = is_narrow()
    alike = len({item.file_name for item in items}) < len(items)
    ids = short_ids([item.id for item in items]) if narrow else [item.id for item in items]
    columns: dict[str, list[str | Text]] = {
        "FILE": [item.file_name for item in items],
        "STATUS": [styled(item.status.value) for item in items],
        "PRIORITY": [f"{item.priority.priority:.2f}" for item in items],
        "TO LOOK AT": [f"{item.fields_to_review} of {item.fields_total}" for item in items],
        "DUE": [_left(item, now) if narrow else _due(item) for item in items],
        "WHO": [_holder(item) or _given(item) or item.decided_by_name or "" for item in items],
        "SCHEMA": [] if narrow else [item.schema for item in items],
        "ITEM": [] if narrow and not alike else list(ids),
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    print_table(list(shown), list(zip(*shown.values(), strict=True)), give_way=("FILE", "SCHEMA", "WHO"))
    if narrow:
        note_left_out([head for head in ("SCHEMA", "ITEM") if head not in shown])


def _left(item: "ItemSummary", now: datetime) -> str:
    """How long until an item is due, or how late it is."""
    if item.due_at is None or item.decided_at is not None:
        return ""
    late, minutes = item.due_at <= now, round(abs((item.due_at - now).total_seconds()) / 60)
    hours = minutes // 60
    length = f"{minutes} min" if minutes < 100 else f"{hours} h" if hours < 48 else f"{hours // 24} d"
    return f"{length} late" if late else f"in {length}"


def _holder(item: "ItemSummary") -> str | None:
    return item.claimed_by_name or item.claimed_by


def _given(item: "ItemSummary") -> str | None:
    return item.assigned_to_name or item.assigned_to


def stands(item: "ItemSummary") -> str:
    """Where an item stands now, in a line."""
    who = f" by {_holder(item)}" if item.claimed_by else ""
    if item.superseded_by:
        return f"{printable(item.file_name)} (item {item.id}) was superseded by item {item.superseded_by}."
    given = f", assigned to {_given(item)}" if item.assigned_to else ""
    later = f", postponed until {when(item.postponed_until)}" if item.postponed_until else ""
    left = f" {item.fields_to_review} of its {item.fields_total} fields need a look." if not item.decided_at else ""
    return f"{printable(item.file_name)} (item {item.id}) is {item.status}{who}{given}{later}.{left}"


def details(view: "ItemView") -> None:
    """One item with all its fields."""
    item, parts = view.item, view.item.priority
    made_of = (
        f"{parts.priority:.3f} (doubt {parts.doubt:.2f}, time {parts.proximity:.2f}, "
        f"complexity {parts.complexity:.2f}, value {parts.value:.2f})"
    )
    told = {
        "file": item.file_name,
        "item": item.id,
        "document": item.document_id,
        "status": f"{item.status}, version {item.version}" + (f", round {item.round}" if item.round > 1 else ""),
        "schema": item.schema,
        "priority": made_of,
        "due": _due(item),
        "assigned to": _given(item),
        "claimed by": item.claimed_by and f"{_holder(item)} until {when(item.claim_expires_at)}",
        "postponed": when(item.postponed_until),
        "decided by": item.decided_by and f"{item.decided_by_name or item.decided_by}, {when(item.decided_at)}",
        "reason": item.reason,
        "superseded": item.superseded_by and f"by item {item.superseded_by}: the same bytes were read anew",
        "supersedes": ", ".join(view.supersedes),
        "missing": ", ".join(view.missing),
    }
    for name, value in told.items():
        if value:
            print(f"{name:<12} {printable(str(value))}")
    if view.fields:
        print()
        heads = ("FIELD", "VALUE", "SURE", "", "WHERE", "FAILED", "NOW READ AS")
        rows = [_row(each) for each in view.fields]
        # A column in which nothing stands takes no room from the values.
        used = [place for place in range(len(heads)) if any(row[place] for row in rows)]
        cells = [[row[place] for place in used] for row in rows]
        print_table([heads[place] for place in used], cells, give_way=("VALUE", "NOW READ AS", "FAILED"))
    broken = [each for each in view.checks if not each["passed"]]
    if broken:
        print()
        print_table(("CHECK", "FOUND"), [(each["name"], each["message"]) for each in broken], give_way=("FOUND",))


def failing_shown(view: "ItemView") -> None:
    """What still fails, on stderr: what a person fixed needs no look any more, and may be wrong all the same."""
    fixed = {each.path.partition("[")[0] for each in view.fields if each.locked}
    for check in view.checks:
        if not check["passed"]:
            locked = [name for name in check["fields"] if name in fixed]
            told = f" Locked as they are: {', '.join(locked)}." if locked else ""
            print(printable(f"note: {check['name']} fails: {check['message']}{told}"), file=sys.stderr)


def _row(each: "FieldView") -> "tuple[str | Text, ...]":
    state = "" if each.state is FieldState.EXTRACTED else each.state.value
    mark = styled("look") if each.needs_review else styled(state)
    sure = "" if each.confidence is None else percent(each.confidence)
    where = f"page {each.evidence[0]['page']}" if each.evidence else ""
    proposed = ("(nothing)" if each.proposed is None else each.proposed) if each.differs else ""
    value = "(nothing)" if each.value is None else each.value
    return each.path, value, sure, mark, where, ", ".join(each.failed), proposed


def _due(item: "ItemSummary") -> str:
    if item.due_at is None:
        return ""
    late = item.sla_state if item.sla_state in (SlaState.AT_RISK, SlaState.OVERDUE) and not item.decided_at else ""
    return f"{when(item.due_at)} {late}".strip()


def comments_shown(said: "Sequence[Comment]") -> None:
    """What people said about an item."""
    if said:
        print()
        rows = [(when(each.at), each.by_name, each.path or "", each.body) for each in said]
        print_table(("WHEN", "WHO", "FIELD", "COMMENT"), rows, give_way=("COMMENT",))


def history_table(told: "Sequence[FieldChange]") -> None:
    """What people did to fields."""

    def shown(state: object) -> str:
        value = state.get("value") if isinstance(state, dict) else None
        return "(nothing)" if value is None else str(value)

    rows = [
        (when(each.at), each.by_name, each.action, each.path, shown(each.before), shown(each.after)) for each in told
    ]
    print_table(("WHEN", "WHO", "ACTION", "FIELD", "BEFORE", "AFTER"), rows, give_way=("BEFORE", "AFTER"))
