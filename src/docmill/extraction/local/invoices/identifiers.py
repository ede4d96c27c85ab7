"""The number of the invoice: candidates with features."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.paper import Label, Option, Paper, meanings
from docmill.extraction.local.invoices.priors import prior
from docmill.extraction.local.invoices.sheet import Cell, Token
from docmill.extraction.local.invoices.spans import DateSpan, Number
from docmill.extraction.local.invoices.titles import NUMBER, SHORT
from docmill.extraction.local.invoices.vocabulary import NUMBER_LABELS
from docmill.extraction.local.invoices.wording import plain
from docmill.extraction.values.currencies import CODES
from docmill.extraction.values.identifiers import iban

_YEAR = re.compile(r"(?:19|20)\d\d")
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{10,30}")
_LONG = 17
"""Signs of what may be an IBAN: a longer one is, even if misread; a shorter one if its checksum is right."""
_GOES_ON = re.compile(r"-\d{2,6}")
_PREFIX = re.compile(r"[A-Z]{1,5}[-/.]?")
_GROUP = re.compile(r"(?=[^\d]*\d)[A-Z0-9][A-Z0-9./-]{0,11}")
_MOST_GROUPS = 5
_NOT_A_PREFIX = CODES | {
    *("NO", "NR", "N", "C", "NUM", "NRO", "ID", "REF", "CODE", "PAGE", "SEITE", "PAG", "PO", "TEL", "FAX"),
    *(
        "DATE",
        "DATUM",
        "DATA",
        "DU",
        "VOM",
        "VON",
        "DEL",
        "DE",
        "OF",
        "DEN",
        "FOR",
        "AND",
        "ET",
        "UND",
    ),
    *("TAX", "VAT", "TVA", "IVA", "BTW", "MWST", "UST", "MOMS", "BILL", "NOTE", "MEMO"),
}
"""Capitals before a number that are words of their own, not the beginning of it."""
_DATED = re.compile(
    r"dat[aeo]\b|datum|fecha|\bday|dag\b|paiva|kelt|\b(?:vom|du|del|de|af|av|of|van|den|am|le|il|z|ze)\W*$"
)
_YEAR_FIRST = re.compile(r"(?:19|20)\d\d[./]\d{1,2}(?:[./]\d{1,2})?")
_BARE = re.compile(rf"^\W*(?:{NUMBER}|{SHORT})\W*$")
_SURE = 0.7
"""From here on a label says that the number of the invoice follows."""
_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w./\\#&-]*")


def options(paper: Paper, items: Items) -> list[Option]:
    """Candidates: every word with a digit that is neither an amount nor a date, nor stands in a row that was sold.

    Rows are known to be such when their amounts make a printed sum; a long invoice has hundreds of words in them.
    """
    sold = {row for item in items.items for row in item.rows} - items.shared if items.adds_up else set()
    places = list(_places(paper, sold))
    counts = Counter(place.value for place in places)
    found = []
    for cell, start, end, tokens, value, head in places:
        if cell.row in sold and not _may_head(cell):
            continue
        labels = _labels(paper, cell, start, end, head)
        means = meanings(NUMBER_LABELS, labels)
        own = means.get("number", 0.0)
        if cell.row in sold and own < _SURE:
            continue
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
            "iban": float(bool(_IBAN.fullmatch(value)) and (len(value) > _LONG or iban(value) is not None)),
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


def _may_head(cell: Cell) -> bool:
    """Whether a row of amounts may belong to the head of the paper: a box with number, date and what is due."""
    return cell.page == 1 and cell.depth < 0.4


def _places(paper: Paper, sold: Set[int]) -> Iterator[_Place]:
    for cell in paper.sheet.cells:
        if cell.text[-1] in "/-" and len(cell.tokens) == 1 and (torn := _torn(paper, cell)) is not None:
            yield torn
            continue
        if not cell.numbered:
            continue
        at = 0
        spans: list[Number | DateSpan] = [*paper.dates_of.get(id(cell), ())]
        spans += [number for number in paper.numbers_of.get(id(cell), ()) if number.money or number.percent]
        taken = 0
        plainly = cell.row in sold and not _may_head(cell)
        for index, token in enumerate(cell.tokens):
            start, end = at, at + len(token.text)
            at = end + 1
            if start < taken:
                continue
            if not plainly and (groups := _groups(paper, cell, index, start, spans)) is not None:
                yield groups
                taken = groups.end
                continue
            if spans and any(span.start < end and start < span.end for span in spans):
                whole = not plainly and any((span.start, span.end) == (start, end) for span in spans)
                if whole and _numbered(paper, cell, start, end):
                    yield _Place(cell, start, end, (token,), token.text, "")
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


def _torn(paper: Paper, cell: Cell) -> _Place | None:
    """A number that goes on in the next line: `FS/` over `2024/11/0917`."""
    for below in paper.sheet.below(cell, reach=0.9)[:1]:
        value = cell.text + below.text
        near = below.numbered and len(below.tokens) == 1 and abs(below.left - cell.left) < 0.5 * cell.height
        if near and _IDENTIFIER.fullmatch(value) and len(value) <= 40:
            return _Place(cell, 0, len(cell.text), (*cell.tokens, *below.tokens), value, "")
    return None


def _groups(paper: Paper, cell: Cell, index: int, start: int, spans: Sequence[Number | DateSpan]) -> _Place | None:
    """A number that is printed with blanks, if one begins here and a label says so: `RE 2025 0815`, `71 3302 44`."""
    tokens = cell.tokens
    if index + 1 == len(tokens) or not (_prefix(tokens[index].text) or _GROUP.fullmatch(tokens[index].text)):
        return None
    end, groups, last = start, 0, index
    for token in tokens[index : index + _MOST_GROUPS]:
        kept = token.text.rstrip(".,:;)")
        if not (_GROUP.fullmatch(kept) or (last == index and _prefix(kept))):
            break
        if any(span.start < end + len(kept) and end < span.end for span in spans if isinstance(span, DateSpan)):
            break
        groups += any(map(str.isdigit, kept))
        last, end = last + 1, end + len(token.text) + 1
        if kept != token.text:
            break
    chosen = tokens[index:last]
    if len(chosen) < 2 or not any(map(str.isdigit, chosen[-1].text)):
        return None
    value = " ".join([token.text for token in chosen]).rstrip(".,:;)")
    if groups > 1 and sum(map(str.isdigit, value)) < 6 and not any(map(str.isalpha, value)):
        return None
    means = meanings(NUMBER_LABELS, _labels(paper, cell, start, end - 1, ""))
    own = means.pop("number", 0.0)
    if own < _SURE or max(means.values(), default=0.0) >= own:
        return None
    return _Place(cell, start, end - 1, chosen, value, "")


def _prefix(text: str) -> bool:
    if not _PREFIX.fullmatch(text) or text.rstrip("-/.") in _NOT_A_PREFIX:
        return False
    # `ABN 22 610 551 209` beside the label is a number of another kind, which says so itself.
    return "taxid" not in NUMBER_LABELS(plain(text))


def _numbered(paper: Paper, cell: Cell, start: int, end: int) -> bool:
    """Whether what looks like a day or an amount is a number for all that: `Invoice no. 2031.07`."""
    labels = [label for label in _labels(paper, cell, start, end, "") if label.weight >= 0.9]
    if not labels or any(map(str.isdigit, labels[0].text)) or _DATED.search(labels[0].text):
        return False
    sure = meanings(NUMBER_LABELS, labels[:1]).get("number", 0.0)
    return sure >= 0.9 or (sure >= _SURE and bool(_YEAR_FIRST.fullmatch(cell.text[start:end])))


def _open(paper: Paper, cell: Cell, last: Token) -> float:
    """Whether words follow that may belong to it: `210111 mit LV vom 30.05.2026`. One word before a date does not."""
    if last is cell.tokens[-1] or last not in cell.tokens:
        return 0.0
    place = cell.tokens.index(last) + 1
    start = sum(len(token.text) + 1 for token in cell.tokens[:place])
    end = min((span.start for span in paper.dates_of.get(id(cell), ()) if span.start >= start), default=len(cell.text))
    words = sum(any(map(str.isalpha, word)) for word in cell.text[start:end].split())
    return float(words >= 2)


def _labels(paper: Paper, cell: Cell, start: int, end: int, head: str) -> list[Label]:
    """Unlike an amount, a number may have other numbers in its label: `Handelsrechnung (380) Nr. 4711`."""
    before = plain(f"{cell.text[:start].rstrip()} {head}".strip())[-45:]
    found = []
    if any(map(str.isalpha, before)) or before.endswith(("#", "°")):
        found.append(Label(text=before, weight=1.0))
        if _BARE.fullmatch(before):
            # `No. 4711` under or beside the title.
            near = (*paper.sheet.before(cell)[:1], *paper.sheet.above(cell, reach=2.5)[:1])
            found += [Label(text=f"{other.plain} {before}", weight=0.95) for other in near if len(other.tokens) <= 5]
        if cell.text[start : start + 1] == "#":
            found.append(Label(text=f"{before} #", weight=1.0))
    rest = [label for label in paper.labels(cell, start, end) if label.weight < 1.0]
    if found:
        rest = [Label(text=label.text, weight=label.weight * 0.3) for label in rest]
    return found + rest
