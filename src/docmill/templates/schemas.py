"""A first look at `output_schema`: the mistakes that are easy to make by hand, found before a model is paid.

Not a JSON Schema validator; unknown keywords are left alone. References must stay inside the schema, so that nothing is
ever fetched.
"""

from docmill.templates.faults import Faults
from docmill.templates.source import BrokenNode, MappingNode, Node, ScalarNode, SequenceNode

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})


def check_schema(root: MappingNode, path: str, faults: Faults) -> None:
    """Note what cannot be a JSON Schema below `root`; depth is bounded by the source."""
    pending: list[tuple[Node, str]] = [(root, path)]
    while pending:
        node, at = pending.pop()
        if isinstance(node, BrokenNode) or (isinstance(node, ScalarNode) and isinstance(node.value, bool)):
            continue
        if not isinstance(node, MappingNode):
            faults.add(node.mark, at, "bad_schema", "A schema is a mapping such as {type: string}, or true or false.")
            continue
        for key, entry in node.entries.items():
            pending += _check_keyword(key, entry.value, f"{at}.{key[:80]}", faults)


def _check_keyword(key: str, value: Node, path: str, faults: Faults) -> list[tuple[Node, str]]:
    """Schemas found under one keyword, yet to be checked."""

    def refuse(node: Node, message: str) -> None:
        if not isinstance(node, BrokenNode):
            faults.add(node.mark, path, "bad_schema", message)

    if key in _SCHEMAS:
        return [(value, path)]
    if key in _SCHEMA_LISTS:
        if isinstance(value, SequenceNode):
            return [(item, f"{path}[{index}]") for index, item in enumerate(value.items)]
        refuse(value, f"'{key}' takes a list of schemas.")
    elif key in _SCHEMAS_BY_NAME:
        if isinstance(value, MappingNode):
            return [(entry.value, f"{path}.{name[:80]}") for name, entry in value.entries.items()]
        refuse(value, f"'{key}' takes a mapping from name to schema.")
    elif key == "type":
        for item in value.items if isinstance(value, SequenceNode) else (value,):
            if not isinstance(item, ScalarNode) or item.value not in _TYPES:
                word = item.text if isinstance(item, ScalarNode) else ""
                hint = " Quote 'null'." if word == "null" else faults.suggest(word, _TYPES)
                refuse(item, f"'type' is one of {', '.join(_TYPES)}.{hint}")
    elif key == "required":
        names = value.items if isinstance(value, SequenceNode) else ()
        if not isinstance(value, SequenceNode) or not all(isinstance(n, ScalarNode | BrokenNode) for n in names):
            refuse(value, "'required' takes a list of property names.")
    elif key == "enum":
        if not isinstance(value, SequenceNode) or not value.items:
            refuse(value, "'enum' takes a list of allowed values.")
    elif key == "$ref" and not (isinstance(value, ScalarNode) and value.text.startswith("#")):
        refuse(value, "'$ref' must point inside this schema, such as '#/$defs/line'; nothing is fetched.")
    return []
