"""Checks: each value against its field, and the values against one another.

A rule that needs a value which was not found is unchecked: it neither speaks for a value nor against it.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date
from decimal import Decimal

from docmill.extraction import rules
from docmill.extraction.lacking import lacking
from docmill.extraction.result import Check, Extraction, FieldValue, Unchecked
from docmill.extraction.schema import Field, FieldSchema
from docmill.extraction.schema_text import matches
from docmill.extraction.values.canonical import is_canonical
from docmill.extraction.values.kinds import DECIMALS, FieldType

TYPE, PATTERN, ENUM, RANGE, REQUIRED = "type", "pattern", "enum", "range", "required"
OF_FIELDS = (TYPE, PATTERN, ENUM, RANGE, REQUIRED)
"""Names of the checks of single fields; all others are those of rules."""

SUMMARY = "summary"
"""A signal of a cell whose amount is made of other rows' (a group of lines): it counts as nothing in sums."""

MADE_OF_MORE = "made_of_more"
"""A signal of a value that its document makes of something which no field holds: a rule that it breaks may hold."""


def check(extraction: Extraction, schema: FieldSchema, *, tolerance: Decimal | None = None) -> Extraction:
    """The extraction with the schema's checks made, in the checks of the document and of each value.

    Checks that were made by others stay; those of the schema are made anew, so a corrected value is judged afresh.
    `tolerance` replaces that of the schema, not those that rules name themselves.
    """
    own = {*OF_FIELDS, *(rule.name for rule in schema.rules)}
    judged = [*_of_rules(extraction, schema, tolerance)]
    made = [*_of_fields(extraction, schema), *(one for one in judged if isinstance(one, Check))]
    unchecked = tuple(one for one in judged if isinstance(one, Unchecked))
    fields = {
        name: _judged(value, own, [(one.name, one.passed) for one in made if name in one.fields])
        for name, value in extraction.fields.items()
    }
    broken = _broken_columns(schema, {one.name for one in made if not one.passed})
    rows = {
        name: [
            _row_judged(row, schema.tables[name].columns, own, broken.get(name, {})) if name in schema.tables else row
            for row in table
        ]
        for name, table in extraction.rows.items()
    }
    others = tuple(one for one in extraction.checks if one.name not in own)
    # What a single field keeps is not worth a line of its own; what it breaks is.
    told = [one for one in made if not one.passed or one.name not in (TYPE, REQUIRED)]
    return replace(extraction, fields=fields, rows=rows, checks=(*others, *told), unchecked=unchecked)


def problem(field: Field, value: str) -> tuple[str, str] | None:
    """The first check that a value of this field breaks, and why; None if it breaks none."""
    return next(
        ((name, _said(name, field, value, passed)) for name, passed in _outcomes(field, value) if not passed), None
    )


def _of_fields(extraction: Extraction, schema: FieldSchema) -> Iterable[Check]:
    for name, field in schema.fields.items():
        found = extraction.fields.get(name)
        if found is not None:
            for kind, passed in _outcomes(field, found.value):
                message = _said(kind, field, found.value, passed)
                yield Check(name=kind, passed=passed, message=message, fields=(name,))
        elif field.required:
            yield Check(name=REQUIRED, passed=False, message=f"{field.title} was not found.", fields=(name,))
    for name, table in schema.tables.items():
        if table.required and not extraction.rows.get(name):
            yield Check(name=REQUIRED, passed=False, message=f"{table.title}: no rows were found.", fields=(name,))


def _outcomes(field: Field, value: str) -> list[tuple[str, bool]]:
    """Name and outcome of each check that this value of this field can be put to."""
    right = is_canonical(field.type, value)
    found = [(TYPE, right)]
    if field.pattern:
        found.append((PATTERN, matches(field.pattern, value)))
    if field.enum:
        found.append((ENUM, value.casefold() in {word.casefold() for word in field.enum}))
    if right and field.type in DECIMALS and not (field.minimum is None and field.maximum is None):
        number, low, high = Decimal(value), field.minimum, field.maximum
        found.append((RANGE, (low is None or number >= low) and (high is None or number <= high)))
    return found


def _said(check: str, field: Field, value: str, passed: bool) -> str:
    """The outcome in a sentence; for a cell of a table nobody asks, and there are hundreds."""
    match check:
        case "type":
            kind = _SPOKEN.get(field.type, field.type.value)
            return f"{field.title} is a {kind}." if passed else f"{field.title} {value[:80]!r} is not a valid {kind}."
        case "pattern":
            return f"{field.title} {value[:80]!r} {'matches' if passed else 'does not match'} its pattern."
        case "enum":
            return f"{field.title} {value[:80]!r} is {'' if passed else 'not '}one of {', '.join(field.enum)}."
        case _:
            low, high = field.minimum, field.maximum
            limits = f"{'' if low is None else low} … {'' if high is None else high}".strip()
            return f"{field.title} {value} is {'' if passed else 'not '}in the range {limits}."


