"""The number of the invoice: candidates with features."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.paper import Label, Option, Paper, meanings
from docmill.extraction.local.invoices.priors import prior
from docmill.extraction.local.invoices.sheet import Cell, Token
from docmill.extraction.local.invoices.spans import DateSpan, Number
from docmill.extraction.local.invoices.vocabulary import NUMBER_LABELS
from docmill.extraction.local.invoices.wording import plain

_YEAR = re.compile(r"(?:19|20)\d\d")
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{10,30}")
_GOES_ON = re.compile(r"-\d{2,6}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w./\\#&-]*")


def options(paper: Paper, items: Items) -> list[Option]:
    """Candidates: every word with a digit that is neither an amount nor a date, nor stands in a row that was sold.

    Rows are known to be such when their amounts make a printed sum; a long invoice has hundreds of words in them.
    """
    places = list(_places(paper))
    counts = Counter(place.value for place in places)
    sold = {row for item in items.items for row in item.rows} - items.shared if items.adds_up else set()
    found = []
    for cell, start, end, tokens, value, head in places:
        if cell.row in sold:
            continue
        labels = _labels(paper, cell, start, end, head)
        means = meanings(NUMBER_LABELS, labels)
        own = means.get("number", 0.0)
        rival = max((sure for name, sure in means.items() if name != "number"), default=0.0)
        features = {
            "label": own,
            "label_strong": float(own >= 0.9),
            "rival": rival,
            "rival_stronger": float(rival > own),
            "unlabelled": float(not means),
            "repeats": min(counts[value] - 1, 3) / 1.5,
            "top": max(0.0, 1.0 - 2 * cell.depth) if cell.page == 1 else 0.0,
            "long": float(len(value) > 25),
            "short": float(len(value) < 3),
            "in_items": float(cell.row in items.rows),
            "letters_and_digits": float(any(map(str.isalpha, value))),
            "year": float(bool(_YEAR.fullmatch(value))),
            "later_page": float(cell.page > 1),
            "sentence": float(len(cell.tokens) > 10),
            "after_label": float(bool(labels) and labels[0].weight == 1.0 and own >= 0.7),
            "iban": float(bool(_IBAN.fullmatch(value))),
        }
        features["prior"] = prior("invoice_number", features)
        found.append(
            Option(
                value=value,
                raw=" ".join(token.text for token in tokens),
                spans=(),
                features=features,
                signals={"label": own, "repeats": float(counts[value]), "open": _open(paper, cell, tokens[-1])},
                tokens=tokens,
                page=cell.page,
            )
        )
    return found


class _Place(NamedTuple):
    """Where something that looks like a number of something stands."""

    cell: Cell
    start: int
    end: int
    tokens: tuple[Token, ...]
    value: str
    head: str
    """What is glued to its front: `Nr.:4711`."""


def _places(paper: Paper) -> Iterator[_Place]:
    for cell in paper.sheet.cells:
        if not any(map(str.isdigit, cell.text)):
            continue
        at = 0
        spans: list[Number | DateSpan] = [*paper.dates_of.get(id(cell), ())]
        spans += [number for number in paper.numbers_of.get(id(cell), ()) if number.money or number.percent]
        if spans and len(cell.tokens) == 1:
            continue
        for index, token in enumerate(cell.tokens):
            start, end = at, at + len(token.text)
            at = end + 1
            if spans and any(span.start < end and start < span.end for span in spans):
                continue
            text = token.text
            head = ""
            if ":" in text[:-1]:
                head, text = text.rsplit(":", 1)
            elif "#" in text[1:]:
                head, text = text.rsplit("#", 1)
            text = text.lstrip("#:(").rstrip(".,:;)")
            follower = cell.tokens[index + 1] if index + 1 < len(cell.tokens) else None
            tokens: tuple[Token, ...] = (token,)
            if follower and _GOES_ON.fullmatch(follower.text) and follower.left - token.right < token.height:
                text, tokens = text + follower.text, (token, follower)
            if not any(map(str.isdigit, text)) or not _IDENTIFIER.fullmatch(text) or len(text) > 40:
                continue
            yield _Place(cell, start, end, tokens, text, head)


def _open(paper: Paper, cell: Cell, last: Token) -> float:
    """Whether words follow that may belong to it: `210111 mit LV vom 30.05.2026`. One word before a date does not."""
    if last is cell.tokens[-1]:
        return 0.0
    place = cell.tokens.index(last) + 1
    start = sum(len(token.text) + 1 for token in cell.tokens[:place])
    end = min((span.start for span in paper.dates_of.get(id(cell), ()) if span.start >= start), default=len(cell.text))
    words = sum(any(map(str.isalpha, word)) for word in cell.text[start:end].split())
    return float(words >= 2)


def _labels(paper: Paper, cell: Cell, start: int, end: int, head: str) -> list[Label]:
    """Unlike an amount, a number may have other numbers in its label: `Handelsrechnung (380) Nr. 4711`."""
    before = plain(f"{cell.text[:start]} {head}".strip())[-45:]
    found = []
    if any(map(str.isalpha, before)) or before.endswith(("#", "°")):
        found.append(Label(text=before, weight=1.0))
        if cell.text[start : start + 1] == "#":
            found.append(Label(text=f"{before} #", weight=1.0))
    rest = [label for label in paper.labels(cell, start, end) if label.weight < 1.0]
    if found:
        rest = [Label(text=label.text, weight=label.weight * 0.3) for label in rest]
    return found + rest
