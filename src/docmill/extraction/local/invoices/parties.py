"""Seller and buyer: what stands around every text that could be a name."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from docmill.extraction.local.invoices.form_words import is_form
from docmill.extraction.local.invoices.kinship import kinship
from docmill.extraction.local.invoices.names import Name, is_label
from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.party_labels import (
    ADDRESSED_BY,
    Marks,
    labelled_otherwise,
    marks_of,
    roles_of,
)
from docmill.extraction.local.invoices.party_words import (
    CARE_OF,
    CONTACT,
    FREE_MAIL,
    HONORIFIC,
    LEGAL_START,
    NUMBERED,
    OWNER,
    PERSON,
    POSTCODE,
    PROSE,
    REACHED,
    REGISTERED,
    TITLE,
    TRADING,
    ends_in_form,
    has_form,
    in_address,
    in_town,
)
from docmill.extraction.local.invoices.priors import prior
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.local.invoices.wording import letters, plain

_POSTCODE_ALONE = re.compile(
    r"[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}|[A-Z]\d{2}\s?[A-Z\d]{4}|[A-Z]\d[A-Z]\s?\d[A-Z]\d|\d{5,6}|\d{2}-\d{3}"
)
"""A line that is nothing but a postcode: above it stands the town."""


_DOMAIN = re.compile(r"(?:@|www\.|https?://(?:www\.)?)([\w-]+(?:\.[\w-]+)+)")
_PARTED = re.compile(r"[•·●|∙]|\s[–-]\s|,")
"""What stands between the parts of a sender in one line."""


def domains(paper: Paper) -> dict[str, list[Cell]]:
    """Names of domains in addresses of mail and web, with the cells they stand in."""
    found: dict[str, list[Cell]] = {}
    for cell in paper.sheet.cells:
        for match in _DOMAIN.finditer(cell.text.casefold()):
            parts = match[1].split(".")
            root = parts[-2] if len(parts[-2]) > 3 or len(parts) < 3 else parts[-3]
            # `seller.com` says as little as `example.com`.
            if root not in FREE_MAIL and not is_label(root):
                found.setdefault(letters(root), []).append(cell)
    return found


def options(described: Sequence[tuple[Name, Mapping[str, float]]], field: str) -> list[Option]:
    """Candidates of `seller_name` or `buyer_name`, of names that `describe` described."""
    label = "seller_label" if field == "seller_name" else "buyer_label"
    return [
        Option(
            value=name.text,
            raw=name.text,
            spans=(),
            features={**features, "prior": prior(field, features)},
            signals={"label": features[label], "repeats": 1.0 + 1.5 * features["repeats"]},
            tokens=name.tokens,
            page=name.cell.page,
        )
        for name, features in described
    ]


def describe(paper: Paper, names: Sequence[Name]) -> list[tuple[Name, Mapping[str, float]]]:
    """Each name with its features, the same for both parties."""
    roots = domains(paper)
    keys = [letters(name.text) for name in names]
    everything = [letters(cell.text) for cell in paper.sheet.cells]
    whole = "\n".join(everything)
    size = paper.sheet.height
    first_row = min((name.cell.row for name in names), default=0)
    tails = {id(name.tail) for name in names if name.tail is not None}
    towns = {town for cell in paper.sheet.cells if (town := _town(cell.text))}
    marks = marks_of(paper)
    found: list[tuple[Name, dict[str, float]]] = []
    for name, key in zip(names, keys, strict=True):
        around = _around(paper, name, marks)
        flat = plain(name.text)
        cell = name.cell
        count = max(1, whole.count(key)) if len(key) >= 4 else 1
        features = {
            "legal_form": float(_is_legal(name.text)),
            "legal_inside": float(has_form(name.text)),
            "seller_label": around["seller"],
            "holder_label": around["holder"],
            "buyer_label": around["buyer"],
            "ship_label": around["ship"],
            "top": max(0.0, 1.0 - cell.depth / 0.25) if cell.page == 1 else 0.0,
            "first": float(cell.row == first_row),
            "footer": float(cell.depth > 0.85),
            "sender_line": float(name.sender_line),
            "under_sender": around["under_sender"],
            "address_below": around["address"],
            "contact_below": around["contact"],
            "large_type": min(cell.height / size, 2.5) - 1.0,
            "repeats": min(count - 1, 3) / 1.5,
            "domain": max((_alike(root, key) for root in roots), default=0.0),
            "title": float(TITLE.within(flat)),
            "digits": float(any(char.isdigit() for char in name.text) and not _is_legal(name.text)),
            "sentence": float(len(name.text.split()) > 5 and name.lines == 1 and not has_form(name.text)),
            "lower": float(name.text[:1].islower() and "." not in name.text),
            "address": float(
                bool(POSTCODE.match(name.text))
                or name.inner
                or bool(around["over_postcode"] and not has_form(name.text))
                or (bool(any(in_address(name.text)) or key in towns) and not has_form(name.text))
            ),
            "person": float(bool(PERSON.match(flat))),
            "two_lines": float(name.lines == 2),
            "left": float(cell.left < 0.45),
            "window": float(0.08 < cell.depth < 0.38 and cell.page == 1),
            "later_page": float(cell.page > 1),
            "signature": around["signature"],
            "label_like": (2.0 if cell.text.rstrip().endswith(":") and is_label(flat) else 1.0)
            * float(
                cell.text.rstrip().endswith(":")
                or bool(around["over_value"])
                or id(cell) in marks.heads
                or id(cell) in marks.keys
                or is_form(flat)
                or NUMBERED.within(flat)
                or (is_label(flat) and max(around["buyer"], around["seller"], around["ship"]) < 0.8)
            ),
            "block_start": around["block_start"],
            "after_company": around["after_company"],
            "registered": around["registered"],
            "name_label": around["name"],
            "contact_label": around["contact_label"],
            "after_address": around["after_address"],
            "code": float(
                bool(re.fullmatch(r"[A-Z]{3}|[A-Z0-9_-]{8,}", name.text))
                and name.text.upper() == name.text
                and " " not in name.text
            ),
            "prose": float(bool(PROSE.search(name.text))),
            "honorific": float(
                (bool(HONORIFIC.match(flat)) and not around["after_company"]) or name.prefix in ADDRESSED_BY
            ),
            "care_of": float(bool(CARE_OF.match(cell.plain))),
            "care_below": around["care_below"],
            "reach_below": around["reach"],
            "owner": around["owner"],
            "other_label": around["other_label"],
            "over_company": around["over_company"],
            "right_address": (1.6 if cell.row == first_row else 1.0)
            * float(
                cell.left >= 0.45
                and cell.page == 1
                and cell.depth < 0.38
                and bool(around["address"])
                and not (around["reach"] or around["owner"] or around["ship"] > 0.5)
            ),
            "running": float(name.running and cell.depth < 0.85 and not (around["registered"] or around["seller"])),
            "tail": float(id(cell) in tails),
            "short": float(len(key) < 5),
        }
        found.append((name, features))
    for (_, features), (behind, short) in zip(found, kinship(found), strict=True):
        features["behind_brand"], features["brand"] = behind, short
    return list(found)


@lru_cache(maxsize=4096)
def _is_legal(text: str) -> bool:
    """Whether a name says what it is by law."""
    return bool(ends_in_form(text) or LEGAL_START.search(text) or TRADING.search(text))


def _alike(root: str, key: str) -> float:
    """Whether a domain belongs to a name: `medienpilot` to Medienpilot GmbH & Co. KG."""
    if len(root) < 3 or not key:
        return 0.0
    if key.startswith(root) or (len(root) > 4 and root in key):
        return 1.0
    short = min(len(root), len(key))
    return 0.7 if short >= 5 and (root[:5] == key[:5]) else 0.0


def _around(paper: Paper, name: Name, marks: Marks) -> dict[str, float]:
    """What stands above, left of and below a name."""
    cell = name.cell
    found = dict.fromkeys(
        (
            "seller",
            "holder",
            "buyer",
            "ship",
            "under_sender",
            "address",
            "contact",
            "signature",
            "registered",
            "name",
            "contact_label",
            "after_address",
            "block_start",
            "after_company",
            "over_value",
            "over_postcode",
            "over_company",
            "care_below",
            "reach",
            "owner",
            "other_label",
        ),
        0.0,
    )
    over = [other for other in paper.sheet.above(cell, reach=9.0, slack=0.01) if other.left < cell.left + 0.06]
    found |= roles_of(paper, name, over, marks)
    strongest = max(found["seller"], found["buyer"], found["ship"])
    for kind in ("seller", "buyer", "ship"):
        if found[kind] < strongest:
            found[kind] *= 0.3
    if any(_is_sender(other, paper) for other in over[:3]):
        found["under_sender"] = 1.0
    close = bool(over) and (cell.top - over[0].bottom) < 0.8 * cell.height and abs(over[0].left - cell.left) < 0.02
    found["block_start"] = float(not close or _is_sender(over[0], paper) or is_label(over[0].plain.strip(" :")))
    found["after_company"] = float(close and not found["block_start"] and has_form(over[0].text))
    if over and (cell.top - over[0].bottom) < 0.8 * cell.height and not has_form(name.text):
        found["after_address"] = float(any(in_address(over[0].text)) and not _is_sender(over[0], paper))
    if not has_form(name.text):
        found["other_label"] = float(labelled_otherwise(paper, name, over, marks))
    below = [other for other in paper.sheet.below(cell, reach=8.0) if _aligned(other, cell)]
    found["over_value"] = float(bool(below) and _over_value(paper, cell, below[0]))
    for index, other in enumerate(below[:7]):
        town, street = in_address(other.text)
        reach, registered, owner, contact = _in_company(other.plain)
        if index < 4 and (town or (index < 2 and street)):
            found["address"] = 1.0
        if reach:
            found["contact"] = 1.0
        if contact:
            found["reach"] = 1.0
        if owner and index < 5:
            found["owner"] = 1.0
        if registered and index < 5:
            found["registered"] = 1.0
        if index < 2 and CARE_OF.match(other.plain):
            found["care_below"] = 1.0
        if index < 4 and "signatory" in other.plain and name.prefix.startswith("for"):
            found["signature"] = 1.0
    _, registered, owner, _ = _in_company(cell.plain)
    if registered:
        found["registered"] = 1.0
    if owner:
        found["owner"] = 1.0
    if below and below[0].top - cell.bottom < 0.9 * cell.height:
        found["over_postcode"] = float(bool(_POSTCODE_ALONE.fullmatch(below[0].text)))
        company = ends_in_form(below[0].text) and len(below[0].tokens) > 2
        found["over_company"] = float(company and not has_form(name.text) and 2 <= len(name.text.split()) <= 3)
    if name.prefix == "for" and cell.depth > 0.5:
        found["signature"] = 1.0
    if found["signature"]:
        found["seller"], found["buyer"] = max(found["seller"], found["buyer"]), 0.0
    return found


def _aligned(one: Cell, other: Cell) -> bool:
    """Whether cells above one another are lines of one block: they begin, end, or have their middles in line."""
    return (
        abs(one.left - other.left) < 0.03
        or abs(one.right - other.right) < 0.004
        or abs(one.left + one.right - other.left - other.right) < 0.012
    )


def _over_value(paper: Paper, cell: Cell, below: Cell) -> bool:
    """Whether a cell is the label of what stands right beneath it: a date, or one word with a digit."""
    near = below.top - cell.bottom < 0.9 * max(cell.height, paper.sheet.height) and abs(below.left - cell.left) < 0.005
    if not near or has_form(cell.text):
        return False
    (only, *more) = below.tokens
    return (not more and any(map(str.isdigit, only.text))) or id(below) in paper.dates_of


@lru_cache(maxsize=4096)
def _town(text: str) -> str:
    """The letters of a line that is nothing but a town and its postcode, such as `New Delhi - 110001`."""
    if not in_address(text)[0] or has_form(text):
        return ""
    words = re.findall(r"[^\W\d_]{2,}", text)
    return letters(" ".join(words)) if 1 <= len(words) <= 3 else ""


@lru_cache(maxsize=4096)
def _in_company(text: str) -> tuple[bool, bool, bool, bool]:
    """What a plain line says: how to reach somebody or by which number, how a company is registered, what only the
    seller says of itself, and how to reach somebody."""
    registered = REGISTERED.within(text)
    contact = CONTACT.within(text)
    return contact, registered, registered and OWNER.within(text), contact and REACHED.within(text)


def _is_sender(cell: Cell, paper: Paper) -> bool:
    row = paper.sheet.rows[cell.row]
    text = " ".join([other.text for other in row])
    return len(text) > 20 and cell.depth < 0.4 and in_town(text) and _PARTED.search(text) is not None