_SPOKEN = {
    FieldType.TAX_ID: "tax number",
    FieldType.IBAN: "IBAN (length and checksum)",
    FieldType.BIC: "BIC",
    FieldType.CURRENCY: "currency code",
    FieldType.COUNT: "whole number",
    FieldType.ENUM: "word of the list",
}


def _of_rules(extraction: Extraction, schema: FieldSchema, tolerance: Decimal | None) -> Iterable[Check | Unchecked]:
    if not schema.rules:
        return
    known = _known(extraction, schema)
    for rule in schema.rules:
        allowed = rule.tolerance if rule.tolerance is not None else tolerance
        allowed = schema.tolerance if allowed is None else allowed
        kept = rules.holds(rule, known, allowed)
        if kept is None:
            yield _unchecked(rule, lacking(rule, known, allowed), schema)
            continue
        more = () if kept else [name for name in rule.fields if _made_of_more(extraction, name)]
        if more:
            titles = ", ".join(_title(schema, name, None) for name in more)
            message = f"The document does not say all that makes up {titles}."
            yield Unchecked(name=rule.name, message=message, fields=tuple(more))
            continue
        opening = f"{rule.message} " if rule.message and not kept else ""
        message = f"{opening}{'' if kept else 'Here: '}{rules.explain(rule, known, allowed)}."
        # A field that may lack and does (coalesce) has no value to speak for.
        present = tuple(name for name in rule.fields if name in extraction.fields or name in extraction.rows)
        yield Check(name=rule.name, passed=kept, message=message, fields=present)


def _made_of_more(extraction: Extraction, name: str) -> bool:
    found = extraction.fields.get(name)
    return found is not None and bool(found.signals.get(MADE_OF_MORE))


def _unchecked(rule: rules.Rule, needed: Sequence[tuple[str, str | None]], schema: FieldSchema) -> Unchecked:
    titles = [_title(schema, name, column) for name, column in needed]
    told = f"Not found or not readable: {', '.join(titles)}" if titles else "Cannot be computed with the values found"
    return Unchecked(name=rule.name, message=f"{told}.", fields=tuple(dict.fromkeys(name for name, _ in needed)))


def _title(schema: FieldSchema, name: str, column: str | None) -> str:
    title = (schema.fields.get(name) or schema.tables[name]).title
    return title if column is None else f"{title} ({schema.tables[name].columns[column].title})"


def _known(extraction: Extraction, schema: FieldSchema) -> rules.Known:
    fields = {}
    for name, field in schema.fields.items():
        found = extraction.fields.get(name)
        value = None if found is None else _value(field.type, found.value)
        if value is not None:
            fields[name] = value
    columns: dict[str, dict[str, Sequence[Decimal | None]]] = {}
    for name, table in schema.tables.items():
        rows = extraction.rows.get(name) or ()
        columns[name] = {
            column: [_number(row.get(column)) for row in rows]
            for column, field in table.columns.items()
            if field.type in DECIMALS
        }
    counts = {name: len(extraction.rows[name]) for name in schema.tables if name in extraction.rows}
    return rules.Known(fields=fields, columns=columns, rows=counts)


def _value(kind: FieldType, value: str) -> rules.Value | None:
    if not is_canonical(kind, value):
        return None
    if kind in DECIMALS:
        return Decimal(value)
    return date.fromisoformat(value) if kind is FieldType.DATE else value


def _number(found: FieldValue | None) -> Decimal | None:
    if found is None or not is_canonical(FieldType.NUMBER, found.value):
        return None
    return Decimal(0) if found.signals.get(SUMMARY) else Decimal(found.value)


def _judged(value: FieldValue, own: AbstractSet[str], made: Sequence[tuple[str, bool]]) -> FieldValue:
    passed = [name for name in value.passed if name not in own] + [name for name, kept in made if kept]
    failed = [name for name in value.failed if name not in own] + [name for name, kept in made if not kept]
    return value.judged(tuple(dict.fromkeys(passed)), tuple(dict.fromkeys(failed)))


def _broken_columns(
    schema: FieldSchema, failed: AbstractSet[str]
) -> Mapping[str, Mapping[str, Sequence[tuple[str, bool]]]]:
    """By table and column, the rules that its sum breaks: one of the cells is wrong, or one is missing.

    A sum that holds is not told to its cells: it is a signal of theirs already, and there are hundreds.
    """
    found: dict[str, dict[str, list[tuple[str, bool]]]] = {}
    for rule in schema.rules:
        if rule.name in failed:
            for table, column in rules.columns_in(rule.node):
                found.setdefault(table, {}).setdefault(column, []).append((rule.name, False))
    return found


def _row_judged(
    row: Mapping[str, FieldValue],
    columns: Mapping[str, Field],
    own: AbstractSet[str],
    broken: Mapping[str, Sequence[tuple[str, bool]]],
) -> Mapping[str, FieldValue]:
    return {
        name: _judged(
            value,
            own,
            [*(_outcomes(columns[name], value.value) if name in columns else ()), *broken.get(name, ())],
        )
        for name, value in row.items()
    }
