"""Seller and buyer: what stands around every text that could be a name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from docmill.extraction.local.invoices.names import Name, is_label
from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.party_words import (
    ADDRESS,
    BUYER,
    CONTACT,
    CONTACT_PERSON,
    FREE_MAIL,
    HOLDER,
    HONORIFIC,
    LEGAL,
    LEGAL_END,
    NUMBERED,
    PERSON,
    POSTCODE,
    PROSE,
    REFERENCE,
    REGISTERED,
    SELLER,
    SHIP,
    STREET,
    TITLE,
)
from docmill.extraction.local.invoices.priors import prior
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.local.invoices.wording import letters, plain

_SEPARATED = re.compile(r"[•·●|∙]|\s[–-]\s|,")
_DOMAIN = re.compile(r"(?:@|www\.|https?://(?:www\.)?)([\w-]+(?:\.[\w-]+)+)")


def domains(paper: Paper) -> dict[str, list[Cell]]:
    """Names of domains in addresses of mail and web, with the cells they stand in."""
    found: dict[str, list[Cell]] = {}
    for cell in paper.sheet.cells:
        text = cell.text.casefold()
        for match in _DOMAIN.finditer(text) if "@" in text or "www." in text or "://" in text else ():
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
    towns = {town for cell in paper.sheet.cells if cell.numbered and (town := _town(cell.text))}
    found: list[tuple[Name, Mapping[str, float]]] = []
    for name, key in zip(names, keys, strict=True):
        around = _around(paper, name)
        flat = plain(name.text)
        cell = name.cell
        count = max(1, whole.count(key)) if len(key) >= 4 else 1
        legal = LEGAL.within(name.text)
        features = {
            "legal_form": float(legal and LEGAL_END.within(name.text)),
            "legal_inside": float(legal),
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
            "digits": float(any(map(str.isdigit, name.text))),
            "sentence": float(len(name.text.split()) > 5 and not legal),
            "lower": float(name.text[:1].islower() and "." not in name.text),
            "address": float(
                bool(POSTCODE.match(name.text))
                or (not legal and bool(POSTCODE.search(name.text) or STREET.within(name.text) or key in towns))
            ),
            "person": float(bool(PERSON.match(flat))),
            "two_lines": float(name.lines == 2),
            "left": float(cell.left < 0.45),
            "window": float(0.08 < cell.depth < 0.38 and cell.page == 1),
            "later_page": float(cell.page > 1),
            "signature": around["signature"],
            "label_like": float(
                cell.text.rstrip().endswith(":")
                or bool(around["over_value"])
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
            "honorific": float(bool(HONORIFIC.match(flat))),
            "tail": float(id(cell) in tails),
            "short": float(len(key) < 5),
        }
        found.append((name, features))
    return found


def _alike(root: str, key: str) -> float:
    """Whether a domain belongs to a name: `medienpilot` to Medienpilot GmbH & Co. KG."""
    if len(root) < 3 or not key:
        return 0.0
    if key.startswith(root) or (len(root) > 4 and root in key):
        return 1.0
    short = min(len(root), len(key))
    return 0.7 if short >= 5 and (root[:5] == key[:5]) else 0.0


def _around(paper: Paper, name: Name) -> dict[str, float]:
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
        ),
        0.0,
    )
    over = [other for other in paper.sheet.above(cell, reach=9.0, slack=0.01) if other.left < cell.left + 0.06]
    for text, weight in _labels(paper, name, over):
        role = _role(text)
        if role == "contact_label" and weight < 1.0:
            role = None
        if role is not None:
            found[role] = max(found[role], 1.0 if role == "name" else weight)
    strongest = max(found["seller"], found["buyer"], found["ship"])
    for kind in ("seller", "buyer", "ship"):
        if found[kind] < strongest:
            found[kind] *= 0.3
    if any(_is_sender(other, paper) for other in over[:3]):
        found["under_sender"] = 1.0
    close = bool(over) and (cell.top - over[0].bottom) < 0.8 * cell.height and abs(over[0].left - cell.left) < 0.02
    found["block_start"] = float(not close or _is_sender(over[0], paper) or is_label(over[0].plain.strip(" :")))
    found["after_company"] = float(close and not found["block_start"] and LEGAL.within(over[0].text))
    if over and (cell.top - over[0].bottom) < 0.8 * cell.height and not LEGAL.within(name.text):
        found["after_address"] = float(any(_in_address(over[0].text)) and not _is_sender(over[0], paper))
    below = [other for other in paper.sheet.below(cell, reach=8.0) if abs(other.left - cell.left) < 0.03]
    found["over_value"] = float(bool(below) and _over_value(paper, cell, below[0]))
    for index, other in enumerate(below[:7]):
        town, street = _in_address(other.text)
        reach, registered = _in_company(other.plain)
        if index < 4 and (town or (index < 2 and street)):
            found["address"] = 1.0
        if reach:
            found["contact"] = 1.0
        if registered and index < 5:
            found["registered"] = 1.0
        if index < 4 and "signatory" in other.plain and name.prefix.startswith("for"):
            found["signature"] = 1.0
    if _in_company(cell.plain)[1]:
        found["registered"] = 1.0
    return found


def _over_value(paper: Paper, cell: Cell, below: Cell) -> bool:
    """Whether a cell is the label of what stands right beneath it: a date, or one word with a digit."""
    near = below.top - cell.bottom < 0.9 * max(cell.height, paper.sheet.height) and abs(below.left - cell.left) < 0.005
    if not near or LEGAL.within(cell.text):
        return False
    (only, *more) = below.tokens
    return (not more and any(map(str.isdigit, only.text))) or id(below) in paper.dates_of


@lru_cache(maxsize=4096)
def _role(text: str) -> str | None:
    """What a label says about the name beside it."""
    if len(text) > 45 or (REFERENCE.within(text) and not ADDRESS.within(text)):
        return None
    if text.strip(" :.") in _NAMED:
        return "name"
    for role, phrases in _ROLES:
        if phrases.within(text):
            return role
    return None


_NAMED = frozenset(
    {"name", "nom", "firma", "firmenname", "company", "company name", "raison sociale", "ragione sociale"}
)
_ROLES = (
    ("contact_label", CONTACT_PERSON),
    ("ship", SHIP),
    ("buyer", BUYER),
    ("seller", SELLER),
    ("holder", HOLDER),
)


@lru_cache(maxsize=4096)
def _in_address(text: str) -> tuple[bool, bool]:
    """Whether a line holds the town of an address, and whether it holds the street."""
    return bool(POSTCODE.search(text)), STREET.within(text)


@lru_cache(maxsize=4096)
def _town(text: str) -> str:
    """The letters of a line that is nothing but a town and its postcode, such as `New Delhi - 110001`."""
    if not POSTCODE.search(text) or LEGAL.within(text):
        return ""
    words = re.findall(r"[^\W\d_]{2,}", text)
    return letters(" ".join(words)) if 1 <= len(words) <= 3 else ""


@lru_cache(maxsize=4096)
def _in_company(text: str) -> tuple[bool, bool]:
    """Whether a plain line says how to reach somebody, and whether it says how a company is registered."""
    return CONTACT.within(text), REGISTERED.within(text)


def _labels(paper: Paper, name: Name, over: Sequence[Cell]) -> Iterator[tuple[str, float]]:
    """Texts that may say whose name it is, with how close they are."""
    cell = name.cell
    if name.prefix:
        yield name.prefix, 1.0
        if _role(name.prefix) is not None:
            return
    before = paper.sheet.before(cell)
    if before and not _is_address(before[0]):
        yield before[0].plain, 0.3 if _role(before[0].plain) and _heads(paper, before[0]) else 1.0
    last = cell
    for steps, other in enumerate(over[:5]):
        if (last.top - other.bottom) / max(paper.sheet.height, 1e-9) > 3.2:
            break
        weight = (1.0, 0.8, 0.6, 0.45, 0.35)[steps]
        yield other.plain, weight
        aside = paper.sheet.before(other)
        if aside and steps < 4:
            yield aside[0].plain, weight * 0.6
        last = other
    # The heading of a section stands alone in its row and need not stand above.
    for row in reversed(paper.sheet.rows[max(0, cell.row - 7) : cell.row]):
        if row[0].page != cell.page:
            break
        if len(row) == 1 and row[0].left <= cell.left + 0.01 and is_label(row[0].plain.strip(" :")):
            yield row[0].plain, 0.9
            break


def _heads(paper: Paper, label: Cell) -> bool:
    """Whether a label stands over a name of its own, and is not about the name in the next column."""
    below = [cell for cell in paper.sheet.below(label, reach=0.9) if abs(cell.left - label.left) < 0.01]
    return bool(below) and below[0].worded and ":" not in below[0].text and not is_label(below[0].plain)


def _is_address(cell: Cell) -> bool:
    """Whether a cell is a line of somebody's address, which says nothing about the name in the next column."""
    return ":" not in cell.text and any(_in_address(cell.text))


def _is_sender(cell: Cell, paper: Paper) -> bool:
    if cell.depth >= 0.4:
        return False
    text = " ".join([other.text for other in paper.sheet.rows[cell.row]])
    return len(text) > 20 and bool(_SEPARATED.search(text)) and bool(POSTCODE.search(text))
