"""Reads the keys of one mapping, typed: every wrong or unknown key becomes a fault and reading goes on.

An absent key and a null value are the same: the default.
"""

import math
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

from docmill.templates import conditions, times
from docmill.templates.faults import FaultCode, Faults, Mark
from docmill.templates.source import BrokenNode, MappingNode, Node, ScalarNode, SequenceNode

E = TypeVar("E", bound=StrEnum)
MAX_NAME = 200
MAX_TEXT = 10_000


def describe(node: Node) -> str:
    """What a person would call the value, for `… expected, found …`."""
    match node:
        case MappingNode():
            return "a mapping"
        case SequenceNode():
            return "a list"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=bool()):
            return f"{node.text} (true/false)"
        case ScalarNode(value=str()):
            return f"the text '{node.text[:40]}'"
        case ScalarNode():
            return f"the number {node.text[:40]}"
        case BrokenNode():
            return "a refused value"


def plain(node: Node) -> object:
    """The node as plain JSON-able data; bounded, because the source bounded depth and expansion."""
    match node:
        case ScalarNode(value=value):
            return value
        case SequenceNode(items=items):
            return [plain(item) for item in items]
        case MappingNode(entries=entries):
            return {key: plain(entry.value) for key, entry in entries.items()}
        case BrokenNode():
            return None


