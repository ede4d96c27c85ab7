"""Filling the variables of a prompt from an entity. Pure.

What a value contains is data: it is put in as it is and never looked at again for variables.
"""

from collections.abc import Iterator, Mapping
from typing import assert_never

from docmill.model.errors import PermanentError
from docmill.prompts.syntax import Kind, Variable, parse, variables
from docmill.prompts.values import lookup, words

LONGEST_RENDERED = 2_000_000
"""Characters of a rendered prompt: more than models read. It also bounds the work, whatever the entity is like."""


class PromptTooLong(PermanentError):
    """With the values of this entity the prompt is longer than any model would read."""

    code = "prompt_too_long"


def render(text: str, *, entity: Mapping[str, object] | None, entity_id: str, entity_type: str) -> str:
    """The text with its variables filled in.

    Missing and null values become the empty string; what is malformed stands for itself. Raises nothing but
    `PromptTooLong`.
    """
    filling = _Filling(entity, entity_id, entity_type)
    return "".join(part if isinstance(part, str) else filling.text(part) for part in parse(text).parts)


def blanks(text: str, *, entity: Mapping[str, object] | None, entity_id: str, entity_type: str) -> tuple[Variable, ...]:
    """The variables for which this entity has nothing to say."""
    filling = _Filling(entity, entity_id, entity_type)
    return tuple(variable for variable in variables(text) if not filling.text(variable))


class _Filling:
    """Words for variables, within a bound on the characters produced and the items looked at."""

    def __init__(self, entity: Mapping[str, object] | None, entity_id: str, entity_type: str) -> None:
        self._entity = entity
        self._plain = {Kind.ENTITY_ID: entity_id, Kind.ENTITY_TYPE: entity_type}
        self._left = LONGEST_RENDERED
        self._known: dict[Variable, str] = {}

    def text(self, variable: Variable) -> str:
        known = self._known.get(variable)
        if known is None:
            # Spent piece by piece: what would be too long is never made.
            known = self._known[variable] = "".join(self._spent(self._pieces(variable)))
        else:
            self._spend(len(known))
        return known

    def _spent(self, pieces: Iterator[str]) -> Iterator[str]:
        for piece in pieces:
            # An empty piece was work too.
            self._spend(len(piece) + 1)
            yield piece

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise PromptTooLong(
                f"With this entity the prompt would exceed {LONGEST_RENDERED:,} characters; "
                "name the fields it needs instead of all there is."
            )

    def _pieces(self, variable: Variable) -> Iterator[str]:
        match variable.kind:
            case Kind.ENTITY_ID | Kind.ENTITY_TYPE:
                yield self._plain[variable.kind]
            case Kind.VALUE:
                yield from words(lookup(self._entity, variable.path))
            case Kind.OBJECT:
                yield from _labelled([lookup(self._entity, variable.path)], variable)
            case Kind.ARRAY:
                items = lookup(self._entity, variable.path)
                if isinstance(items, list | tuple):
                    yield from _labelled(items, variable)
            case _:
                assert_never(variable.kind)


def _labelled(items: list[object] | tuple[object, ...], variable: Variable) -> Iterator[str]:
    """`id: 1, label: a, id: 2, label: b`: the fields of the mappings among the items."""
    paths = [(field, field.split(".")) for field in variable.fields]
    before = ""
    for item in items:
        if not isinstance(item, Mapping):
            yield ""
            continue
        for label, path in paths:
            yield f"{before}{label}: "
            yield from words(lookup(item, path))
            before = ", "
