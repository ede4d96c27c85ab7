"""The provider that needs neither key nor network: deterministic, free, good for trying out and for tests of templates.

`local:echo` without a schema answers with the prompt. With a schema it fills it in, property by property:

1. A labelled value in the prompt, `name: value` or `name = value` on a line of its own (a JSON object that is part of
   the prompt, one property a line, counts too). Case, blanks, hyphens and underscores in names do not matter.
2. The value is read by the type: the first number of it, `true`/`yes`/`1` or `false`/`no`/`0`, the text, or for an
   array its parts between commas or semicolons.
3. An enum without a label takes its first member that occurs in the prompt as a word.
4. What was not found is left out if it may be; else it becomes `default`, null, or the smallest value of its type.

The gateway checks the outcome as it checks any model's: rules beyond these (patterns, for example) may refuse it. Words
count as tokens; `max_tokens` does not cut it off.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from docmill.model.ai import Answer, ModelCall
from docmill.model.ai_errors import ModelUnknown
from docmill.plugin import provider

# Blanks, not white space: a label without a value must not take the next line for one.
_LABELLED = re.compile(
    r"""^[ \t"'{*-]*([^\W\d][\w .-]{0,60}?)["'*]*[ \t]*[:=][ \t]*(\S.*?)[ \t]*[,}]*[ \t\r]*$""", re.MULTILINE
)
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_DEEPEST = 32
_NOTHING = object()


@provider("local", limited=False)
async def local(call: ModelCall) -> Answer:
    """Echo, or fill the schema in."""
    if call.model != "echo":
        raise ModelUnknown(f"The provider local has no model {call.model!r}; write local:echo.")
    text = call.prompt.strip()
    if call.output_schema is not None:
        text = orjson.dumps(_Filling(call.prompt, call.output_schema).root()).decode()
    return Answer(
        text=text,
        input_tokens=len(call.instructions.split()) + len(call.prompt.split()),
        output_tokens=len(text.split()),
    )


class _Filling:
    """One schema, filled in from one text."""

    def __init__(self, text: str, schema: Mapping[str, Any]) -> None:
        self._text = text
        self._root = schema
        self._labelled: dict[str, str] = {}
        for name, value in _LABELLED.findall(text):
            self._labelled.setdefault(_plain(name), value.strip("\"'"))

    def root(self) -> object:
        return self._value(self._root, None, required=True, depth=0)

    def _value(self, schema: Any, name: str | None, *, required: bool, depth: int) -> Any:
        """The value, or _NOTHING if it may be left out."""
        schema = self._resolved(schema, depth)
        if "const" in schema:
            return schema["const"]
        types = _types(schema)
        found = self._labelled.get(_plain(name)) if name is not None else None
        if "enum" in schema:
            read = self._member(schema["enum"], found)
        elif "object" in types:
            return self._object(schema, required=required, depth=depth)
        else:
            read = _read(schema, types, found) if found is not None else _NOTHING
        if read is not _NOTHING or not required:
            return read
        return self._smallest(schema, types, depth)

    def _object(self, schema: Mapping[str, Any], *, required: bool, depth: int) -> Any:
        needed = schema.get("required", ())
        filled = {}
        for name, inner in schema.get("properties", {}).items():
            value = self._value(inner, name, required=name in needed, depth=depth + 1)
            if value is not _NOTHING:
                filled[name] = value
        return filled if filled or required else _NOTHING

    def _member(self, members: Sequence[Any], found: str | None) -> Any:
        for text in (found, self._text):
            for member in members:
                if text is not None and re.search(rf"(?<!\w){re.escape(str(member))}(?!\w)", text, re.IGNORECASE):
                    return member
        return _NOTHING

    def _smallest(self, schema: Mapping[str, Any], types: Sequence[str], depth: int) -> Any:
        if "default" in schema:
            return schema["default"]
        if "enum" in schema:
            return None if None in schema["enum"] else schema["enum"][0]
        if "null" in types or not types:
            return None
        match types[0]:
            case "string":
                return _string(schema)
            case "integer" | "number":
                return _number(schema)
            case "boolean":
                return False
            case "array":
                item = self._value(schema.get("items", {}), None, required=True, depth=depth + 1)
                return [item] * int(schema.get("minItems", 0))
            case _:
                return None

    def _resolved(self, schema: Any, depth: int) -> Mapping[str, Any]:
        """The schema itself: references followed, the first alternative taken, `allOf` put together."""
        for _ in range(_DEEPEST):
            if depth > _DEEPEST or not isinstance(schema, Mapping):
                return {}
            if "$ref" in schema:
                schema = self._referred(str(schema["$ref"]))
            elif "allOf" in schema:
                merged = {key: value for key, value in schema.items() if key != "allOf"}
                for part in schema["allOf"]:
                    merged = _merged(merged, self._resolved(part, depth + 1))
                schema = merged
            elif alternatives := schema.get("anyOf") or schema.get("oneOf"):
                rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
                nullable = any(_types(part) == ["null"] for part in alternatives)
                first: Any = next((part for part in alternatives if _types(part) != ["null"]), {})
                schema = _merged(rest, self._resolved(first, depth + 1))
                if nullable and "type" in schema:
                    schema = {**schema, "type": [*_types(schema), "null"]}
            else:
                return schema
        return {}

    def _referred(self, pointer: str) -> Any:
        node: Any = self._root
        for part in pointer.lstrip("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key, {}) if isinstance(node, Mapping) else {}
        return node


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _types(schema: Any) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    found = schema.get("type")
    if found is None:
        return ["object"] if "properties" in schema else []
    return [found] if isinstance(found, str) else list(found)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**first, **second}
    merged["properties"] = {**first.get("properties", {}), **second.get("properties", {})}
    merged["required"] = [*first.get("required", ()), *second.get("required", ())]
    return merged if merged["properties"] else {k: v for k, v in merged.items() if k not in ("properties", "required")}


def _read(schema: Mapping[str, Any], types: Sequence[str], text: str) -> Any:
    """A labelled value as the first of the types that it fits."""
    for kind in types or ["string"]:
        value = _read_as(kind, schema, text)
        if value is not _NOTHING:
            return value
    return _NOTHING


def _read_as(kind: str, schema: Mapping[str, Any], text: str) -> Any:
    match kind:
        case "string":
            return text
        case "number" | "integer":
            found = _NUMBER.search(text)
            if found is None:
                return _NOTHING
            number = float(found[0].replace(",", ""))
            return int(number) if kind == "integer" or number.is_integer() else number
        case "boolean":
            word = text.casefold()
            return True if word in _TRUE else False if word in _FALSE else _NOTHING
        case "array":
            items = schema.get("items", {})
            parts = [part.strip(" \"'") for part in re.split(r"[,;]", text.strip("[]")) if part.strip()]
            read = [_read(items, _types(items), part) for part in parts]
            return [value for value in read if value is not _NOTHING]
        case "null":
            return None if text.casefold() in ("null", "none", "") else _NOTHING
        case _:
            return _NOTHING


def _string(schema: Mapping[str, Any]) -> str:
    samples = {"date": "1970-01-01", "date-time": "1970-01-01T00:00:00Z", "time": "00:00:00Z"}
    return samples.get(str(schema.get("format")), "-" * int(schema.get("minLength", 0)))


def _number(schema: Mapping[str, Any]) -> float:
    """As near to 0 as the limits allow."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - 1
    number: float = 0
    if low is not None:
        number = max(number, low)
    return min(number, high) if high is not None else number
