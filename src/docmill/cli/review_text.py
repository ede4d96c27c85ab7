"""Review items as people read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from docmill.cli.output import print_table, printable, record, styled, when
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
    }


def item_table(items: "Sequence[ItemSummary]") -> None:
    """Many items, a line each."""
    rows = [
        (
            item.id,
            styled(item.status.value),
            f"{item.priority.priority:.2f}",
            item.file_name,
            item.schema,
            f"{item.fields_to_review}/{item.fields_total}",
            _due(item),
            _holder(item) or _given(item) or "",
        )
        for item in items
    ]
    heads = ("ITEM", "STATUS", "PRIORITY", "FILE", "SCHEMA", "TO LOOK AT", "DUE", "WHO")
    print_table(heads, rows, give_way=("FILE", "SCHEMA", "WHO"))


def _holder(item: "ItemSummary") -> str | None:
    return item.claimed_by_name or item.claimed_by


def _given(item: "ItemSummary") -> str | None:
    return item.assigned_to_name or item.assigned_to


def stands(item: "ItemSummary") -> str:
    """Where an item stands now, in a line."""
    who = f" by {_holder(item)}" if item.claimed_by else ""
    given = f", assigned to {_given(item)}" if item.assigned_to else ""
    later = f", postponed until {when(item.postponed_until)}" if item.postponed_until else ""
    left = f" {item.fields_to_review} of its {item.fields_total} fields need a look." if not item.decided_at else ""
    return f"Item {item.id} is {item.status}{who}{given}{later}.{left}"


def details(view: "ItemView") -> None:
    """One item with all its fields."""
    item, parts = view.item, view.item.priority
    made_of = (
        f"{parts.priority:.3f} (doubt {parts.doubt:.2f}, time {parts.proximity:.2f}, "
        f"complexity {parts.complexity:.2f}, value {parts.value:.2f})"
    )
    told = {
        "item": item.id,
        "document": f"{item.document_id}  {item.file_name}",
        "status": f"{item.status}, version {item.version}" + (f", round {item.round}" if item.round > 1 else ""),
        "schema": item.schema,
        "priority": made_of,
        "due": _due(item),
        "assigned to": _given(item),
        "claimed by": item.claimed_by and f"{_holder(item)} until {when(item.claim_expires_at)}",
        "postponed": when(item.postponed_until),
        "decided by": item.decided_by and f"{item.decided_by_name or item.decided_by}, {when(item.decided_at)}",
        "reason": item.reason,
        "missing": ", ".join(view.missing),
    }
    for name, value in told.items():
        if value:
            print(f"{name:<12} {printable(str(value))}")
    if view.fields:
        print()
        heads = ("FIELD", "VALUE", "SURE", "", "WHERE", "FAILED", "NOW READ AS")
        print_table(heads, [_row(each) for each in view.fields], give_way=("VALUE", "NOW READ AS", "FAILED"))
    broken = [each for each in view.checks if not each["passed"]]
    if broken:
        print()
        print_table(("CHECK", "FOUND"), [(each["name"], each["message"]) for each in broken], give_way=("FOUND",))


def _row(each: "FieldView") -> "tuple[str | Text, ...]":
    state = "" if each.state is FieldState.EXTRACTED else each.state.value
    mark = styled("look") if each.needs_review else styled(state)
    sure = "" if each.confidence is None else f"{each.confidence:.0%}"
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
