"""Conditions: a small, safe expression language over `entity`, `results` and `metadata`. Never `eval`.

`parse` turns text into an `Expression`, once; `Expression.evaluate` walks its tree over plain data. Missing paths are
null. The language is documented in docs/reference/templates.md; grammar in `syntax`, behaviour of values in `values`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

from docmill.model.errors import PermanentError
from docmill.templates import values
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
)

STEP_NAMES = frozenset({"entity", "results", "metadata"})
"""Names known to `condition`, `input` and `not_before`."""
PROCESSOR_NAMES = STEP_NAMES | {"result"}
"""Names known to `when` of a processor choice: also the result about to be applied."""

_ARITIES = {"contains": (2, 2), **{name: (low, high) for name, (low, high, _) in values.FUNCTIONS.items()}}


class ConditionError(PermanentError):
    """An expression that cannot be parsed, or cannot be computed on this data; trying again will not help."""

    code = "condition_error"

    def __init__(self, message: str, *, expression: str, position: int | None = None) -> None:
        super().__init__(message, expression=expression, position=position)
        self.expression = expression
        self.position = position
        """Where in the expression, from 0; None for faults of the data."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression; immutable, shared, cheap to evaluate again and again."""

    text: str
    node: Node = field(repr=False)
    names: frozenset[str]
    """Root names it reads, so that nobody loads an entity it never looks at."""
    result_keys: frozenset[str] | None
    """Steps whose results it reads; None if it cannot be told beforehand, such as `results[entity.kind]`."""

    def evaluate(self, scope: Mapping[str, object]) -> object:
        """Its value over `scope` (root name -> plain data); ConditionError if the data does not fit."""
        try:
            return _evaluate(self.node, scope, values.Budget())
        except values.ValueFault as fault:
            message = f"Condition `{_shown(self.text)}`: {fault}. Correct the expression or the data it reads."
            raise ConditionError(message, expression=self.text) from None

    def holds(self, scope: Mapping[str, object]) -> bool:
        """Whether it is true: null, false, zero and empty values are not."""
        return values.truth(self.evaluate(scope))

    def cannot_hold(self, known: Mapping[str, object]) -> bool:
        """Whether it is untrue already, whatever the names that are not `known` stand for; False if it depends."""
        try:
            return not self.holds(_Partly(known))
        except (_Unknown, ConditionError):
            return False


class _Unknown(Exception):
    """The value depends on a name that is not known yet."""


class _Partly(dict[str, object]):
    """Names of which some are not known yet. `and` and `or` stop at the operand that decides, so not all are asked."""

    def get(self, name: str, default: object = None) -> object:
        if name not in self:
            raise _Unknown
        return self[name]


@lru_cache(maxsize=1024)
def parse(text: str, *, names: frozenset[str] = PROCESSOR_NAMES) -> Expression:
    """The expression this text means; ConditionError pointing at the first character that makes no sense."""
    try:
        node = Parser(text, names=names, functions=_ARITIES).parse()
    except SyntaxFault as fault:
        message = f"Condition `{_shown(text)}`, character {fault.position + 1}: {fault.message}"
        raise ConditionError(message, expression=text, position=fault.position) from None
    paths = _paths(node)
    read = [path.parts[0] if path.parts else None for path in paths if path.root == "results"]
    keys = frozenset(part.value for part in read if isinstance(part, Literal) and isinstance(part.value, str))
    dynamic = any(not isinstance(part, Literal) for part in read)
    return Expression(text, node, frozenset(path.root for path in paths), None if dynamic else keys)


def literal(value: str | int | float | bool | None) -> str:
    """The expression text that evaluates to this value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"


def _shown(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "…"


def _paths(root: Node) -> list[Path]:
    found: list[Path] = []
    pending: list[Node] = [root]
    while pending:
        match pending.pop():
            case Literal():
                pass
            case Path(parts=parts) as path:
                found.append(path)
                pending.extend(parts)
            case ListOf(items):
                pending.extend(items)
            case Call(arguments=arguments):
                pending.extend(arguments)
            case Not(operand) | Negative(operand):
                pending.append(operand)
            case Logic(operands=operands):
                pending.extend(operands)
            case Compare(left=left, right=right):
                pending.extend((left, right))
            case Arithmetic(first, rest):
                pending.extend((first, *(operand for _, operand in rest)))
            case other:
                assert_never(other)
    return found


def _evaluate(node: Node, scope: Mapping[str, object], budget: values.Budget) -> object:
    match node:
        case Literal(value):
            return value
        case Path(root, parts):
            found = values.plain(scope.get(root))
            for part in parts:
                found = values.lookup(found, _evaluate(part, scope, budget))
            return found
        case Compare(operator, left, right):
            return _compare(operator, _evaluate(left, scope, budget), _evaluate(right, scope, budget), budget)
        case Logic("and", operands):
            return all(values.truth(_evaluate(operand, scope, budget)) for operand in operands)
        case Logic(_, operands):
            return any(values.truth(_evaluate(operand, scope, budget)) for operand in operands)
        case Not(operand):
            return not values.truth(_evaluate(operand, scope, budget))
        case Arithmetic(first, rest):
            total = _evaluate(first, scope, budget)
            for operator, operand in rest:
                total = values.calculate(operator, total, _evaluate(operand, scope, budget))
            return total
        case Negative(operand):
            return values.calculate("-", 0, _evaluate(operand, scope, budget))
        case ListOf(items):
            return [_evaluate(item, scope, budget) for item in items]
        case Call("contains", (container, item)):
            return values.member(_evaluate(item, scope, budget), _evaluate(container, scope, budget), budget)
        case Call(function, arguments):
            return values.FUNCTIONS[function][2](*(_evaluate(argument, scope, budget) for argument in arguments))
        case other:
            assert_never(other)


def _compare(operator: str, left: object, right: object, budget: values.Budget) -> bool:
    match operator:
        case "==":
            return values.equal(left, right, budget)
        case "!=":
            return not values.equal(left, right, budget)
        case "in":
            return values.member(left, right, budget)
        case _:
            return values.ordered(operator, left, right)
