"""Cross-field rules: `subtotal + tax == total`, evaluated exactly, with a tolerance.

The grammar is that of the conditions of templates (`docmill.templates.syntax`): one language to learn, bounded in
length and nesting. The evaluation is its own, because money needs exact decimals, comparisons need a tolerance, and a
rule whose fields were not found says nothing: it is neither kept nor broken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, DecimalException, localcontext
from typing import assert_never

from docmill.extraction.values.kinds import DECIMALS, FieldType
from docmill.templates.syntax import (
    Arithmetic,
    Call,
    Compare,
    ListOf,
    Literal,
    Logic,
    Negative,
    Node,
    Not,
    Parser,
    Path,
    SyntaxFault,
    tokenize,
)

Value = Decimal | date | str | bool
"""What a part of a rule can be; None where it is not known."""
FUNCTIONS: dict[str, tuple[int, int]] = {
    "sum": (1, 1),
    "count": (1, 1),
    "abs": (1, 1),
    "min": (1, 8),
    "max": (1, 8),
    "coalesce": (2, 8),
    "round": (1, 2),
}
"""With the numbers of arguments they take: `sum` and `count` of a column, `coalesce(rounding, 0)` for what may lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must hold between fields."""

    name: str
    holds: str
    """The expression."""
    node: Node = field(repr=False, compare=False)
    fields: tuple[str, ...]
    """Fields and tables it reads."""
    tolerance: Decimal | None = None
    """By how much two numbers may differ and still count as equal; None: that of the schema."""
    message: str | None = None
    """A sentence for a person, instead of the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The values a rule is evaluated over."""

    fields: Mapping[str, Value]
    columns: Mapping[str, Mapping[str, Sequence[Decimal | None]]]
    """By table and column, row by row."""
    rows: Mapping[str, int] = field(default_factory=dict)


def parse_rule(text: str, *, kinds: Mapping[str, FieldType], tables: Mapping[str, Mapping[str, FieldType]]) -> Node:
    """The tree of a rule; SyntaxFault if it makes no sense or names what the schema does not have."""
    tokens = tokenize(text)
    for index, token in enumerate(tokens):
        named = token.kind == "name" and token.text not in ("and", "or", "not", "in", "is", "null", "true", "false")
        called, inside = tokens[index + 1 : index + 2], tokens[index - 1] if index else None
        if not named or (called and called[0].text == "(") or (inside and inside.text == "."):
            continue
        if token.text not in kinds and token.text not in tables:
            raise UnknownName(token.text, token.position)
    node = Parser(text, names=[*kinds, *tables], functions=FUNCTIONS).parse()
    if _kind(node, kinds, tables) != "truth":
        raise SyntaxFault("A rule compares something; write for example `subtotal + tax == total`.", 0)
    return node


class UnknownName(SyntaxFault):
    """A rule names a field that the schema does not have."""

    def __init__(self, name: str, position: int) -> None:
        super().__init__(f"The schema has no field or table '{name[:40]}'.", position)
        self.name = name


def names_in(root: Node) -> tuple[str, ...]:
    """The fields and tables that a rule reads, in order."""
    return tuple(dict.fromkeys(node.root for node in _walk(root) if isinstance(node, Path)))


def columns_in(root: Node) -> frozenset[tuple[str, str]]:
    """The columns that a rule adds up, each with its table."""
    paths = [node for node in _walk(root) if isinstance(node, Path) and node.parts]
    return frozenset((path.root, str(part.value)) for path in paths if isinstance(part := path.parts[0], Literal))


def holds(rule: Rule, known: Known, tolerance: Decimal) -> bool | None:
    """Whether the rule is kept; None if a value it needs was not found."""
    found = value_of(rule.node, known, tolerance)
    return found if isinstance(found, bool) else None


def value_of(node: Node, known: Known, tolerance: Decimal) -> Value | None:
    """What a part of a rule comes to; None if that cannot be said."""
    try:
        with localcontext() as context:
            context.prec = 40
            return _evaluate(node, known, tolerance)
    except (DecimalException, OverflowError):
        # A division by zero or a day beyond the calendar: nothing can be said.
        return None


def explain(rule: Rule, known: Known, tolerance: Decimal) -> str:
    """What was compared, with the values: `subtotal + tax = 119.00, total = 120.00`."""
    sides: list[str] = []
    for node in _walk(rule.node):
        if isinstance(node, Compare):
            for side in (node.left, node.right):
                if not isinstance(side, Literal | ListOf):
                    value = value_of(side, known, tolerance)
                    sides.append(f"{written(side)} = {'not found' if value is None else value}")
    return ", ".join(dict.fromkeys(sides))


def written(node: Node) -> str:
    """A part of a rule as text."""
    match node:
        case Literal(value):
            return "null" if value is None else str(value)
        case Path(root, parts):
            return ".".join([root, *(written(part) for part in parts)])
        case Negative(operand):
            return f"-{written(operand)}"
        case Arithmetic(first, rest):
            return written(first) + "".join(f" {operator} {written(operand)}" for operator, operand in rest)
        case Call("coalesce", arguments):
            return written(arguments[0])
        case Call(function, arguments):
            return f"{function}({', '.join(written(argument) for argument in arguments)})"
        case Compare(operator, left, right):
            return f"{written(left)} {operator} {written(right)}"
        case Logic(operator, operands):
            return f" {operator} ".join(written(operand) for operand in operands)
        case Not(operand):
            return f"not {written(operand)}"
        case ListOf(items):
            return f"[{', '.join(written(item) for item in items)}]"
        case other:
            assert_never(other)


def _walk(root: Node) -> Iterator[Node]:
    pending: list[Node] = [root]
    while pending:
        node = pending.pop(0)
        yield node
        pending[:0] = parts_of(node)


def parts_of(node: Node) -> Sequence[Node]:
    """What a part of a rule is made of."""
    match node:
        case ListOf(items):
            return items
        case Call(arguments=arguments):
            return arguments
        case Not(operand) | Negative(operand):
            return [operand]
        case Logic(operands=operands):
            return operands
        case Compare(left=left, right=right):
            return [left, right]
        case Arithmetic(first, rest):
            return [first, *(operand for _, operand in rest)]
        case Literal() | Path():
            return ()
        case other:
            assert_never(other)


def _kind(node: Node, kinds: Mapping[str, FieldType], tables: Mapping[str, Mapping[str, FieldType]]) -> str:
    """`number`, `date`, `text`, `truth`, `column`, `table` or `anything`; SyntaxFault where parts do not fit."""
    match node:
        case Literal(value):
            if isinstance(value, bool):
                return "truth"
            return "anything" if value is None else "text" if isinstance(value, str) else "number"
        case Path(root, parts):
            return _path_kind(root, parts, kinds, tables)
        case Call("sum" | "count" as function, (argument,)):
            if _kind(argument, kinds, tables) not in (("column",) if function == "sum" else ("column", "table")):
                raise SyntaxFault(f"{function}() takes a column of a table, such as {function}(line_items.amount).", 0)
            return "number"
        case Call(arguments=arguments):
            inner = [_kind(argument, kinds, tables) for argument in arguments]
            if any(one in ("column", "table") for one in inner):
                raise SyntaxFault("A whole column needs sum() or count() around it.", 0)
            return next((one for one in inner if one != "anything"), "number")
        case Negative(operand):
            return _number_of(operand, kinds, tables)
        case Arithmetic(first, rest):
            inner = [_kind(part, kinds, tables) for part in (first, *(operand for _, operand in rest))]
            if wrong := next((one for one in inner if one not in ("number", "date", "anything")), None):
                raise SyntaxFault(f"Only numbers and dates can be calculated with, not a {wrong}.", 0)
            # One date more than is taken away again: `issue_date + 30`; two are days apart.
            return "date" if inner.count("date") == 1 else "number"
        case Compare("in", left, right):
            if not isinstance(right, ListOf):
                raise SyntaxFault("'in' needs a list behind it, such as ['EUR', 'USD'].", 0)
            _kind(left, kinds, tables)
            return "truth"
        case Compare(left=left, right=right):
            one, other = _kind(left, kinds, tables), _kind(right, kinds, tables)
            if "column" in (one, other) or "table" in (one, other):
                raise SyntaxFault("A whole column needs sum() or count() around it.", 0)
            if one != other and "anything" not in (one, other) and {one, other} != {"date", "text"}:
                raise SyntaxFault(f"A {one} cannot be compared with a {other}.", 0)
            return "truth"
        case Logic(operands=operands):
            for operand in operands:
                _kind(operand, kinds, tables)
            return "truth"
        case Not(operand):
            _kind(operand, kinds, tables)
            return "truth"
        case ListOf():
            return "list"
        case other:
            assert_never(other)


def _number_of(node: Node, kinds: Mapping[str, FieldType], tables: Mapping[str, Mapping[str, FieldType]]) -> str:
    if _kind(node, kinds, tables) not in ("number", "anything"):
        raise SyntaxFault("Only numbers have a sign.", 0)
    return "number"


def _path_kind(
    root: str,
    parts: tuple[Node, ...],
    kinds: Mapping[str, FieldType],
    tables: Mapping[str, Mapping[str, FieldType]],
) -> str:
    if root in tables:
        if not parts:
            return "table"
        column = parts[0].value if isinstance(parts[0], Literal) else None
        if len(parts) > 1 or column not in tables[root]:
            raise SyntaxFault(f"Table {root} has no column '{column}'; it has {', '.join(tables[root])}.", 0)
        return "column"
    if parts:
        raise SyntaxFault(f"'{root}' is a field and has no parts.", 0)
    kind = kinds[root]
    return "number" if kind in DECIMALS else "date" if kind is FieldType.DATE else "text"


def _evaluate(node: Node, known: Known, tolerance: Decimal) -> Value | None:
    match node:
        case Literal(said):
            return Decimal(str(said)) if isinstance(said, int | float) and not isinstance(said, bool) else said
        case Path(root):
            return known.fields.get(root)
        case Call("sum" | "count" as function, (Path() as path,)):
            return _column(function, path, known)
        case Call("coalesce", arguments):
            values = (_evaluate(argument, known, tolerance) for argument in arguments)
            return next((value for value in values if value is not None), None)
        case Call(function, arguments):
            return _called(function, [_evaluate(argument, known, tolerance) for argument in arguments])
        case Negative(operand):
            value = _evaluate(operand, known, tolerance)
            return -value if isinstance(value, Decimal) else None
        case Arithmetic(first, rest):
            total = _evaluate(first, known, tolerance)
            for operator, operand in rest:
                total = _calculated(operator, total, _evaluate(operand, known, tolerance))
            return total
        case Compare("in", left, ListOf(items)):
            value = _evaluate(left, known, tolerance)
            options = [_evaluate(item, known, tolerance) for item in items]
            return None if value is None else any(_compared("==", value, one, tolerance) for one in options)
        case Compare(operator, left, Literal(None)):
            return (_evaluate(left, known, tolerance) is None) == (operator == "==")
        case Compare(operator, left, right):
            return _compared(operator, _evaluate(left, known, tolerance), _evaluate(right, known, tolerance), tolerance)
        case Logic(operator, operands):
            return _logic(operator, [_evaluate(operand, known, tolerance) for operand in operands])
        case Not(operand):
            value = _evaluate(operand, known, tolerance)
            return not value if isinstance(value, bool) else None
        case ListOf():
            return None
        case other:
            assert_never(other)


def _column(function: str, path: Path, known: Known) -> Decimal | None:
    """A column with a gap adds up to nothing: a row that was not read must not look like one that is wrong."""
    if function == "count":
        found = known.rows.get(path.root)
        return None if found is None else Decimal(found)
    column = path.parts[0]
    values = known.columns.get(path.root, {}).get(str(column.value) if isinstance(column, Literal) else "", ())
    whole = [value for value in values if value is not None]
    return sum(whole, Decimal(0)) if values and len(whole) == len(values) else None


def _called(function: str, values: list[Value | None]) -> Value | None:
    numbers = [value for value in values if isinstance(value, Decimal)]
    if len(numbers) != len(values):
        days = [value for value in values if isinstance(value, date)]
        if len(days) == len(values) and function in ("min", "max"):
            return min(days) if function == "min" else max(days)
        return None
    match function:
        case "abs":
            return abs(numbers[0])
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case _:
            return round(numbers[0], int(numbers[1]) if len(numbers) > 1 else 0) + Decimal(0)


def _calculated(operator: str, left: Value | None, right: Value | None) -> Value | None:
    match operator, left, right:
        case "+", Decimal(), Decimal():
            return left + right
        case "-", Decimal(), Decimal():
            return left - right
        case "*", Decimal(), Decimal():
            return left * right
        case "/", Decimal(), Decimal():
            return left / right if right else None
        case "%", Decimal(), Decimal():
            return left % right if right else None
        case "-", date(), date():
            return Decimal((left - right).days)
        case "+", date(), Decimal():
            return left + timedelta(days=int(right))
        case "-", date(), Decimal():
            return left - timedelta(days=int(right))
        case _:
            return None


def _compared(operator: str, left: Value | None, right: Value | None, tolerance: Decimal) -> bool | None:
    if isinstance(left, date) and isinstance(right, str):
        right = _day(right)
    if isinstance(right, date) and isinstance(left, str):
        left = _day(left)
    if left is None or right is None:
        return None
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        away = left - right
        near = abs(away) <= tolerance
        order = 0 if near else 1 if away > 0 else -1
    elif isinstance(left, date) and isinstance(right, date):
        order = (left > right) - (left < right)
    elif isinstance(left, str) and isinstance(right, str):
        one, other = left.casefold(), right.casefold()
        order = (one > other) - (one < other)
    else:
        return None if type(left) is not type(right) else (left == right) == (operator == "==")
    return {
        "==": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _logic(operator: str, values: list[Value | None]) -> bool | None:
    """What is not known may be either: `or` is true as soon as one part is, and unknown rather than false."""
    decided = operator == "or"
    if any(value is decided for value in values):
        return decided
    return None if any(not isinstance(value, bool) for value in values) else not decided
