"""The grammar of conditions: text into a small tree of frozen nodes. Nothing is evaluated here.

Own tokenizer and recursive descent rather than Python's `ast` with an allow-list: what the grammar cannot say
(attribute access, comprehension, power, call of a value) needs no ban. Chains such as `a and b and c` or `a + b - c`
are one node, so the depth of the tree is the nesting a person wrote, and that is bounded.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_LENGTH = 4_000
MAX_WORDS = 800
MAX_NESTING = 30

KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class Literal:
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Path:
    """A root name, then keys and indexes; each part is itself a node (usually a literal)."""

    root: str
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class ListOf:
    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Negative:
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Logic:
    """`and` / `or` over two or more operands, left to right, stopping as soon as the answer is known."""

    operator: str
    operands: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    first: "Node"
    rest: "tuple[tuple[str, Node], ...]"


Node = Literal | Path | ListOf | Call | Not | Negative | Logic | Compare | Arithmetic


class SyntaxFault(Exception):
    """Where and why the text is not a condition; `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """`number`, `text`, `name`, `symbol` or `end`."""
    text: str
    position: int


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<symbol>\*\*|//|==|!=|<=|>=|&&|\|\||[-+*/%<>()\[\],.=!])
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_REMEDIES = {
    "**": "There is no power operator; multiply instead.",
    "//": "There is no whole-number division; use round(a / b).",
    "&&": "Write 'and'.",
    "||": "Write 'or'.",
    "!": "Write 'not'.",
    "=": "Compare with '=='.",
    "None": "Write 'null'.",
    "True": "Write 'true'.",
    "False": "Write 'false'.",
}


def tokenize(text: str) -> list[_Token]:
    """The words of the text; SyntaxFault at the first character that begins none."""
    tokens: list[_Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if not found or found.lastgroup is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            if text[at] in "'\"":
                raise SyntaxFault("This text has no closing quote.", at)
            raise SyntaxFault(f"Unexpected character {text[at]!r}.", at)
        tokens.append(_Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
        position = found.end()
    tokens.append(_Token("end", "", end))
    return tokens


class Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, *, names: Iterable[str], functions: dict[str, tuple[int, int]]) -> None:
        if len(text) > MAX_LENGTH:
            raise SyntaxFault(f"The expression is longer than {MAX_LENGTH} characters; split it over steps.", 0)
        self._tokens = tokenize(text)
        if len(self._tokens) > MAX_WORDS:
            raise SyntaxFault(f"The expression has more than {MAX_WORDS} words; split it over steps.", 0)
        self._names = frozenset(names)
        self._functions = functions
        self._index = 0
        self._nesting = 0

    def parse(self) -> Node:
        """The whole text as one expression."""
        if self._next.kind == "end":
            raise SyntaxFault("The expression is empty.", 0)
        node = self._or()
        if self._next.kind != "end":
            raise self._unexpected("the end or an operator")
        return node

    @property
    def _next(self) -> _Token:
        return self._tokens[self._index]

    def _take(self) -> _Token:
        token = self._next
        self._index += 1
        return token

    def _accept(self, *texts: str) -> _Token | None:
        token = self._next
        return self._take() if token.kind in ("symbol", "name") and token.text in texts else None

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f"'{text}'")

    def _unexpected(self, wanted: str) -> SyntaxFault:
        token = self._next
        found = "the end" if token.kind == "end" else f"'{token.text[:40]}'"
        remedy = _REMEDIES.get(token.text) if token.kind in ("symbol", "name") else None
        return SyntaxFault(f"Expected {wanted}, found {found}.{' ' + remedy if remedy else ''}", token.position)

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise SyntaxFault(f"Nested more than {MAX_NESTING} levels; split it over steps.", self._next.position)

    def _or(self) -> Node:
        self._enter()
        node = self._logic("or")
        self._nesting -= 1
        return node

    def _logic(self, operator: str) -> Node:
        operands = [self._logic("and") if operator == "or" else self._not()]
        while self._accept(operator):
            operands.append(self._logic("and") if operator == "or" else self._not())
        return operands[0] if len(operands) == 1 else Logic(operator, tuple(operands))

    def _not(self) -> Node:
        if self._accept("not"):
            self._enter()
            operand = self._not()
            self._nesting -= 1
            return Not(operand)
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._arithmetic(("+", "-"))
        token = self._next
        node = left
        if token.kind == "symbol" and token.text in COMPARISONS:
            self._take()
            node = Compare(token.text, left, self._arithmetic(("+", "-")))
        elif self._accept("in"):
            node = Compare("in", left, self._arithmetic(("+", "-")))
        elif self._accept("not"):
            self._expect("in")
            node = Not(Compare("in", left, self._arithmetic(("+", "-"))))
        elif self._accept("is"):
            operator = "!=" if self._accept("not") else "=="
            self._expect("null")
            node = Compare(operator, left, Literal(None))
        after = self._next
        if node is not left and after.kind in ("symbol", "name") and after.text in COMPARISONS | {"in", "is"}:
            raise SyntaxFault("Comparisons do not chain; join two with 'and'.", after.position)
        return node

    def _arithmetic(self, operators: tuple[str, ...]) -> Node:
        first = self._operand(operators)
        rest: list[tuple[str, Node]] = []
        while token := self._accept(*operators):
            rest.append((token.text, self._operand(operators)))
        return Arithmetic(first, tuple(rest)) if rest else first

    def _operand(self, operators: tuple[str, ...]) -> Node:
        return self._arithmetic(("*", "/", "%")) if "+" in operators else self._unary()

    def _unary(self) -> Node:
        if self._accept("-"):
            self._enter()
            operand = self._unary()
            self._nesting -= 1
            return Negative(operand)
        return self._primary()

    def _primary(self) -> Node:
        token = self._next
        if token.kind == "number":
            return self._number(self._take())
        if token.kind == "text":
            return Literal(_unescape(self._take()))
        if token.kind == "name" and (token.text not in KEYWORDS or token.text in ("null", "true", "false")):
            return self._name(self._take())
        if self._accept("("):
            node = self._or()
            self._expect(")")
            return node
        if self._accept("["):
            return ListOf(self._list("]"))
        raise self._unexpected("a value")

    def _number(self, token: _Token) -> Literal:
        if token.text.isdigit():
            if len(token.text) > 18:
                raise SyntaxFault("This number has more than 18 digits.", token.position)
            return Literal(int(token.text))
        value = float(token.text)
        if not math.isfinite(value):
            raise SyntaxFault("This number is too large.", token.position)
        return Literal(value)

    def _name(self, token: _Token) -> Node:
        if token.text in ("null", "true", "false"):
            return Literal({"null": None, "true": True, "false": False}[token.text])
        if self._accept("("):
            return self._call(token)
        if token.text not in self._names:
            remedy = _REMEDIES.get(token.text) or f"Known here: {', '.join(sorted(self._names))}; text needs quotes."
            raise SyntaxFault(f"Unknown name '{token.text[:40]}'. {remedy}", token.position)
        parts: list[Node] = []
        while opening := self._accept(".", "["):
            if opening.text == "[":
                parts.append(self._or())
                self._expect("]")
            elif self._next.kind == "name":
                parts.append(Literal(self._take().text))
            else:
                raise self._unexpected("a key after '.'")
        if self._next.text == "(" and self._next.kind == "symbol":
            raise SyntaxFault("Values cannot be called; functions are written like len(x).", self._next.position)
        return Path(token.text, tuple(parts))

    def _call(self, token: _Token) -> Call:
        if token.text not in self._functions:
            known = ", ".join(sorted(self._functions))
            raise SyntaxFault(f"Unknown function '{token.text[:40]}'. Known: {known}.", token.position)
        arguments = self._list(")")
        low, high = self._functions[token.text]
        if not low <= len(arguments) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise SyntaxFault(f"{token.text}() takes {wanted} arguments, not {len(arguments)}.", token.position)
        return Call(token.text, arguments)

    def _list(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        if self._accept(closing):
            return ()
        while True:
            items.append(self._or())
            if self._accept(closing):
                return tuple(items)
            self._expect(",")


def _unescape(token: _Token) -> str:
    def replace(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise SyntaxFault(f"Unknown escape '\\{found[1]}'; a backslash is written twice.", token.position)
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", replace, token.text[1:-1], flags=re.DOTALL)
