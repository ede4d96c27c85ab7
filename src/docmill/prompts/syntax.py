"""The syntax of prompts: text with variables in it, read in one pass, every fault with its place.

    {!entity.a.b}   {!entityId}   {!entityType}   {!Array:entity.a|f1,f2}   {!Object:entity.a|f1,f2}   {!!}

`{!!}` stands for the two characters `{!`, which begin a variable everywhere else.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Literal, assert_never

from docmill.model.errors import InvalidInput

LONGEST_TEXT = 200_000
"""Characters a stored prompt may have."""
SHOWN = 20
"""Faults spelled out in a message; the rest are counted."""
KEPT = 1000
"""Faults kept at all."""

FaultCode = Literal[
    "empty_text",
    "text_too_long",
    "bad_character",
    "unclosed_variable",
    "unknown_variable",
    "bad_path",
    "bad_fields",
]
"""Every code a fault can have; stable, documented in docs/reference/prompts.md."""

_OPEN = "{!"
_BODY = re.compile(r"[^{}\n]*")
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What no database or no terminal takes: control characters but tab and line ends, and halves of characters."""
_ESCAPE = "!"
_ROOT = "entity"


class Kind(StrEnum):
    """What a variable stands for."""

    VALUE = "Value"
    ENTITY_ID = "entityId"
    ENTITY_TYPE = "entityType"
    ARRAY = "Array"
    OBJECT = "Object"


_STARTS = (_ROOT, Kind.ENTITY_ID.value, Kind.ENTITY_TYPE.value, f"{Kind.ARRAY}:", f"{Kind.OBJECT}:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of a prompt; two that mean the same are equal, wherever they stand."""

    kind: Kind
    path: tuple[str, ...] = ()
    """Keys below the entity."""
    fields: tuple[str, ...] = ()
    """What an array or object is to show, as written; dots lead further down."""
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        path = ".".join((_ROOT, *self.path))
        match self.kind:
            case Kind.VALUE:
                return path
            case Kind.ENTITY_ID | Kind.ENTITY_TYPE:
                return self.kind.value
            case Kind.ARRAY | Kind.OBJECT:
                return f"{self.kind}:{path}|{','.join(self.fields)}"
            case _:
                assert_never(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFault:
    """One thing to mend: its place (both numbers from 1), a stable code, and what to do."""

    line: int
    column: int
    code: FaultCode
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message} [{self.code}]"


class PromptInvalid(InvalidInput):
    """The text is no prompt; `faults` lists everything to mend, in the order of the text."""

    code = "prompt_invalid"

    def __init__(self, name: str, faults: tuple[PromptFault, ...]) -> None:
        self.name = name
        self.faults = faults
        lines = [str(fault) for fault in faults[:SHOWN]]
        if len(faults) > SHOWN:
            lines.append(f"… and {len(faults) - SHOWN} more; mend these first.")
        message = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(faults)} faults.", *lines])
        super().__init__(f"{name}: {message}", field="text", name=name, faults=[asdict(fault) for fault in faults])


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A prompt taken apart: what stands for itself, and variables, in order."""

    parts: tuple[str | Variable, ...]
    faults: tuple[PromptFault, ...]


def check(text: str) -> tuple[PromptFault, ...]:
    """Everything that is wrong with a text that is to be stored; nothing if it is right."""
    if not text.strip():
        return (PromptFault(line=1, column=1, code="empty_text", message="The prompt is empty; write its text."),)
    if len(text) > LONGEST_TEXT:
        message = f"The prompt has {len(text):,} characters; shorten it to {LONGEST_TEXT:,}."
        return (PromptFault(line=1, column=1, code="text_too_long", message=message),)
    places = _Places(text)
    unwanted = tuple(
        places.fault(found.start(), "bad_character", f"The character {found[0]!a} cannot be stored; remove it.")
        for found in islice(_UNWANTED.finditer(text), KEPT)
    )
    return tuple(sorted((*parse(text).faults, *unwanted), key=lambda fault: (fault.line, fault.column)))


def variables(text: str) -> tuple[Variable, ...]:
    """The variables of a text, each once, in the order in which they first appear."""
    return tuple(dict.fromkeys(part for part in parse(text).parts if isinstance(part, Variable)))


@lru_cache(maxsize=64)
def parse(text: str) -> Parsed:
    """Take a prompt apart. What is malformed stands for itself, and is told in `faults`."""
    parts: list[str | Variable] = []
    faults: list[PromptFault] = []
    places = _Places(text)
    done = 0
    while (start := text.find(_OPEN, done)) >= 0:
        body = _BODY.match(text, start + len(_OPEN))
        assert body is not None
        end = body.end() + 1
        parts.append(text[done:start])
        try:
            if text[body.end() : end] != "}":
                raise _Malformed(
                    "unclosed_variable", "This '{!' has no '}' in its line; close it, or write {!!} for '{!'."
                )
            parts.append(_OPEN if body[0] == _ESCAPE else _variable(body[0], *places.at(start)))
        except _Malformed as problem:
            if len(faults) < KEPT:
                faults.append(places.fault(start, problem.code, problem.message))
            end = body.end()
            parts.append(text[start:end])
        done = end
    parts.append(text[done:])
    return Parsed(parts=tuple(part for part in parts if part != ""), faults=tuple(faults))


class _Malformed(Exception):
    """What stands between `{!` and `}` is no variable."""

    def __init__(self, code: FaultCode, message: str) -> None:
        self.code = code
        self.message = message


class _Places:
    """Offsets as lines and columns; asked in rising order, the whole text is counted once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._line = 1
        self._line_start = 0

    def at(self, offset: int) -> tuple[int, int]:
        assert offset >= self._offset
        breaks = self._text.count("\n", self._offset, offset)
        if breaks:
            self._line += breaks
            self._line_start = self._text.rindex("\n", self._offset, offset) + 1
        self._offset = offset
        return self._line, offset - self._line_start + 1

    def fault(self, offset: int, code: FaultCode, message: str) -> PromptFault:
        line, column = self.at(offset)
        return PromptFault(line=line, column=column, code=code, message=message)


