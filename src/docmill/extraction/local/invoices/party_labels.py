"""What labels say about the names beside and beneath them: whose they are, or that they are no party's."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from docmill.extraction.local.invoices.form_words import is_form
from docmill.extraction.local.invoices.names import Name, is_label
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.party_words import (
    ADDRESS,
    BUYER,
    CONTACT_PERSON,
    GUEST,
    HOLDER,
    REFERENCE,
    SELLER,
    SHIP,
    has_form,
    in_address,
)
from docmill.extraction.local.invoices.printed_forms import heads_in, keys_in
from docmill.extraction.local.invoices.sheet import Cell

_NAMED = frozenset(
    {
        "name",
        "nom",
        "naam",
        "navn",
        "namn",
        "nombre",
        "nome",
        "nazwa",
        "nazev",
        "firma",
        "firmenname",
        "company",
        "company name",
        "raison sociale",
        "ragione sociale",
    }
)
_TO = frozenset({"to", "an", "aan", "till", "til", "pour"})
_ROUTE = _TO | {"from", "to", "von", "nach", "de", "da", "a", "van", "naar", "fran"}
"""Heads of columns of a timetable, too, as long as nobody's address stands beneath them."""
_VALUED = re.compile(r":\s*[\w-]*\d")
"""A label with its number behind it: it says nothing about the lines beneath."""
_ACCOUNT = frozenset({"account", "konto", "compte", "cuenta"})
"""Whose account it is, over an address; of a bank further down."""
_HEAD = 0.4
_SLIP = 0.75
"""How far down a page the slip begins that is sent with a payment."""
_ROLES = (
    ("contact_label", CONTACT_PERSON),
    ("ship", SHIP),
    ("buyer", BUYER),
    ("seller", SELLER),
    ("holder", HOLDER),
)
_FORMAL = "m/s m/s. messrs messrs. d. da. dna. d.a d.a. don dona eheleute spett spett. spett.le spettle firma fa."
ADDRESSED_BY = frozenset(_FORMAL.split())
"""Forms of address before a name; nobody writes them to himself."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Cells that are labels by where they stand, by identity."""

    heads: set[int]
    keys: set[int]


def marks_of(paper: Paper) -> Marks:
    """The labels of a document by where they stand."""
    return Marks(heads=heads_in(paper), keys=keys_in(paper))


def roles_of(paper: Paper, name: Name, over: Sequence[Cell], marks: Marks) -> dict[str, float]:
    """What the labels around a name say, each as far as it is the name's own."""
    found: dict[str, float] = {}
    for text, near in _labels(paper, name, over, marks):
        role, weight = role_of(text), near
        if role == "buyer" and name.cell.depth > _SLIP and text.strip(" :") in _TO:
            # On the slip at the foot of the page the payment is addressed, not the invoice.
            role = "seller"
        if role is None and text.strip(" :") in _ACCOUNT and name.cell.depth < _HEAD:
            role = "buyer"
        if role == "buyer" and GUEST.within(text):
            weight *= 0.5
        if role is None or (role == "contact_label" and near < 1.0):
            continue
        found[role] = max(found.get(role, 0.0), 1.0 if role == "name" else weight)
    return found


def labelled_otherwise(paper: Paper, name: Name, over: Sequence[Cell], marks: Marks) -> bool:
    """Whether the label of a text is one of something else than a party, such as a bank, a room or a way to pay."""
    direct = name.prefix or next(
        (other.plain for other in paper.sheet.before(name.cell)[:1] if id(other) in marks.keys), ""
    )
    if direct and role_of(direct) is None and direct not in ADDRESSED_BY:
        return True
    return bool(over) and id(over[0]) in marks.heads and role_of(over[0].plain) is None


@lru_cache(maxsize=4096)
def role_of(text: str) -> str | None:
    """What a label says about the name beside it."""
    if len(text) > 45 or (REFERENCE.within(text) and not ADDRESS.within(text)):
        return None
    if text.strip(" :.") in _NAMED:
        return "name"
    for role, pattern in _ROLES:
        if (seen := pattern.search(text)) and (role != "contact_label" or len(text) < 26 or not seen.start()):
            return role
    return None


def _labels(paper: Paper, name: Name, over: Sequence[Cell], marks: Marks) -> Iterator[tuple[str, float]]:
    """Texts that may say whose name it is, with how close they are."""
    cell = name.cell
    if name.prefix:
        yield name.prefix, 1.0
        if role_of(name.prefix) is not None:
            return
    before = paper.sheet.before(cell)
    if before and not _is_address(before[0]) and id(before[0]) not in marks.heads:
        yield before[0].plain, 0.3 if role_of(before[0].plain) and _heads(paper, before[0], marks) else 1.0
    last = cell
    for steps, other in enumerate(over[:5]):
        if (last.top - other.bottom) / max(paper.sheet.height, 1e-9) > 3.2:
            break
        weight = (1.0, 0.8, 0.6, 0.45, 0.35)[steps]
        if not _VALUED.search(other.text) and not _of_route(paper, name, other, marks):
            yield other.plain, weight
        aside = paper.sheet.before(other)
        if aside and steps < 4 and id(aside[0]) not in marks.heads:
            yield aside[0].plain, weight * 0.6
        last = other
    # The heading of a section stands alone in its row and need not stand above.
    for row in reversed(paper.sheet.rows[max(0, cell.row - 7) : cell.row]):
        if row[0].page != cell.page:
            break
        if len(row) == 1 and row[0].left <= cell.left + 0.01 and is_label(row[0].plain.strip(" :")):
            yield row[0].plain, 0.9
            break


def _of_route(paper: Paper, name: Name, label: Cell, marks: Marks) -> bool:
    """Whether `From` and `To` over a name are those of a journey."""
    if label.plain.strip(" :") not in _ROUTE or id(label) not in marks.heads or has_form(name.text):
        return False
    return not any(_is_address(cell) for cell in paper.sheet.below(name.cell, reach=2.5))


def _heads(paper: Paper, label: Cell, marks: Marks) -> bool:
    """Whether a label stands over a name of its own, and is not about the name in the next column."""
    below = [cell for cell in paper.sheet.below(label, reach=0.9) if abs(cell.left - label.left) < 0.01]
    if not below or not below[0].worded or ":" in below[0].text or id(below[0]) in marks.keys:
        return False
    return not (is_label(below[0].plain) or is_form(below[0].plain))


def _is_address(cell: Cell) -> bool:
    """Whether a cell is a line of somebody's address, which says nothing about the name in the next column."""
    return ":" not in cell.text and any(in_address(cell.text))
