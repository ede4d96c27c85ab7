"""The total of a receipt: every amount on it, with what its label and the sums around it say."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from decimal import Decimal
from functools import lru_cache

from rapidfuzz.distance import OSA, Levenshtein

from docmill.extraction.local.candidates import Candidate, Knowledge
from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.local.wording import tokens
from docmill.extraction.values.amounts import find_amounts, format_amount, labelled_amount

LABELS = {
    "total": r"tota[l1]?|t[o0]tal|jumlah|tctal|totai|amount due",
    "sub": r"sub ?-?\s?t[o0]tal|subtota|sub-tot|sub tot",
    "round": r"round|rndg|rnd|adj",
    "cash": r"\bcash\b|tunai|cash$|caah",
    "change": r"chan[gq]|baki\b|balance|charge am",
    "paid": r"paid|payment|tender|receive|visa|master|card|debit|credit|amex|bayar|e-?wallet|nets",
    "tax": r"\bgst\b|\btax\b|\bsst\b|\bvat\b|6 ?%|zrl|\bsr\b|cukai|s\.?tax",
    "excl": r"exc[l1]|before|w/o|without|nett? ?amt",
    "incl": r"inc[l1.]|with gst|w/ ?gst|after|nett|\bnet\b",
    "grand": r"grand|payable|\bdue\b|final|amt due|to pay|bill",
    "qty": r"\bqty|quantity|\bitems?\b|pcs|unit|\bx\b|@",
    "disc": r"disc|saving|saved|rebate|voucher|coupon|promo",
    "service": r"service|svc|serv\b|s\.c|charge",
    "sales": r"sales?\b",
    "amount": r"amount|amt\b",
    "rm": r"\brm\b|\$|myr",
    "summary": r"summary|tax ?code|taxable|code",
}
_IN_EUROPE = {
    "total": r"\bsumme\b|gesamt|zahlbetrag|zu zahlen|te betalen|a payer|a pagar"
    r"|\bsuma\b|\brazem\b|\bcelkem\b|att betala",
    "sub": r"zwischensumme|sous-?\s?total|tussentotaal",
    "cash": r"geg(?:eben)?\W{1,2}bar\b|\bbar\b(?=\W*(?:eur|€|chf))|bargeld|especes|contanti|efectivo|gotowka|dinheiro",
    "change": r"ruckgeld|rueckgeld|\bzuruck\b|\brendu\b|\bcambio\b|wisselgeld|\bvaxel\b",
    "paid": r"girocard|ec-karte|kreditkarte|carte bancaire|bancomat|tarjeta|pinpas|maestro",
    "tax": r"\bmwst|\bust\b|\btva\b|\biva\b|\bbtw\b|\bmoms\b|\bmva\b|\bsteuer\b|\bptu\b|\bdph\b",
    "excl": r"\bnetto\b|hors taxe|imponibile|base imponible",
    "disc": r"rabatt|\bremise\b|\bsconto\b|descuento|korting",
}
"""The same on tills of the continent."""
_LABELS = {name: re.compile("|".join(filter(None, (said, _IN_EUROPE.get(name))))) for name, said in LABELS.items()}
_DOLLAR = re.compile(r"(?<![A-Za-z0-9.,])S(?=\d)")
"""A dollar sign that was read as a letter."""
_GLUED = re.compile(r"(?<=[a-z])RM(?=\s?\d)")
"""A currency without a space before it, as in `TotalRM5.00`; blanked so that places stay the same."""
_LOST_POINT = re.compile(r"(?:RM|\$)?\s?(\d{1,4})(?:\s|[º°'])\s?(\d{2})")
"""An amount alone in its piece whose point was not seen."""
_DASH_POINT = re.compile(r"(?:RM|\$)?\s?(\d{1,4})\s?[-–]\s?(\d{2})")
"""An amount alone in its piece whose point was read as a dash; believed beside the label of an amount only."""
_OF_AMOUNTS = frozenset({"total", "sub", "cash", "change", "paid", "grand", "amount"})
_EXTRA = re.compile(
    r"\W*(?:tips?\b(?!\W{0,2}top\b)|(?:gratuity|trinkgeld|pourboire|mancia|propina|fooi)\b"
    r"|s(?:er)?vi?ce?\.?\s?ch(?:ar)?ge?\b)",
    re.IGNORECASE,
)
_OWED = re.compile(r"outstanding|arrears|before payment|previous balance|tunggakan", re.IGNORECASE)
_MISSPELT = ("total", "subtotal", "change", "rounding", "payment", "grand", "amount", "discount", "payable", "jumlah")
"""Words of labels that are known again when a letter or two were misread."""
_FIVE = Decimal("0.05")
_OFFS = tuple(Decimal(cents) / 100 for cents in (-2, -1, 1, 2))
"""By how much an amount changes when it is rounded to five cents."""
_BLOCK = 40
"""Rows above an amount that may add up to it."""
_STEPS = 7
"""Rows with amounts between a part of the total and the total."""
_LIMIT = 250
"""Amounts that are looked at; a receipt with more of them is a till roll of a day."""


def says(text: str) -> dict[str, float]:
    """Which kinds of label a text holds."""
    low = " ".join(_spelt(word) for word in tokens(text)) + " | " + text.lower()
    return {name: 1.0 for name, pattern in _LABELS.items() if pattern.search(low)}


@lru_cache(maxsize=8192)
def _spelt(word: str) -> str:
    """The word of a label that this one is a misreading of; else itself."""
    if len(word) < 5 or not word.isalpha() or any(pattern.search(word) for pattern in _LABELS.values()):
        return word
    for meant in _MISSPELT:
        allowed = 1 if len(meant) < 6 or word[0] != meant[0] else 2
        if word[0] != meant[0] and meant != "total":
            continue
        if OSA.distance(word, meant, score_cutoff=allowed) <= allowed:
            return meant
    return word


class Amounts:
    """All amounts of a document, found once and asked by several fields."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.found: list[tuple[Span, Decimal]] = []
        self.labels = [says(layout.row_text(row)) for row in range(len(layout.rows))]
        for piece in layout.pieces:
            text = _GLUED.sub("  ", _DOLLAR.sub("$", piece.text))
            for amount in find_amounts(text, decimal=".", misread=True, spaces=False):
                if amount.digits == 2 and len(self.found) < _LIMIT:
                    self.found.append((Span(piece=piece, start=amount.start, end=amount.end), amount.value))
            lost = _LOST_POINT.fullmatch(text.strip())
            if lost is None and not _OF_AMOUNTS.isdisjoint(self.labels[piece.row]):
                lost = _DASH_POINT.fullmatch(text.strip())
            if lost and len(self.found) < _LIMIT:
                value = Decimal(f"{lost[1]}.{lost[2]}")
                self.found.append((Span(piece=piece, start=0, end=len(piece.text)), value))
        self.extras = frozenset(row for row in range(len(self.labels)) if _EXTRA.match(layout.row_text(row)))
        """Rows that add to the total and were not bought: tips and service, which have fields of their own."""
        self.counts = Counter(value for _, value in self.found)
        self.last: dict[int, Decimal] = {}
        """The rightmost amount of each row that has one."""
        for span, value in self.found:
            self.last[span.piece.row] = value
        self.settled = self._settled()
        self.running, self.blocks = self._blocks()
        self.taxed = self._taxed()
        self.wholes, self.parts, self.overtaken = self._wholes()

    def labelled(self, *names: str) -> set[Decimal]:
        """The last amounts of the rows with one of these labels, or of the row below when it has none itself."""
        found = set()
        for row, said in enumerate(self.labels):
            if not said.keys().isdisjoint(names):
                if row in self.last:
                    found.add(self.last[row])
                elif row + 1 in self.last and not self.labels[row + 1].keys() - {"rm"}:
                    found.add(self.last[row + 1])
        return found

    def _settled(self) -> set[Decimal]:
        """What was paid less what was given back."""
        given = self.labelled("cash", "paid")
        back = self.labelled("change")
        return {cash - change for cash in given for change in back if cash > change >= 0}

    def _blocks(self) -> tuple[dict[int, set[Decimal]], set[Decimal]]:
        """Sums of amounts that stand under each other: by the row that follows them, and all of them."""
        rows = sorted(self.last)
        running: dict[int, set[Decimal]] = {}
        every: set[Decimal] = set()
        for place, row in enumerate(rows):
            total, sums = Decimal(0), set()
            for length, earlier in enumerate(reversed(rows[max(0, place - _BLOCK) : place]), start=1):
                amount = self.last[earlier]
                total += -amount if "disc" in self.labels[earlier] and amount > 0 else amount
                if length > 1:
                    sums.add(total)
            running[row] = sums
            every |= sums
        return running, every

    def _taxed(self) -> set[Decimal]:
        """What is due by the summary of taxes: bases and taxes of its rows, and what is said without and of tax."""
        by_row: dict[int, list[Decimal]] = {}
        for span, value in self.found:
            by_row.setdefault(span.piece.row, []).append(value)
        pairs = {
            row: values[-2] + values[-1]
            for row, values in by_row.items()
            if len(values) > 1 and "tax" in self.labels[row] and 0 <= values[-1] * 4 < values[-2]
        }
        found = {total for row, total in pairs.items() if by_row[row][-1]}
        if len(pairs) > 1 and found:
            found.add(sum(pairs.values(), Decimal(0)))
        taxes = {tax for tax in self.labelled("tax") if tax > 0}
        return found | {base + tax for base in self.labelled("excl") for tax in taxes if tax * 4 < base}

    def _wholes(self) -> tuple[dict[int, set[Decimal]], set[Decimal], set[Decimal]]:
        """Sums of a total and what follows it (tax, service, rounding, a discount, another total), by the row behind.

        Also the totals that are only a part of a sum that is printed, and of these the ones that are surely not what is
        asked for: the sum was paid, or is called what is to be paid.
        """
        rows = sorted(self.last)
        wholes: dict[int, set[Decimal]] = {}
        parts: set[Decimal] = set()
        overtaken: set[Decimal] = set()
        for place, row in enumerate(rows):
            sums = {Decimal(0)}
            between: set[Decimal] = set()
            for earlier in reversed(rows[max(0, place - _STEPS) : place]):
                said, amount = self.labels[earlier].keys(), self.last[earlier]
                if not said.isdisjoint({"cash", "change", "paid"}) and said.isdisjoint({"disc", "round", "total"}):
                    break
                if not said.isdisjoint({"total", "sub", "excl", "incl"}) and amount:
                    made = {amount + more for more in sums if more}
                    wholes.setdefault(row, set()).update(made)
                    labelled = not self.labels[row].keys().isdisjoint({"total", "grand"})
                    if self.last[row] in made or (labelled and _slips(self.last[row], made)):
                        parts |= {amount, *between}
                        if self._final(row):
                            overtaken |= {amount, *between} - self.settled - {self.last[row]}
                    between.add(amount)
                signs = (1, -1) if not said.isdisjoint({"disc", "round"}) else (1,)
                sums = {more + sign * amount for more in sums for sign in signs}
        return wholes, parts, overtaken

    def _final(self, row: int) -> bool:
        """Whether the amount of a row is what was paid, or is called what is to be paid."""
        said = self.labels[row].keys()
        return self.last[row] in self.settled or ("grand" in said and "change" not in said)


