"""Addresses of parties: the lines below a name that is known, as far as they look like an address."""

import re
from collections.abc import Iterator

from docmill.documents.reading import Box
from docmill.extraction.pages import PageLine, Pages, Place
from docmill.extraction.result import FieldValue, Reader
from docmill.extraction.values.identifiers import find_addresses, find_ibans, find_phones, find_vat_ids
from docmill.extraction.values.texts import bare, clean

_LINES = 6
"""Below a name that are looked at."""
_MOST = 300
"""Lines about a name that are looked at."""
_POSTCODE = re.compile(
    r"(?<![\w.,-])(?:[A-Z]{1,2}[- ])?(?:\d{5}(?:-\d{4})?|\d{4}\s?[A-Z]{0,2}|\d{3}\s\d{2}|\d{2}-\d{3}|\d{6}|"
    r"[A-Z]{1,2}\d[\dA-Z]?\s?\d[A-Z]{2}|[A-Z]\d[A-Z]\s?\d[A-Z]\d)(?![\w.,]\d)\b"
)
_LABELLED = re.compile(
    r"^[^\d:]{2,30}:|\b(?:tel|fax|phone|e-?mail|www|iban|bic|vat|ust|siret|datum|date)\b", re.IGNORECASE
)
_APART = re.compile(r"\s[●•·|*–—-]\s|[●•·|]|,\s")
_NAMES = """
    germany deutschland allemagne germania france frankreich francia italy italia italie italien austria osterreich
    autriche switzerland schweiz suisse svizzera spain espana espagne spanien portugal netherlands nederland
    niederlande belgium belgie belgique belgien luxembourg luxemburg poland polska polen czechia cesko denmark danmark
    sweden sverige norway norge finland suomi ireland uk usa england scotland wales malaysia singapore india indonesia
    australia canada japan china hungary magyarorszag romania greece slovakia slovenia croatia brasil mexico
"""
_COUNTRIES = frozenset(_NAMES.split())
"""Printed below the town, as `texts.bare` folds them."""
_SURE = 0.75
_PLACES = 12
"""Of a name that are looked at."""


def address_beneath(name: FieldValue, pages: Pages) -> FieldValue | None:
    """The address of the party of this name; None if no lines with a postcode stand with it."""
    for found in name.evidence[:_PLACES]:
        box = found.box
        # Nothing further away than the block below it is looked at.
        low, high = box.top - 0.02, box.bottom + _LINES * 3.5 * max(box.height, 0.02)
        lines = [line for line in pages.by_page.get(found.page, ()) if low <= line.box.middle <= high][:_MOST]
        for texts in (_behind(box, lines), _beneath(box, lines)):
            if texts:
                return _value(texts)
    return None


def _value(places: list[Place]) -> FieldValue:
    value = ", ".join(clean(place.text).strip(" ,;|●•·") for place in places)
    return FieldValue(
        value=clean(value),
        raw="\n".join(place.text for place in places),
        confidence=_SURE,
        evidence=tuple(place.evidence for place in places),
        reader=Reader.LOCAL,
        signals={"label": 0.0, "repeats": 1.0, "score": _SURE},
    )


def _behind(box: Box, lines: list[PageLine]) -> list[Place]:
    """The rest of the line the name stands in, as above the window of an envelope."""
    for line in lines:
        if abs(line.box.middle - box.middle) > 0.3 * max(box.height, 0.004) or line.box.right < box.right + 0.05:
            continue
        parts, at = [], 0
        for gap in [*_APART.finditer(line.text), None]:
            end = gap.start() if gap else len(line.text)
            place = line.place(at, end)
            if place.text and place.box.left >= box.right - 0.01 and not _is_other(place.text):
                parts.append(place)
            at = gap.end() if gap else end
        until = next((index for index, part in enumerate(parts) if _POSTCODE.search(part.text)), None)
        if until is not None and until <= 3:
            return parts[: until + 1]
    return []


def _beneath(box: Box, lines: list[PageLine]) -> list[Place]:
    """The block of lines below, until the one with the postcode, and a country after it."""
    taken: list[Place] = []
    town = False
    for line in _column(box, lines):
        text = line.text
        if town:
            if _is_country(text):
                taken.append(line.place(0, len(text)))
            break
        if _is_other(text):
            break
        taken.append(line.place(0, len(text)))
        town = bool(_POSTCODE.search(text))
    return taken if town else []


def _column(box: Box, lines: list[PageLine]) -> Iterator[PageLine]:
    """Lines below that begin at the same edge (or have the same middle), each close under the last."""
    last = box
    for _ in range(_LINES):
        near = [
            line
            for line in lines
            if 0 < line.box.middle - last.middle <= 3.2 * max(last.height, 0.006)
            and (
                abs(line.box.left - box.left) < 0.012
                or abs(line.box.left + line.box.right - box.left - box.right) < 0.02
            )
        ]
        if not near:
            return
        line = min(near, key=lambda one: one.box.middle)
        yield line
        last = line.box


def _is_country(text: str) -> bool:
    kept = text.strip(" .,;")
    return (len(kept) == 2 and kept.isupper()) or bare(kept) in _COUNTRIES or bare(kept).startswith("united ")


def _is_other(text: str) -> bool:
    """Whether a line is something else than a part of an address."""
    return bool(
        _LABELLED.search(text)
        or find_addresses(text)
        or find_vat_ids(text)
        or find_ibans(text)
        or (find_phones(text) and not _POSTCODE.search(text))
    )
