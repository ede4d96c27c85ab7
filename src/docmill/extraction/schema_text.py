"""The YAML of a field schema, read and checked: every fault at once, each with its place and its remedy.

Reading and faults are those of templates: plain data only, no tags, bounded size, depth and aliases.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from functools import lru_cache

from docmill.extraction.rules import Rule, UnknownName, names_in, parse_rule
from docmill.extraction.schema import THRESHOLD, Field, FieldSchema, Table, content_version
from docmill.extraction.values.kinds import DECIMALS, FieldType
from docmill.model.errors import PermanentError
from docmill.templates.faults import SHOWN, Fault, Faults, Mark
from docmill.templates.fields import Fields, plain
from docmill.templates.source import BrokenNode, MappingNode, Node, ScalarNode, load
from docmill.templates.syntax import SyntaxFault

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NAME_RULE = "names are lower case letters, digits and _, beginning with a letter, at most 63"
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAX_FIELDS = 500
_MAX_PATTERN = 1000
_PATTERN_MEMORY = 8 << 20
_SCHEMA_KEYS = ("name", "title", "description", "fields", "tables", "rules", "tolerance", "threshold")
_SHARED_KEYS = ("title", "description", "labels", "aliases", "threshold", "required")
_FIELD_KEYS = (*_SHARED_KEYS, "type", "pattern", "enum", "minimum", "maximum", "printed", "phrases")
_TABLE_KEYS = (*_SHARED_KEYS, "columns")
_RULE_KEYS = ("holds", "tolerance", "message")
_HALVES = re.compile("[\ud800-\udfff]")


class SchemaInvalid(PermanentError):
    """The field schema was refused; `faults` lists everything to mend, in the order of the file."""

    code = "schema_invalid"

    def __init__(self, source: str, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        lines = [f"{source}: {len(faults)} fault{'' if len(faults) == 1 else 's'} in this field schema."]
        lines += [f"  {fault}" for fault in faults[:SHOWN]]
        if len(faults) > SHOWN:
            lines.append(f"  … and {len(faults) - SHOWN} more; mend these first.")
        super().__init__("\n".join(lines), source=source, faults=[asdict(fault) for fault in faults])


def parse_schema(text: str, *, source: str = "schema", name: str | None = None) -> FieldSchema:
    """The schema that a YAML text describes; SchemaInvalid with every fault. `name` is used if the text has none."""
    faults = Faults(what="field schema")
    root = load(text, faults)
    schema = None
    if isinstance(root, MappingNode):
        schema = _Reader(root, faults, name).schema()
    elif root is not None and not isinstance(root, BrokenNode):
        faults.add(root.mark, "", "wrong_type", "A field schema is a mapping; write 'fields:' and list them below.")
    if faults or schema is None:
        raise SchemaInvalid(source, faults.listed())
    return schema


class _Reader:
    """Reads one schema."""

    def __init__(self, root: MappingNode, faults: Faults, name: str | None) -> None:
        self._faults = faults
        self._root = root
        self._name = name
        self._top = Fields(root, "", faults, known=_SCHEMA_KEYS, what="a field schema")
        self._taken: dict[str, str] = {}

    def schema(self) -> FieldSchema:
        top = self._top
        name = top.pattern("name", _FILE_NAME, "use letters, digits, '-', '_' and '.'") or self._name or "schema"
        threshold = self._share(top, "threshold", THRESHOLD)
        if top.get("fields") is None:
            top.require("fields", "a schema lists its fields below it")
        fields = self._fields("fields", threshold)
        tables = self._tables(threshold)
        if not self._faults and not fields and not tables:
            top.fault("fields", "missing_key", "A schema has at least one field or table, such as `total: amount`.")
        tolerance = self._tolerance(top)
        return FieldSchema(
            name=name,
            version=content_version(plain(self._root)),
            title=top.text("title") or _title(name),
            description=top.text("description", limit=4000) or "",
            fields=fields,
            tables=tables,
            rules=self._rules(fields, tables),
            tolerance=Decimal("0.02") if tolerance is None else tolerance,
        )

    def _fields(self, key: str, threshold: float) -> dict[str, Field]:
        node = self._top.mapping(key)
        found = {}
        for name, path, part in self._named(node, key):
            if field := self._field(name, path, part, threshold):
                found[name] = field
                self._claim(name, field.aliases, path, part.mark)
        return found

    def _named(self, node: MappingNode | None, path: str) -> list[tuple[str, str, Node]]:
        """The entries of a mapping of names, those with impossible names left out."""
        found: list[tuple[str, str, Node]] = []
        if node is None:
            return found
        if len(node.entries) > _MAX_FIELDS:
            self._faults.add(node.mark, path, "too_large", f"More than {_MAX_FIELDS} entries; split the schema.")
            return found
        for name, entry in node.entries.items():
            if not _NAME.fullmatch(name):
                self._faults.add(
                    entry.key_mark, f"{path}.{name[:80]}", "bad_name", f"'{name[:80]}' is not a name; {_NAME_RULE}."
                )
            elif not isinstance(entry.value, BrokenNode):
                found.append((name, f"{path}.{name}", entry.value))
        return found

    def _claim(self, name: str, aliases: tuple[str, ...], path: str, mark: Mark) -> None:
        """A name or an alias means one field."""
        for word in (name, *aliases):
            other = self._taken.setdefault(word.casefold(), name)
            if other != name:
                self._faults.add(
                    mark, path, "duplicate_key", f"'{word}' already means {other}; an alias belongs to one field."
                )

    def _field(self, name: str, path: str, node: Node, threshold: float) -> Field | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            # `total: amount` for short.
            node = _short(node)
        if not isinstance(node, MappingNode):
            self._faults.add(node.mark, path, "wrong_type", f"Write the type, as in `{name}: text`, or keys below it.")
            return None
        part = Fields(node, path, self._faults, known=_FIELD_KEYS, what="a field")
        kind = part.choice("type", FieldType)
        if kind is None:
            part.require("type", f"one of {', '.join(FieldType)}")
            return None
        enum = self._words(part, "enum")
        if kind is FieldType.ENUM and not enum:
            part.fault("enum", "missing_key", "A field of type enum lists its words: `enum: [cash, card]`.")
        if enum and kind not in (FieldType.ENUM, FieldType.TEXT, FieldType.CURRENCY, FieldType.IDENTIFIER):
            part.fault("enum", "bad_choice", f"A field of type {kind} has no list of words; use type enum.")
        low, high = self._decimal(part, "minimum"), self._decimal(part, "maximum")
        for key, limit in (("minimum", low), ("maximum", high)):
            if limit is not None and kind not in DECIMALS:
                part.fault(key, "bad_choice", f"A field of type {kind} has no {key}; only numbers have.")
        if low is not None and high is not None and low > high:
            part.fault("minimum", "bad_number", f"The minimum {low} is above the maximum {high}.")
        return Field(
            name=name,
            type=kind,
            title=part.text("title") or _title(name),
            labels=self._words(part, "labels"),
            phrases=self._words(part, "phrases"),
            aliases=self._words(part, "aliases"),
            pattern=self._pattern(part),
            enum=enum,
            minimum=low,
            maximum=high,
            threshold=self._share(part, "threshold", threshold),
            required=part.flag("required", False),
            printed=part.flag("printed", True),
            description=part.text("description", limit=4000) or "",
        )

    def _tables(self, threshold: float) -> dict[str, Table]:
        found = {}
        for name, path, node in self._named(self._top.mapping("tables"), "tables"):
            if not isinstance(node, MappingNode):
                self._faults.add(node.mark, path, "wrong_type", "A table lists its columns below 'columns:'.")
                continue
            part = Fields(node, path, self._faults, known=_TABLE_KEYS, what="a table")
            part.require("columns", "a table lists its columns below it")
            own = self._share(part, "threshold", threshold)
            columns = {}
            for column, place, below in self._named(part.mapping("columns"), part.at("columns")):
                if field := self._field(column, place, below, own):
                    columns[column] = field
            aliases = self._words(part, "aliases")
            self._claim(name, aliases, path, node.mark)
            found[name] = Table(
                name=name,
                title=part.text("title") or _title(name),
                columns=columns,
                labels=self._words(part, "labels"),
                aliases=aliases,
                required=part.flag("required", False),
                threshold=own,
                description=part.text("description", limit=4000) or "",
            )
        return found

    def _rules(self, fields: Mapping[str, Field], tables: Mapping[str, Table]) -> tuple[Rule, ...]:
        kinds = {name: field.type for name, field in fields.items()}
        columns = {
            name: {column: field.type for column, field in table.columns.items()} for name, table in tables.items()
        }
        found = []
        for name, path, node in self._named(self._top.mapping("rules"), "rules"):
            if isinstance(node, ScalarNode) and isinstance(node.value, str):
                node = _short(node, key="holds")
            if not isinstance(node, MappingNode):
                self._faults.add(node.mark, path, "wrong_type", "Write the rule, as in `subtotal + tax == total`.")
                continue
            part = Fields(node, path, self._faults, known=_RULE_KEYS, what="a rule")
            part.require("holds", "write what must hold, as in `subtotal + tax == total`")
            text = part.text("holds", limit=4000)
            if text is None:
                continue
            try:
                tree = parse_rule(text, kinds=kinds, tables=columns)
            except SyntaxFault as fault:
                hint = self._faults.suggest(fault.name, [*kinds, *columns]) if isinstance(fault, UnknownName) else ""
                part.fault("holds", "bad_expression", f"`{text[:120]}`: {fault.message}{hint}")
                continue
            found.append(
                Rule(
                    name=name,
                    holds=text,
                    node=tree,
                    fields=names_in(tree),
                    tolerance=self._tolerance(part),
                    message=part.text("message", limit=500),
                )
            )
        return tuple(found)

    def _words(self, part: Fields, key: str) -> tuple[str, ...]:
        """A list of texts; numbers are read as they are written."""
        node = part.get(key)
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            return (node.value,)
        found = []
        for path, item in part.items(key, what="a list of words, such as [invoice no, number]"):
            if isinstance(item, ScalarNode) and item.value is not None and not isinstance(item.value, bool):
                found.append(item.text.strip())
            elif not isinstance(item, BrokenNode):
                part.wrong_type(item, path, "a word", "quote it if it is meant as text")
        return tuple(dict.fromkeys(word for word in found if word))

    def _pattern(self, part: Fields) -> str | None:
        text = part.text("pattern", limit=_MAX_PATTERN)
        if text is None:
            return None
        if problem := pattern_problem(text):
            part.fault("pattern", "bad_expression", f"'{text[:80]}' is not a pattern of RE2: {problem}.")
            return None
        return text

    def _decimal(self, part: Fields, key: str) -> Decimal | None:
        node = part.get(key)
        if node is None:
            return None
        if isinstance(node, ScalarNode) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return Decimal(str(node.value))
        part.wrong_type(node, part.at(key), "a number", "write it without quotes, as in 0.02")
        return None

    def _tolerance(self, part: Fields) -> Decimal | None:
        found = self._decimal(part, "tolerance")
        if found is not None and found < 0:
            part.fault("tolerance", "bad_number", f"{found} is out of range; write at least 0.")
            return None
        return found

    def _share(self, part: Fields, key: str, default: float) -> float:
        found = self._decimal(part, key)
        if found is None:
            return default
        if not 0 <= found <= 1:
            part.fault(key, "bad_number", f"{found} is out of range; write a number from 0 to 1.")
            return default
        return float(found)


def pattern_problem(text: str) -> str | None:
    """Why RE2 refuses a pattern; None if it does not."""
    try:
        compiled(text)
    except _re2_error() as error:
        said = error.args[0] if error.args else "it cannot be compiled"
        return str(said.decode() if isinstance(said, bytes) else said)
    return None


@lru_cache(maxsize=256)
def compiled(text: str) -> "re.Pattern[str]":
    """A user's pattern, compiled by RE2: linear time whatever it says and whatever it is matched with."""
    import re2

    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    found: re.Pattern[str] = re2.compile(text, options)
    return found


def matches(pattern: str, value: str) -> bool:
    """Whether a whole value matches a user's pattern."""
    return bool(compiled(pattern).fullmatch(encodable(value)))


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs replaced, one for one: RE2 works on UTF-8 and refuses them."""
    return _HALVES.sub("\ufffd", text)


def _re2_error() -> type[Exception]:
    import re2

    error: type[Exception] = re2.error
    return error


def _short(node: ScalarNode, key: str = "type") -> MappingNode:
    """A bare value as the mapping it stands for."""
    from docmill.templates.source import Entry

    entry = Entry(key_mark=node.mark, value=node)
    return MappingNode(mark=node.mark, entries={key: entry}, weight=node.weight, depth=1)


def _title(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").capitalize()
