"""Fields of a schema of one's own that mean what fields of a shipped schema mean: those can be read as well as these.

A name or an alias tells: `vendor` is the `seller_name` of an invoice. A field whose own labels are all others means
something of its own, whatever it is called.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from docmill.extraction.checks import problem
from docmill.extraction.result import Extraction, FieldValue
from docmill.extraction.schema import Field, FieldSchema, Table, load_schema
from docmill.extraction.values.canonical import canonical
from docmill.extraction.values.kinds import DECIMALS, FieldType
from docmill.extraction.values.texts import bare

KINDS = ("receipt", "invoice")
"""Shipped schemas that the local reader has learned."""
_AS = "as_"
"""With the name of one of these: a signal of values that its reader found, so that its calibration holds for them."""
_CODES = frozenset({FieldType.IDENTIFIER, FieldType.TAX_ID, FieldType.IBAN, FieldType.BIC, FieldType.CURRENCY})
Row = Mapping[str, FieldValue]


@cache
def standard(name: str) -> FieldSchema:
    """A shipped schema; `load_schema` looks at the folder each time."""
    return load_schema(name)


@lru_cache(maxsize=64)
def counterparts(schema: FieldSchema, shipped: FieldSchema) -> Mapping[str, str]:
    """By the name of a field or table here: the name it has in the shipped schema."""
    own: dict[str, Field | Table] = {**schema.fields, **schema.tables}
    found = {name: name for name in own if name in shipped.fields or name in shipped.tables}
    for name, part in own.items():
        meant = next((there for alias in (name, *part.aliases) if (there := shipped.resolve(alias))), None)
        # Of two fields that could be the same one, the first is it: values are not given twice.
        if meant is not None and name not in found and meant not in found.values():
            found[name] = meant
    return {name: there for name, there in found.items() if (name in schema.fields) == (there in shipped.fields)}


def called(schema: FieldSchema, name: str) -> str | None:
    """What a field or table of the shipped schema `invoice` is called in this one; None if it has none."""
    if own := schema.resolve(name):
        return own
    found = counterparts(schema, standard("invoice"))
    return next((own for own, there in found.items() if there == name), None)


def column_called(name: str, columns: Mapping[str, Field], shipped: Mapping[str, Field]) -> Field | None:
    """The column that means what this column of a shipped table means: by name, alias, or a label as its name."""
    if name in columns:
        return columns[name]
    words = {bare(label) for label in shipped[name].labels} if name in shipped else set()
    for column in columns.values():
        names = (column.name, *column.aliases)
        if name in names or (column.name not in shipped and words & {bare(one.replace("_", " ")) for one in names}):
            return column
    return None


def known_as(extraction: Extraction, schema: FieldSchema) -> dict[str, tuple[str, str]]:
    """By the name of a field here: the shipped schema and the field by whose calibration it is judged."""
    found = {}
    for name, value in extraction.fields.items():
        for kind in KINDS:
            if _AS + kind in value.signals:
                found[name] = (kind, counterparts(schema, standard(kind)).get(name, name))
    return found


def lent(own: Extraction, learned: Extraction, schema: FieldSchema, shipped: FieldSchema) -> Extraction:
    """What was found by the schema's own labels, with what the learned reader knows better."""
    fields, rows = dict(own.fields), dict(own.rows)
    for name, there in counterparts(schema, shipped).items():
        if name in schema.tables:
            asked, known = schema.tables[name].columns, shipped.tables[there].columns
            columns = _columns(asked, known)
            table = [_row(row, columns, known) for row in learned.rows.get(there, ())]
            # With a column that nobody has learned, rows by their heads say more.
            if any(table) and (len(columns) == len(asked) or not rows.get(name)):
                rows[name] = table
        elif there in learned.fields and _same_meaning(schema.fields[name], shipped.fields[there]):
            taken = _taken(learned.fields[there], schema.fields[name], shipped.fields[there])
            taken = taken and replace(taken, signals={**taken.signals, _AS + shipped.name: 1.0})
            if taken is not None and not _better(fields.get(name), taken, schema.fields[name]):
                fields[name] = taken
    ordered = {name: fields[name] for name in schema.fields if name in fields}
    return replace(own, fields=ordered, rows=rows, notes=tuple(dict.fromkeys((*own.notes, *learned.notes))))


def _same_meaning(own: Field, shipped: Field) -> bool:
    return not own.labels or not {bare(label) for label in own.labels}.isdisjoint(map(bare, shipped.labels))


def _better(own: FieldValue | None, taken: FieldValue, field: Field) -> bool:
    """Whether the schema's own value keeps what is asked of the field, and the other does not."""
    return own is not None and problem(field, taken.value) is not None and problem(field, own.value) is None


def _taken(found: FieldValue, field: Field, shipped: Field) -> FieldValue | None:
    """The value in the form of the field here; None if that is of another kind."""
    if not (
        field.type is shipped.type
        or (field.type is FieldType.TEXT and shipped.type in _CODES)
        or (field.type is FieldType.IDENTIFIER and shipped.type is FieldType.TAX_ID)
        or (field.type is FieldType.ENUM and shipped.type in _CODES)
        or (field.type in DECIMALS and shipped.type in DECIMALS)
    ):
        return None
    value = found.value if field.type is shipped.type else canonical(field.type, found.value, words=field.enum)
    return None if value is None else replace(found, value=value)


def _columns(own: Mapping[str, Field], there: Mapping[str, Field]) -> dict[str, Field]:
    """By the name of a shipped column: the one here."""
    return {name: column for name in there if (column := column_called(name, own, there))}


def _row(row: Row, columns: Mapping[str, Field], there: Mapping[str, Field]) -> Row:
    cells = {
        columns[name].name: _taken(found, columns[name], there[name]) for name, found in row.items() if name in columns
    }
    return {name: found for name, found in cells.items() if found is not None}