def find_totals(layout: Layout, knowledge: Knowledge) -> Sequence[Candidate]:
    """Every amount as a candidate for the total, and what a misread one must have been for the sums to be right."""
    amounts = layout.once(Amounts)
    context = _Context(amounts)
    found = []
    for span, value in amounts.found:
        if value in amounts.overtaken or span.piece.row in context.owed:
            continue
        features = context.features(span, value)
        mends: list[Decimal] = []
        if features["own_total"] or features["own_grand"] or features["own_paid"]:
            mends = context.mended(span, value)
            features["slipped"] = 2 * float(bool(mends) and not any(value in sums for sums in context.sums(span)))
        if value < 0 and not (features["own_plain_total"] or features["own_grand"]):
            continue
        found.append(Candidate(value=format_amount(value), raw=span.text, spans=(span,), features=features))
        for meant in mends:
            agreeing = sum(meant in sums for sums in context.sums(span))
            features = {**context.features(span, meant, misread=value), "mended": 1.0, "mended_sums": agreeing / 2}
            found.append(Candidate(value=format_amount(meant), raw=span.text, spans=(span,), features=features))
    return found


class _Context:
    """What the features of all amounts of a document share."""

    def __init__(self, amounts: Amounts) -> None:
        layout, labels = amounts.layout, amounts.labels
        self.amounts = amounts
        self.layout = layout
        self.values = {value for value in amounts.counts if value > 0}
        self.cash = {row for row, said in enumerate(labels) if not said.keys().isdisjoint({"cash", "change", "paid"})}
        owed = {row for row in range(len(labels)) if _OWED.search(layout.row_text(row))}
        self.owed = owed if any(row in amounts.last for row in self.cash - owed) else frozenset[int]()
        """Rows that say what was owed before, if others say what was paid of it: this slip is about the latter."""
        totals = [row for row, said in enumerate(labels) if "total" in said and "sub" not in said]
        self.totals = totals or [-1]
        self.words = [tokens(layout.row_text(row)) for row in range(len(layout.rows))]
        self.per_row = Counter(span.piece.row for span, _ in amounts.found)
        self.spoken: dict[Decimal, set[str]] = {}
        for span, value in amounts.found:
            self.spoken.setdefault(value, set()).update(says(layout.before(span)))
        self.rounds = any("round" in said for said in labels)
        self.rounded_from: dict[Decimal, Decimal] = {}
        """What an exact amount became when it was rounded to five cents, where both are printed."""
        for value in (value for value in self.values if value % _FIVE and value > 1):
            for became in (value + off for off in _OFFS):
                if became in self.values and not became % _FIVE:
                    self.rounded_from[value] = became
        for value, became in self.rounded_from.items():
            if self.rounds:
                self.spoken[became] |= self.spoken[value]
        self.plain = {value for value, said in self.spoken.items() if _plain_total(said)}
        self.subtotals = amounts.labelled("sub")
        self.odd = {value for value in self.values if value % _FIVE and value > 1}

    def mended(self, span: Span, value: Decimal) -> list[Decimal]:
        """Sums that are not printed but differ from what was read in one character."""
        sums = set().union(*self.sums(span))
        return _slips(value, sums - self.values)

    def sums(self, span: Span) -> tuple[Set[Decimal], ...]:
        """What an amount in this place could be by arithmetic, by where the sum comes from."""
        amounts, row = self.amounts, span.piece.row
        return amounts.settled, amounts.wholes.get(row, set()), amounts.taxed

    def features(self, span: Span, value: Decimal, misread: Decimal | None = None) -> dict[str, float]:
        """Of one amount as the total; `misread` is what was read in its place."""
        layout, amounts, row = self.layout, self.amounts, span.piece.row
        before = layout.before(span)
        greater = sum(other > value for other in self.values if other != misread)
        own = says(before)
        above = amounts.labels[row - 1] if row else {}
        below = amounts.labels[row + 1] if row + 1 < len(amounts.labels) else {}
        rounded = value % _FIVE == 0
        features: dict[str, float] = {
            "depth": layout.depth(span.piece),
            "right": span.box.right,
            "size": min(span.piece.size, 3.0) / 3,
            "repeats": min(amounts.counts[value], 5) / 5,
            "rank": min(greater, 20) / 20,
            "largest": float(greater == 0),
            "zero": float(value == 0),
            "cents": float(rounded),
            "rounded": float(rounded and any(value + off in self.odd for off in _OFFS)),
            "unrounded": float(not rounded and any(value + off in self.values for off in _OFFS)),
            "settled": float(value in amounts.settled),
            "unsettled": float(bool(amounts.settled) and value not in amounts.settled),
            "running": float(value in amounts.running.get(row, ())),
            "block": float(value in amounts.blocks),
            "row_amounts": min(self.per_row[row], 4) / 4,
            "bare": float(not before.strip()),
            "after_total": _distance(row, self.totals[-1]),
            "after_first": _distance(row, self.totals[0]),
            "before_cash": float(any(later >= row for later in self.cash)),
            "cash_next": float(bool({row + 1, row + 2, row + 3} & self.cash)),
            "has_total": float(self.totals[0] >= 0),
            "own_total": 0.0,
            "own_grand": 0.0,
            "own_paid": 0.0,
            "own_plain_total": float(_plain_total(own.keys())),
        }
        # Twice or three times as large as other features: what arithmetic says is rarely chance, and the penalty on
        # weights should not stand in its way.
        features["unrounded_sure"] = 3 * features["unrounded"] * self.rounds
        features["rounded_sure"] = 3 * features["rounded"] * self.rounds
        features["settled_total"] = 2 * features["settled"] * features["own_plain_total"]
        features["whole"] = 3 * float(value in amounts.wholes.get(row, ()) and value not in amounts.parts)
        features["part"] = 3 * float(value in amounts.parts)
        features["taxed"] = 2 * float(value in amounts.taxed)
        others = self.plain - {value}
        features["sub_beaten"] = 2 * float("sub" in own and bool(others))
        features["plain_beats"] = 2 * features["own_plain_total"] * float(bool(self.subtotals - {value}))
        for name in own:
            features[f"own_{name}"] = 1.0
        for name in sorted(self.spoken.get(value, ())):
            features[f"any_{name}"] = 1.0
        if not re.search(r"[A-Za-z]{3}", before):
            for name in above:
                features[f"up_{name}"] = 1.0
        for name in above:
            features[f"prev_{name}"] = 1.0
        for name in below:
            features[f"next_{name}"] = 1.0
        for word in dict.fromkeys(word for word in tokens(before) if not word.startswith("#")):
            features[f"left={word}"] = 1.0
        for word in dict.fromkeys(tokens(layout.after(span))):
            features[f"after={word}"] = 0.5
        for word in dict.fromkeys(self.words[row - 1]) if row else ():
            features[f"prev={word}"] = 0.5
        for word in dict.fromkeys(self.words[row + 1]) if row + 1 < len(self.words) else ():
            features[f"next={word}"] = 0.5
        return features


def _slips(value: Decimal, sums: Iterable[Decimal]) -> list[Decimal]:
    """Those sums that would be read as this value if one character were misread."""
    written = format_amount(value)
    return sorted(
        meant
        for meant in sums
        if meant > 0 and Levenshtein.distance(format_amount(meant), written, score_cutoff=1) <= 1
    )


def _plain_total(said: Set[str]) -> bool:
    """Whether a label speaks of a total and of nothing less."""
    return "total" in said and said.isdisjoint({"sub", "qty", "tax", "excl", "disc"})


def label_amount(label: str) -> Decimal | None:
    """What the label of a total means."""
    value = labelled_amount(label)
    if value is None:
        numbers = find_amounts(label, decimal=".")
        value = numbers[0].value if len(numbers) == 1 else None
    return value


def _distance(row: int, other: int) -> float:
    return max(-5, min(5, row - other)) / 5 if other >= 0 else -1.2