def _variable(body: str, line: int, column: int) -> Variable:
    head, colon, rest = body.partition(":")
    formatted = bool(colon) and "." not in head  # Else the colon belongs to a key, as in entity.cbc:ID.
    path, bar, fields = (rest if formatted else body).partition("|")
    if formatted:
        kind = {Kind.ARRAY.value: Kind.ARRAY, Kind.OBJECT.value: Kind.OBJECT}.get(head.strip())
        if kind is None:
            raise _unknown(f"{head.strip()}:", body)
        return Variable(kind=kind, path=_path(path), fields=tuple(_fields(fields, kind)), line=line, column=column)
    if bar:
        raise _Malformed("bad_fields", f"Only Array: and Object: take fields; write {{!Object:{_short(body)}}}.")
    if path.strip() in (Kind.ENTITY_ID, Kind.ENTITY_TYPE):
        return Variable(kind=Kind(path.strip()), line=line, column=column)
    return Variable(kind=Kind.VALUE, path=_path(path), line=line, column=column)


def _path(text: str) -> tuple[str, ...]:
    root, *keys = (key.strip() for key in text.split("."))
    if root != _ROOT:
        raise _unknown(root, text)
    if not all(keys):
        raise _Malformed("bad_path", f"A key is missing beside a dot in '{_short(text)}'; write entity.key.key.")
    return tuple(keys)


def _fields(text: str, kind: Kind) -> Iterator[str]:
    for entry in text.split(","):
        name = ".".join(key.strip() for key in entry.split("."))
        if not all(name.split(".")):
            message = f"A field is missing; write {{!{kind}:entity.path|field1,field2}}."
            raise _Malformed("bad_fields", message)
        yield name


def _unknown(word: str, body: str) -> _Malformed:
    if word.startswith((f"{Kind.ENTITY_ID}.", f"{Kind.ENTITY_TYPE}.")) or word in (Kind.ENTITY_ID, Kind.ENTITY_TYPE):
        return _Malformed("bad_path", f"'{_short(body)}' leads nowhere: {word} is plain text.")
    close = get_close_matches(word[:40], _STARTS, n=1, cutoff=0.6)
    hint = f"Variables begin with {', '.join(_STARTS)}."
    if close:
        hint = f"Did you mean '{close[0]}'?"
    elif body.strip() and not word.endswith(":"):
        hint = f"Did you mean '{_ROOT}.{_short(body.strip())}'?"
    return _Malformed("unknown_variable", f"There is no variable '{_short(body)}'. {hint}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
