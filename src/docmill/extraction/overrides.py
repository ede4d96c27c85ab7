"""What an installation asks of fields and rules instead of what their schemas ask.

An administrator changes a threshold or switches a rule off in the settings, without a schema of one's own. The schema
that comes out has another version, so results under the old demands are not taken for results under the new ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, TypeVar

from docmill.extraction.schema import Field, FieldSchema, Table, content_version
from docmill.extraction.schema_text import pattern_problem
from docmill.extraction.values.kinds import DECIMALS
from docmill.model.errors import PermanentError

P = TypeVar("P", Field, Table)


class OverridesInvalid(PermanentError):
    """The settings name a field or rule that a schema does not have, or ask the impossible of one."""

    code = "overrides_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOverride:
    """What is asked of one field; None: what its schema asks."""

    threshold: float | None = None
    required: bool | None = None
    pattern: str | None = None
    enum: tuple[str, ...] | None = None
    minimum: Decimal | None = None
    maximum: Decimal | None = None

    def given(self) -> dict[str, Any]:
        """What is asked."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What is asked of all schemas together. Plain data: it goes to children."""

    fields: Mapping[str, Mapping[str, FieldOverride]] = field(default_factory=dict)
    """By schema, then by field; a column is written `line_items.amount`."""
    tolerance: Decimal | None = None
    """Of rules that name none."""
    rules: Mapping[str, bool] = field(default_factory=dict)
    """Off or on, by `name`, or by `schema.name`, which goes first."""

    @property
    def digest(self) -> str:
        """The same as long as the same is asked; empty if nothing is."""
        asked = {
            "fields": {
                schema: {name: _plain(each.given()) for name, each in parts.items()}
                for schema, parts in self.fields.items()
            },
            "tolerance": None if self.tolerance is None else str(self.tolerance),
            "rules": dict(self.rules),
        }
        return content_version(asked) if self.fields or self.rules or self.tolerance is not None else ""


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}


def apply_overrides(schema: FieldSchema, overrides: Overrides | None) -> FieldSchema:
    """The schema as it holds here; OverridesInvalid with everything that does not fit it. Twice is as good as once."""
    if overrides is None or not overrides.digest:
        return schema
    faults = tuple(faults_for(schema, overrides))
    if faults:
        listed = "\n".join(f"  {fault}" for fault in faults)
        raise OverridesInvalid(f"The settings do not fit the schema {schema.name!r}:\n{listed}", schema=schema.name)
    asked = overrides.fields.get(schema.name, {})
    tables = {
        name: replace(
            _changed(table, asked.get(name)),
            columns={column: _changed(part, asked.get(f"{name}.{column}")) for column, part in table.columns.items()},
        )
        for name, table in schema.tables.items()
    }
    tolerance = schema.tolerance if overrides.tolerance is None else overrides.tolerance
    changed = replace(
        schema,
        fields={name: _changed(part, asked.get(name)) for name, part in schema.fields.items()},
        tables=tables,
        rules=tuple(rule for rule in schema.rules if _is_on(rule.name, schema.name, overrides.rules)),
        tolerance=tolerance,
    )
    if all(getattr(changed, part) == getattr(schema, part) for part in ("fields", "tables", "rules", "tolerance")):
        return schema
    return replace(changed, version=content_version([schema.version, overrides.digest]))


def _changed(part: P, override: FieldOverride | None) -> P:
    return part if override is None else replace(part, **override.given())


def _is_on(rule: str, schema: str, switches: Mapping[str, bool]) -> bool:
    return switches.get(f"{schema}.{rule}", switches.get(rule, True))


def faults_for(schema: FieldSchema, overrides: Overrides) -> Iterator[str]:
    """What the settings ask of fields of this schema in vain, each with its place and remedy."""
    columns = {f"{table.name}.{name}": part for table in schema.tables.values() for name, part in table.columns.items()}
    parts: dict[str, Field | Table] = {**schema.fields, **schema.tables, **columns}
    for name, override in overrides.fields.get(schema.name, {}).items():
        place = f"fields.{schema.name}.{name}"
        part = parts.get(name)
        if part is None:
            yield f"{place}: there is no such field.{_meant(name, parts)}"
            continue
        yield from _unfitting(place, part, override)


def _unfitting(place: str, part: Field | Table, override: FieldOverride) -> Iterator[str]:
    if isinstance(part, Table):
        for name in override.given():
            if name not in ("threshold", "required"):
                yield f"{place}.{name}: a table has none; write it for one of its columns."
        return
    if override.pattern is not None and (problem := pattern_problem(override.pattern)):
        yield f"{place}.pattern: {override.pattern[:80]!r} is not a pattern of RE2: {problem}."
    low = part.minimum if override.minimum is None else override.minimum
    high = part.maximum if override.maximum is None else override.maximum
    if (override.minimum is not None or override.maximum is not None) and part.type not in DECIMALS:
        yield f"{place}: minimum and maximum are for numbers, and this is of type {part.type}."
    elif low is not None and high is not None and low > high:
        yield f"{place}: the minimum ({low}) is above the maximum ({high})."
    if override.enum is not None and not override.enum:
        yield f"{place}.enum: it lists nothing, so no value would do."


def _meant(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(known)}."
