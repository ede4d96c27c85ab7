"""YAML text into a tree of plain values that remember their place.

Built on the event stream of PyYAML's safe loader instead of its composer: events come one by one, so depth, size and
alias expansion are checked before anything is built, and no recursion follows the input. Scalars are read by the YAML
1.2 core rules, so `no` and `on` are words and `2026-01-01` is text. Tags are refused: a template is plain data.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from docmill.templates.faults import Faults, Mark

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_EXPANDED = 2_000_000
"""Characters after aliases are expanded: what the stored document could grow to."""
MAX_INT = 2**63 - 1

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarNode:
    """Text, a number, true/false or null."""

    mark: Mark
    value: str | int | float | bool | None
    text: str
    inner: int | None = None
    """Column of the first character of the text, if it stands on one line unescaped: lets a fault point inside it."""

    @property
    def weight(self) -> int:
        return len(self.text) + 1

    @property
    def depth(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceNode:
    mark: Mark
    items: "tuple[Node, ...]"
    weight: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    key_mark: Mark
    value: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingNode:
    mark: Mark
    entries: dict[str, Entry]
    weight: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenNode:
    """Stands where a fault was already noted, so that it is noted once."""

    mark: Mark
    weight: int = 1
    depth: int = 0


Node = ScalarNode | SequenceNode | MappingNode | BrokenNode


class _Stop(Exception):
    """Reading cannot go on; the fault is already noted."""


class _Place(Protocol):
    line: int
    column: int


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read yet."""

    mark: Mark
    anchor: str | None
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    weight: int = 1
    depth: int = 1


def load(text: str, faults: Faults) -> Node | None:
    """The root of the document, or None if it cannot be read at all; every fault found is added to `faults`."""
    start = Mark(1, 1)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        faults.add(start, "", "bad_text", f"The text is not valid Unicode ({error.reason}); save the file as UTF-8.")
        return None
    if size > MAX_BYTES:
        faults.add(
            start, "", "too_large", f"The {faults.what} has {size:,} bytes; at most {MAX_BYTES:,} are read. Split it."
        )
        return None
    reader = _Reader(faults)
    try:
        return reader.read(iter(yaml.parse(text, Loader=_LOADER)))
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        faults.add(
            _mark(place),
            "",
            "yaml_syntax",
            f"Not valid YAML: {problem}. Check indentation, colons and quotes here and on the line above.",
        )
    except yaml.YAMLError as error:
        # Characters YAML does not allow: the reader knows an offset but no line.
        position = getattr(error, "position", None)
        before = text[:position] if isinstance(position, int) else ""
        at = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        faults.add(at, "", "yaml_syntax", f"Not valid YAML: {str(error).splitlines()[0]}. Remove control characters.")
    return None


def plain_value(text: str) -> str | int | float | bool | None:
    """What an unquoted scalar means by the YAML 1.2 core rules; infinity for a number that cannot be stored."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        number = math.inf if len(text) > 30 else int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        return number if abs(number) <= MAX_INT else math.inf
    if _FLOAT.fullmatch(text):
        return float(text)
    return math.inf if _NOT_FINITE.fullmatch(text) else text


def _mark(place: _Place | None) -> Mark:
    """Our mark for PyYAML's; events of the safe loaders always have one."""
    return Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)