class Fields:
    """One mapping being read. Methods return the value, or the default after noting a fault."""

    def __init__(self, node: MappingNode, path: str, faults: Faults, *, known: Iterable[str], what: str) -> None:
        self.node = node
        self.path = path
        self.faults = faults
        known = frozenset(known)
        for key, entry in node.entries.items():
            if key not in known:
                hint = faults.suggest(key, known) or f" Known keys: {', '.join(sorted(known))}."
                message = f"Unknown key '{key[:80]}' in {what}.{hint}"
                faults.add(entry.key_mark, self.at(key[:80]), "unknown_key", message)

    def at(self, key: str) -> str:
        """The path of a key of this mapping."""
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str) -> Node | None:
        """The value, unless absent, null or already refused."""
        entry = self.node.entries.get(key)
        if entry is None or isinstance(entry.value, BrokenNode):
            return None
        return None if isinstance(entry.value, ScalarNode) and entry.value.value is None else entry.value

    def mark(self, key: str) -> Mark:
        """Where the key stands, or the mapping if it is absent."""
        entry = self.node.entries.get(key)
        return entry.key_mark if entry else self.node.mark

    def value_mark(self, key: str) -> Mark:
        """Where the value stands, or the mapping if it is absent."""
        entry = self.node.entries.get(key)
        return entry.value.mark if entry else self.node.mark

    def fault(self, key: str, code: FaultCode, message: str) -> None:
        """Note a fault at the value of a key."""
        self.faults.add(self.value_mark(key), self.at(key), code, message)

    def require(self, key: str, what: str) -> None:
        """Note a fault if the key is absent or null; a refused value was noted already."""
        entry = self.node.entries.get(key)
        if self.get(key) is None and not (entry and isinstance(entry.value, BrokenNode)):
            message = f"'{key}' is missing; {what}."
            self.faults.add(self.mark(key), self.at(key), "missing_key", message)

    def text(self, key: str, *, limit: int = MAX_NAME) -> str | None:
        node = self.get(key)
        return None if node is None else self.text_of(node, self.at(key), limit=limit)

    def text_of(self, node: Node, path: str, *, limit: int = MAX_NAME) -> str | None:
        """The text of one node, not empty and not too long."""
        if isinstance(node, BrokenNode):
            return None
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            self.wrong_type(node, path, "text", "quote it if it is meant as text")
            return None
        if not node.value.strip():
            self.faults.add(node.mark, path, "empty_text", "The text is empty; fill it in or remove the key.")
            return None
        if len(node.value) > limit:
            message = f"The text has {len(node.value):,} characters; at most {limit:,} are allowed."
            self.faults.add(node.mark, path, "text_too_long", message)
            return None
        return node.value

    def wrong_type(self, node: Node, path: str, wanted: str, remedy: str) -> None:
        message = f"Expected {wanted}, found {describe(node)}; {remedy}."
        self.faults.add(node.mark, path, "wrong_type", message)

    def flag(self, key: str, default: bool) -> bool:
        node = self.get(key)
        if node is None:
            return default
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        self.wrong_type(node, self.at(key), "true or false", "write one of them without quotes")
        return default

    def whole(self, key: str, default: int, *, low: int, high: int) -> int:
        found = self.whole_or_none(key, low=low, high=high)
        return default if found is None else found

    def whole_or_none(self, key: str, *, low: int, high: int) -> int | None:
        node = self.get(key)
        if node is None:
            return None
        if not isinstance(node, ScalarNode) or isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.wrong_type(node, self.at(key), "a whole number", f"write one from {low:,} to {high:,}")
            return None
        if not isinstance(node.value, int) or not low <= node.value <= high:
            message = f"{node.text} is out of range; write a whole number from {low:,} to {high:,}."
            self.fault(key, "bad_number", message)
            return None
        return node.value

    def duration(self, key: str, default: float, *, positive: bool = False) -> float:
        node = self.get(key)
        if node is None:
            return default
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(node, ScalarNode) or value is None or isinstance(value, bool):
            self.wrong_type(node, self.at(key), "a length of time", 'write seconds, or text such as "30s" or "5m"')
            return default
        found = times.seconds(value) if isinstance(value, str) else float(value)
        if found is None:
            message = f"'{node.text[:40]}' is not a length of time; write seconds, or units ms, s, m, h, d as in 1h30m."
            self.fault(key, "bad_duration", message)
            return default
        if not math.isfinite(found) or found < 0 or found > times.LONGEST or (positive and found == 0):
            least = "more than 0" if positive else "0 or more"
            self.fault(key, "bad_number", f"{value} is out of range; write {least} seconds and at most 366 days.")
            return default
        return found

    def choice(self, key: str, options: type[E]) -> E | None:
        node = self.get(key)
        if node is None:
            return None
        text = self.text_of(node, self.at(key))
        if text is None:
            return None
        if text not in [option.value for option in options]:
            hint = self.faults.suggest(text, list(options))
            self.fault(key, "bad_choice", f"'{text}' is none of {', '.join(options)}.{hint}")
            return None
        return options(text)

    def mapping(self, key: str) -> MappingNode | None:
        node = self.get(key)
        if node is None or isinstance(node, MappingNode):
            return node
        self.wrong_type(node, self.at(key), "a mapping", "write 'name: value' lines below the key")
        return None

    def items(self, key: str, *, what: str) -> Iterator[tuple[str, Node]]:
        """Path and node of each element of a list."""
        node = self.get(key)
        if isinstance(node, SequenceNode):
            yield from ((f"{self.at(key)}[{index}]", item) for index, item in enumerate(node.items))
        elif node is not None:
            self.wrong_type(node, self.at(key), "a list", f"write {what}")

    def pattern(self, key: str, pattern: re.Pattern[str], rule: str) -> str | None:
        """Text that must match a pattern."""
        text = self.text(key)
        if text is not None and not pattern.fullmatch(text):
            self.fault(key, "bad_name", f"'{text[:80]}' is not allowed here; {rule}.")
            return None
        return text

    def expression_of(self, node: Node, path: str, names: frozenset[str]) -> str | None:
        """The text of an expression that parses; numbers and true/false stand for themselves."""
        if isinstance(node, BrokenNode):
            return None
        if isinstance(node, ScalarNode) and not isinstance(node.value, str):
            return conditions.literal(node.value)
        text = self.text_of(node, path, limit=MAX_TEXT)
        if text is None:
            return None
        text = text.strip()
        try:
            conditions.parse(text, names=names)
        except conditions.ConditionError as error:
            mark = node.mark
            if isinstance(node, ScalarNode) and node.inner is not None and error.position is not None:
                lead = len(node.text) - len(node.text.lstrip())
                mark = Mark(mark.line, node.inner + lead + error.position)
            self.faults.add(mark, path, "bad_expression", error.message)
            return None
        return text
