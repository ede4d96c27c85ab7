"""What conditions compute with: null, true/false, numbers, text, lists and mappings; how each behaves, at what cost.

Values are looked up by key, never by attribute, and nothing here calls a method of a value it does not know. `Budget`
counts the elements visited, so an expression over a huge entity ends in an error instead of a stall.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from operator import ge, gt, le, lt
from typing import Any, TypeGuard
from uuid import UUID

MAX_TEXT = 1_000_000
MAX_MAGNITUDE = 10**30
MAX_VISITS = 100_000

# What JSON gives; looked up first, because asking `isinstance(…, Mapping)` costs ten times as much.
_TYPE_NAMES: Mapping[type, str] = {
    type(None): "null",
    bool: "true/false",
    int: "number",
    float: "number",
    str: "text",
    dict: "mapping",
    list: "list",
}
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_NUMBER = re.compile(r"[-+]?(\d+)(\.\d+)?([eE][-+]?\d{1,3})?", re.ASCII)


class ValueFault(Exception):
    """A value does not fit what is done with it; the message says which."""


@dataclass(slots=True)
class Budget:
    """How many elements one evaluation may still visit."""

    left: int = MAX_VISITS

    def spend(self) -> None:
        """Count one visit."""
        self.left -= 1
        self.require(0)

    def require(self, visits: int) -> None:
        """Refuse at once what could not be finished."""
        if self.left < visits:
            raise ValueFault(f"more than {MAX_VISITS:,} elements would be compared; narrow the path")


def plain(value: object) -> object:
    """Database and Python values as the language knows them: decimals are numbers; dates, times and ids are text."""
    if type(value) in _TYPE_NAMES:
        return value
    if isinstance(value, Decimal):
        return math.nan if value.is_nan() else float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def type_name(value: object) -> str:
    """The word the documentation uses for the type of a value."""
    known = _TYPE_NAMES.get(type(value))
    if known is not None:
        return known
    match value:
        case int() | float():
            return "number"
        case str():
            return "text"
        case Mapping():
            return "mapping"
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return "list"
        case _:
            return f"unsupported value ({type(value).__name__[:40]})"


def truth(value: object) -> bool:
    """Null, false, zero and whatever is empty are false; everything else is true."""
    match type_name(value):
        case "null":
            return False
        case "true/false" | "number":
            return value != 0
        case "text" | "list" | "mapping":
            return size(value) > 0
        case _:
            return True


def size(value: object) -> int:
    match value:
        case None:
            return 0
        case str() | Mapping() | Sequence() if type_name(value) in ("text", "mapping", "list"):
            return len(value)
        case _:
            raise ValueFault(f"len() takes text, a list or a mapping, not {type_name(value)}")


def lookup(value: object, key: object) -> object:
    """One step of a path; whatever is not there is null."""
    found: object = None
    if type(value) is dict or isinstance(value, Mapping):
        if isinstance(key, str) and key in value:
            found = value[key]
    elif isinstance(value, Sequence) and type_name(value) == "list" and type(key) is int:
        found = value[key] if -len(value) <= key < len(value) else None
    return plain(found)


def equal(left: object, right: object, budget: Budget) -> bool:
    """Same type and same value; numbers by amount, lists and mappings by content. Iterative: data may nest deeply."""
    pending = [(left, right)]
    while pending:
        one, other = (plain(value) for value in pending.pop())
        budget.spend()
        kind = type_name(one)
        if kind != type_name(other):
            return False
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if len(one) != len(other):
                return False
            budget.require(len(one) + len(pending))
            for key in one:
                if key not in other:
                    return False
                pending.append((one[key], other[key]))
        elif kind == "list" and isinstance(one, Sequence) and isinstance(other, Sequence):
            if len(one) != len(other):
                return False
            budget.require(len(one) + len(pending))
            pending.extend(zip(one, other, strict=True))
        elif kind.startswith("unsupported"):
            if one is not other:
                return False
        elif one != other:
            return False
    return True


def ordered(operator: str, left: object, right: object) -> bool:
    """`<` and its kin: numbers with numbers, text with text; false if either is null."""
    if left is None or right is None:
        return False
    if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return _ORDERS[operator](left, right)
    raise ValueFault(f"cannot compare {type_name(left)} {operator} {type_name(right)}")


def member(item: object, container: object, budget: Budget) -> bool:
    """`in`: element of a list, key of a mapping, part of a text; nothing is in null."""
    if container is None:
        return False
    if isinstance(container, str):
        if item is None:
            return False
        if not isinstance(item, str):
            raise ValueFault(f"only text can be in text, not {type_name(item)}")
        return item in container
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    if type_name(container) == "list" and isinstance(container, Sequence):
        budget.require(len(container))
        return any(equal(item, element, budget) for element in container)
    raise ValueFault(f"'in' needs a list, a mapping or text on its right, not {type_name(container)}")


def bounded(value: int | float) -> int | float:
    """The number itself, unless it left the range in which arithmetic stays cheap and exact enough."""
    if (isinstance(value, float) and not math.isfinite(value)) or abs(value) > MAX_MAGNITUDE:
        raise ValueFault("a number is beyond 10^30 or not finite")
    return value


def calculate(operator: str, left: object, right: object) -> object:
    """`+ - * / %` on numbers, `+` on text; null with anything is null."""
    if left is None or right is None:
        return None
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > MAX_TEXT:
            raise ValueFault(f"joined text would exceed {MAX_TEXT:,} characters")
        return left + right
    if not (is_number(left) and is_number(right)):
        raise ValueFault(f"cannot compute {type_name(left)} {operator} {type_name(right)}")
    one, other = bounded(left), bounded(right)
    if operator in "/%" and other == 0:
        raise ValueFault("division by zero")
    match operator:
        case "+":
            return bounded(one + other)
        case "-":
            return bounded(one - other)
        case "*":
            return bounded(one * other)
        case "/":
            return bounded(one / other)
        case _:
            return bounded(one % other)


def _number(name: str, value: object) -> int | float:
    if not is_number(value):
        raise ValueFault(f"{name}() takes a number, not {type_name(value)}")
    return bounded(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueFault(f"{name}() takes text, not {type_name(value)}")
    if len(value) > MAX_TEXT:
        raise ValueFault(f"{name}() takes at most {MAX_TEXT:,} characters")
    return value


def _to_number(value: object) -> object:
    if value is None or is_number(value):
        return value
    text = _text("number", value).strip()
    found = _NUMBER.fullmatch(text) if len(text) <= 40 else None
    if not found:
        return None
    number: int | float = float(text) if found[2] or found[3] else int(text)
    return number if abs(number) <= MAX_MAGNITUDE else None


def _to_text(value: object) -> object:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(bounded(value))
        case str():
            return value
        case _:
            raise ValueFault(f"text() takes a number, true/false or text, not {type_name(value)}")


def _to_date(value: object) -> object:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(_text("date", value)[:40].strip()).date().isoformat()
    except ValueError:
        return None


def _round(value: object, digits: object = 0) -> object:
    """Half away from zero, as on an invoice; binary halves such as 2.675 are rounded as they are written."""
    if value is None or digits is None:
        return None
    number = _number("round", value)
    places = _number("round", digits)
    if not isinstance(places, int) or not 0 <= places <= 10:
        raise ValueFault("round() takes 0 to 10 digits")
    exact = Decimal(str(number)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=Context(prec=60))
    return float(exact) if places else int(exact)


def _extreme(name: str, pick: Callable[[Sequence[int | float]], int | float]) -> Callable[..., object]:
    def function(*values: object) -> object:
        if len(values) == 1:
            only = values[0]
            if only is None:
                return None
            if type_name(only) != "list" or not isinstance(only, Sequence):
                raise ValueFault(f"{name}() takes a list or at least two numbers, not {type_name(only)}")
            if len(only) > MAX_VISITS:
                raise ValueFault(f"{name}() takes at most {MAX_VISITS:,} elements")
            values = tuple(plain(value) for value in only)
        numbers = [_number(name, value) for value in values if value is not None]
        return pick(numbers) if numbers else None

    return function


def _pair(name: str, test: Callable[[str, str], bool]) -> Callable[..., object]:
    def function(value: object, part: object) -> object:
        if value is None or part is None:
            return False
        return test(_text(name, value), _text(name, part))

    return function


def _or_null(function: Callable[..., object]) -> Callable[..., object]:
    def wrapped(value: object) -> object:
        return None if value is None else function(value)

    return wrapped


FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., object]]] = {
    # name: (fewest arguments, most, implementation); `contains` is in `conditions`, because it needs the budget
    "len": (1, 1, size),
    "exists": (1, 1, lambda value: value is not None),
    "lower": (1, 1, _or_null(lambda value: _text("lower", value).lower())),
    "upper": (1, 1, _or_null(lambda value: _text("upper", value).upper())),
    "trim": (1, 1, _or_null(lambda value: _text("trim", value).strip())),
    "number": (1, 1, _to_number),
    "text": (1, 1, _to_text),
    "date": (1, 1, _to_date),
    "startswith": (2, 2, _pair("startswith", str.startswith)),
    "endswith": (2, 2, _pair("endswith", str.endswith)),
    "abs": (1, 1, _or_null(lambda value: abs(_number("abs", value)))),
    "round": (1, 2, _round),
    "min": (1, 20, _extreme("min", min)),
    "max": (1, 20, _extreme("max", max)),
}
