"""What changed between two plans, step by step: as data for programs, in words for people.

Two plans without a difference have the same digest, and the other way round.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

from docmill.templates.document import Document, document_from_plan
from docmill.templates.plan import ALL_PREVIOUS, Plan
from docmill.templates.times import written

_LENGTHS = frozenset({"timeout", "backoff", "delay"})
_WIDEST = 60


class Kind(StrEnum):
    """How something differs."""

    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference."""

    kind: Kind
    step_key: str | None
    """None: of the template itself."""
    field: str | None = None
    """Which field changed, dotted for what lies inside one (`model_config.temperature`); None for a whole step."""
    old: object = None
    new: object = None

    def __str__(self) -> str:
        what = self.step_key or "template"
        match self.kind:
            case Kind.ADDED if self.field is None:
                return f"{what}: added, {self.new}"
            case Kind.REMOVED if self.field is None:
                return f"{what}: removed, was {self.old}"
            case Kind.MOVED if self.field == "group":
                return f"{what}: moved from group {self.old} to group {self.new}"
            case Kind.MOVED:
                return f"{what}: {self.field} {_listed(self.old)} -> {_listed(self.new)}"
            case Kind.ADDED:
                return f"{what}: {self.field} added: {_shown(self.field, self.new)}"
            case Kind.REMOVED:
                return f"{what}: {self.field} removed, was {_shown(self.field, self.old)}"
            case Kind.CHANGED:
                return f"{what}: {self.field} {_shown(self.field, self.old)} -> {_shown(self.field, self.new)}"
            case other:
                assert_never(other)


def compare(old: Plan, new: Plan) -> tuple[Change, ...]:
    """Every difference: of the template itself first, then by step in running order, removed steps last."""
    before, after = document_from_plan(old), document_from_plan(new)
    return (*_of_template(before, after), *_of_steps(before, after), *_of_order(before, after))


def _of_template(before: Document, after: Document) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        if name not in ("steps", "format"):
            yield from _of_field(None, name, before.get(name), after.get(name))


def _of_steps(before: Document, after: Document) -> Iterator[Change]:
    olds = {step["step_key"]: step for step in before["steps"]}
    news = {step["step_key"]: step for step in after["steps"]}
    for key, step in news.items():
        if key not in olds:
            yield Change(kind=Kind.ADDED, step_key=key, new=_summary(step))
            continue
        for name in step:
            if name == "group" and olds[key][name] != step[name]:
                yield Change(kind=Kind.MOVED, step_key=key, field=name, old=olds[key][name], new=step[name])
            elif name != "group":
                yield from _of_field(key, name, olds[key][name], step[name])
    for key, step in olds.items():
        if key not in news:
            yield Change(kind=Kind.REMOVED, step_key=key, old=_summary(step))


def _of_field(step_key: str | None, name: str, old: object, new: object) -> Iterator[Change]:
    """Inside a mapping each key counts for itself, so that one changed setting is one change."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            if key not in old:
                yield Change(kind=Kind.ADDED, step_key=step_key, field=f"{name}.{key}", new=new[key])
            elif key not in new:
                yield Change(kind=Kind.REMOVED, step_key=step_key, field=f"{name}.{key}", old=old[key])
            else:
                yield from _of_field(step_key, f"{name}.{key}", old[key], new[key])
    elif _canonical(old) != _canonical(new):
        yield Change(kind=Kind.CHANGED, step_key=step_key, field=name, old=old, new=new)


def _canonical(value: object) -> str:
    """As the digest sees it, to whom 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True)


def _of_order(before: Document, after: Document) -> Iterator[Change]:
    """Steps that stayed in their group and changed places there."""
    olds = {step["step_key"]: step["group"] for step in before["steps"]}
    news = {step["step_key"]: step["group"] for step in after["steps"]}
    for group in sorted(set(news.values())):
        old = [key for key in olds if olds[key] == news.get(key) == group]
        new = [key for key in news if news[key] == olds.get(key) == group]
        if old != new:
            yield Change(kind=Kind.MOVED, step_key=None, field=f"order in group {group}", old=old, new=new)


def _summary(step: Document) -> str:
    """The step in a few words."""
    needs = step["depends_on"]
    after = "all previous steps" if needs == ALL_PREVIOUS else ", ".join(needs)
    return f"group {step['group']}, {step['kind']} {step['type']}" + (f", after {after}" if after else "")


def _listed(keys: Any) -> str:
    return ", ".join(keys)


def _shown(field: str | None, value: object) -> str:
    """A value as the template would say it, cut when it is long."""
    if value is None or value == [] or value == "":
        return "none"
    if field in _LENGTHS and isinstance(value, int | float):
        return written(value)
    match field, value:
        case "processor_method", list():
            text = ", ".join(choice["method"] + (f" if {choice['when']}" if choice["when"] else "") for choice in value)
        case _, bool():
            text = str(value).lower()
        case "depends_on", list():
            text = ", ".join(value)
        case _:
            text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
