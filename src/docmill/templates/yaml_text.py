"""Plain data as YAML a person would have written: block style, short lists on one line, quotes only where they count.

Quotes follow two rule books, ours (YAML 1.2 core, see `source`) and that of older tools (1.1), so that the text means
the same to every reader.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from docmill.templates.source import plain_value

_LINE = 100
"""Characters a list may take on one line."""
_OLD_BREAKS = frozenset("\x85\u2028\u2029")
"""Ends of a line to YAML 1.1, so they must be escaped."""
_ENDLESS = 1 << 30
"""Lines are never folded: a folded expression is hard to read and to search for."""


def to_yaml(data: Mapping[str, object]) -> str:
    """The mapping as YAML text, keys in the order given."""
    return yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_ENDLESS, default_flow_style=False
    )


class _Dumper(yaml.SafeDumper):
    """As `yaml.SafeDumper`, but lists are indented below their key and nothing is written as an alias."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = None
    if _OLD_BREAKS & set(value) or value.endswith("\n\n"):
        # Empty lines at the end of a block would have to be told from those between two steps.
        style = '"'
    elif "\n" in value.strip("\n"):
        style = "|"
    elif not isinstance(plain_value(value), str):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: _Dumper, value: list[object]) -> yaml.SequenceNode:
    flat = all(not isinstance(item, dict | list) and "\n" not in str(item) for item in value)
    short = flat and sum(len(str(item)) + 2 for item in value) <= _LINE
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