class _Reader:
    """Builds the tree from events with an explicit stack."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._anchors: dict[str, Node] = {}
        self._stack: list[_Open] = []
        self._root: Node | None = None

    def read(self, events: Iterator[yaml.Event]) -> Node | None:
        documents = 0
        for event in events:
            at = _mark(event.start_mark)
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self._faults.add(
                            at, "", "many_documents", f"A file holds one {self._faults.what}; remove this '---'."
                        )
                        raise _Stop
                case yaml.ScalarEvent():
                    self._add(self._scalar(event, at), event.anchor)
                case yaml.AliasEvent():
                    self._add(self._alias(str(event.anchor), at), None)
                case yaml.CollectionStartEvent():
                    self._open(event, at)
                case yaml.CollectionEndEvent():
                    self._close()
                case _:
                    pass
        if self._root is None:
            needs = "name, processable_type, steps" if self._faults.what == "template" else "something in it"
            self._faults.add(Mark(1, 1), "", "empty", f"The file is empty; a {self._faults.what} needs {needs}.")
        return self._root

    def _open(self, event: yaml.CollectionStartEvent, at: Mark) -> None:
        if event.tag is not None:
            self._refuse_tag(event.tag, at)
        if len(self._stack) >= MAX_DEPTH:
            self._faults.add(at, "", "too_deep", f"Nested more than {MAX_DEPTH} levels; flatten this part.")
            raise _Stop
        self._stack.append(_Open(at, event.anchor, isinstance(event, yaml.MappingStartEvent)))

    def _close(self) -> None:
        done = self._stack.pop()
        node: Node
        if done.is_mapping:
            node = self._mapping(done)
        else:
            node = SequenceNode(mark=done.mark, items=tuple(done.items), weight=done.weight, depth=done.depth)
        self._add(node, done.anchor)

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        parent.items.append(node)
        parent.weight += node.weight
        parent.depth = max(parent.depth, node.depth + 1)
        if parent.weight > MAX_EXPANDED or len(self._stack) + node.depth > MAX_DEPTH:
            self._faults.add(
                node.mark,
                "",
                "alias_expansion",
                "Aliases (*name) expand to too much here; write the values out instead.",
            )
            raise _Stop

    def _alias(self, name: str, at: Mark) -> Node:
        if name not in self._anchors:
            message = f"Alias *{name} has no finished anchor &{name} before it; an anchor may not contain itself."
            self._faults.add(at, "", "unknown_alias", message)
            return BrokenNode(mark=at)
        return self._anchors[name]

    def _refuse_tag(self, tag: str, at: Mark) -> None:
        shown = tag.replace("tag:yaml.org,2002:", "!!")[:80]
        self._faults.add(
            at,
            "",
            "yaml_tag",
            f"Tag {shown} is not allowed; a {self._faults.what} is plain data, write the value itself.",
        )

    def _scalar(self, event: yaml.ScalarEvent, at: Mark) -> Node:
        text: str = event.value
        if event.tag is not None:
            self._refuse_tag(event.tag, at)
            return BrokenNode(mark=at)
        if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
            message = "This text holds a NUL or half a surrogate pair, which no database stores; remove it."
            self._faults.add(at, "", "bad_text", message)
            return BrokenNode(mark=at)
        plain = event.implicit[0]
        end = _mark(event.end_mark)
        quotes = 0 if plain else 2
        one_line = end.line == at.line and end.column - at.column == len(text) + quotes
        inner = at.column + quotes // 2 if one_line else None
        value: str | int | float | bool | None = text
        if plain:
            value = self._plain(text, at)
            if isinstance(value, float) and not math.isfinite(value):
                return BrokenNode(mark=at)
        return ScalarNode(mark=at, value=value, text=text, inner=inner)

    def _plain(self, text: str, at: Mark) -> str | int | float | bool | None:
        """The value of an unquoted scalar; a number that is refused is noted and stays infinite."""
        value = plain_value(text)
        if isinstance(value, float) and not math.isfinite(value):
            self._faults.add(
                at, "", "bad_number", f"{text[:40]} is not a number this can store; use a finite 64-bit number."
            )
        return value

    def _mapping(self, done: _Open) -> MappingNode:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        for key, value in zip(done.items[::2], done.items[1::2], strict=True):
            if isinstance(key, BrokenNode):
                continue
            if not isinstance(key, ScalarNode):
                self._faults.add(key.mark, "", "bad_key", "A key must be a word, not a list or a mapping; quote it.")
            elif key.text == "<<":
                merged += value.items if isinstance(value, SequenceNode) else (value,)
            elif key.text in entries:
                first = entries[key.text].key_mark.line
                message = f"Key '{key.text[:80]}' is written twice (first on line {first}); keep one of them."
                self._faults.add(key.mark, "", "duplicate_key", message)
            else:
                entries[key.text] = Entry(key_mark=key.mark, value=value)
        for source in merged:
            if isinstance(source, MappingNode):
                entries = {**entries, **{k: e for k, e in source.entries.items() if k not in entries}}
            elif not isinstance(source, BrokenNode):
                self._faults.add(
                    source.mark, "", "bad_merge", "'<<' merges mappings only; give it an alias of a mapping."
                )
        return MappingNode(mark=done.mark, entries=entries, weight=done.weight, depth=done.depth)
