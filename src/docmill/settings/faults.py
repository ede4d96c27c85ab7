"""Mistakes in the settings, told as a person wants them: where, what, and what was probably meant."""

import re
from collections.abc import Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from docmill.settings.section import length_text

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SHOWN = 60
"""Characters of a wrong value that are repeated."""
_LIMITS = {"greater_than": ("gt", "more than"), "greater_than_equal": ("ge", "at least")}
_LIMITS |= {"less_than": ("lt", "less than"), "less_than_equal": ("le", "at most")}
_LENGTH = re.compile(r"datetime\.timedelta\((.*)\)")
_PART = re.compile(r"(\w+)=(-?\d+)")
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text", "path": "a path"}
_KINDS |= {"time_delta": "a length of time such as 90d or 12h", "model": "a mapping", "dict": "a mapping"}
_KINDS |= {"tuple": "a list", "model_attributes": "a mapping", "decimal": "a number"}


def told(fault: "ErrorDetails", root: type[BaseModel]) -> str:
    """One mistake: its place, what is wrong, and what to write instead."""
    location = [str(part) for part in fault["loc"]]
    place = ".".join(location)
    kind = fault["type"]
    found = repr(fault["input"])
    shown = found if len(found) <= _SHOWN else found[:_SHOWN] + "…"
    if kind == "extra_forbidden":
        # {formats: json,xml} is a setting `xml` without a value.
        quote = " If it is part of the value before it, quote that." if fault["input"] is None else ""
        return f"{place}: there is no such setting.{_suggestion(location, root)}{quote}"
    if kind in _LIMITS:
        limit, word = _LIMITS[kind]
        return f"{place}: {shown} is out of range; write {word} {_bound(str(fault['ctx'][limit]))}."
    if kind == "literal_error":
        return f"{place}: {shown} is not known here; write {fault['ctx']['expected']}."
    if kind == "value_error":
        return f"{place}: {fault['msg'].removeprefix('Value error, ').removesuffix('.')}."
    wanted = next((what for name, what in _KINDS.items() if kind in (f"{name}_parsing", f"{name}_type")), None)
    return f"{place}: {shown} is not {wanted}." if wanted else f"{place}: {fault['msg']}."


def _bound(text: str) -> str:
    """A limit as it would be written; Pydantic gives one of a length of time as Python code."""
    code = _LENGTH.fullmatch(text)
    if code is None:
        return text
    parts = {name: float(number) for name, number in _PART.findall(code[1])}
    return length_text(timedelta(**parts))


def _suggestion(location: Sequence[str], root: type[BaseModel]) -> str:
    """The setting that was probably meant, among those of the same section."""
    found: Any = root
    for part in location[:-1]:
        section = section_of(found)
        if section is None:
            # A mapping by names of one's own: one level down.
            found = get_args(found)[-1] if get_args(found) else None
        else:
            field = section.model_fields.get(part)
            found = field.annotation if field else None
    section = section_of(found) or next((kind for kind in map(section_of, get_args(found)) if kind), root)
    close = get_close_matches(location[-1], section.model_fields, n=1)
    known = f" Known here: {', '.join(section.model_fields)}."
    return f" Did you mean {'.'.join([*location[:-1], close[0]])}?" if close else known


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation is, if it is one."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
