"""Whose tax number it is: labels such as `VAT number` do not say, the names above and beside them do."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.sheet import Cell, evidence_of
from docmill.extraction.local.invoices.wording import letters
from docmill.extraction.result import FieldValue
from docmill.extraction.values.identifiers import Found, find_tax_ids, find_vat_ids

_SELLER, _BUYER = "seller_tax_id", "buyer_tax_id"
_REACH = 10.0
"""Lines below its name that a party's number may stand."""


def told_apart(
    found: Mapping[str, FieldValue], paper: Paper, seller: Option | None, buyer: Option | None
) -> dict[str, FieldValue]:
    """The fields, with a number that both parties were given left to the one whose it is.

    A number that stands with both names is kept for both: it is what is printed. One that stands with neither is the
    seller's: whoever writes an invoice prints it in the last lines, and many who get one have none.
    """
    kept = dict(found)
    if _SELLER not in kept or _BUYER not in kept or kept[_SELLER].value != kept[_BUYER].value:
        return kept
    places = list(_places(paper))
    names = {_SELLER: letters(seller.value) if seller else "", _BUYER: letters(buyer.value) if buyer else ""}
    owners = {_owner(paper, cell, names) for cell, number in places if number.value == kept[_SELLER].value}
    if {_SELLER, _BUYER} <= owners:
        return kept
    if _BUYER not in owners:
        del kept[_BUYER]
        return kept
    taken = kept.pop(_SELLER)
    for cell, number in places:
        if number.value == taken.value or number not in find_vat_ids(cell.text):
            continue
        if _owner(paper, cell, names) == _SELLER:
            evidence = evidence_of(cell.slice(number.start, number.end), cell.page)
            raw = cell.text[number.start : number.end]
            kept[_SELLER] = replace(taken, value=number.value, raw=raw, evidence=evidence, alternatives=(taken.value,))
            break
    return kept


def _places(paper: Paper) -> Iterator[tuple[Cell, Found]]:
    for cell in paper.sheet.cells:
        for number in find_tax_ids(cell.text):
            yield cell, number


def _owner(paper: Paper, cell: Cell, names: Mapping[str, str]) -> str | None:
    """The party named in the same text, else the nearest one above."""
    for place in (cell, *paper.sheet.above(cell, reach=_REACH)):
        for field, name in names.items():
            if len(name) > 3 and name in letters(place.text):
                return field
    return None
