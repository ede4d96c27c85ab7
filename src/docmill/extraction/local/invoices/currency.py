"""The currency: by code, by sign, else by the country of the seller's tax number."""

import re
from collections import Counter
from collections.abc import Iterator

from docmill.extraction.local.invoices.countries import NAMES, RAND, country_of_sign, first_told, hints
from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.values.currencies import CurrencyFound, find_currencies

_NAMED = re.compile(r"currency|wahrung|devise|valuta|moneda|moeda|monnaie|waluta|\bcur\b")
_EURO = frozenset(re.findall("..", "ATBECYDEEEESFIFRGRELHRIEITLTLULVMTNLPTSISK"))
_COUNTRIES = {
    "GB": "GBP", "CH": "CHF", "SE": "SEK", "NO": "NOK", "DK": "DKK", "PL": "PLN", "CZ": "CZK", "HU": "HUF", "RO": "RON",
    "BG": "BGN",
}  # fmt: skip
_BOOKED = re.compile(r"buch|umsatzsteuerbuchung|tax currency|umrechnung|exchange|kurs\b")
_UNITS = frozenset({"ft", "FT", "kgs", "KGS", "Kgs"})
"""Feet and kilograms, which are also forint and som."""
_BYGONE = frozenset(re.findall("...", "ATSBEFCYPDEMEEKESPFIMFRFGRDHRKIEPITLLTLLUFLVLMTLNLGPTEROLSITSKKTRL"))
"""Money of the past. Their letters mean other things today: `Pte. Ltd.`, freight that is `LTL`."""


def options(paper: Paper) -> list[Option]:
    """Candidates, one per currency that is named, with how often and how."""
    votes: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    named: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    places: dict[str, tuple[Cell, int, int]] = {}
    told: dict[str, str | None] = {}
    money = {id(number.cell): number for number in paper.numbers if number.money}
    everything = list(_found(paper))
    if telling := [(cell, found) for cell, found in everything if not _means_else(cell, found)]:
        everything = telling
    strong = Counter(found.code for cell, found in everything if not (found.weak or _BOOKED.search(cell.plain)))
    for cell, found in everything:
        left = " ".join(other.plain for other in paper.sheet.before(cell)[:1])
        label = f"{left} {cell.plain}"
        code = found.code
        if found.weak:
            if code not in told:
                told[code] = country_of_sign(paper.sheet.text, code, strong)
            code = told[code] or code
        votes[code] += 1
        codes[code] += not found.weak
        amounts[code] += id(cell) in money
        if _NAMED.search(label) and not _BOOKED.search(label):
            named[code] += 1
        if code not in places or named[code] == 1:
            places[code] = (cell, found.start, found.end)
    total = sum(votes.values())
    result = []
    for code, count in votes.items():
        cell, start, end = places[code]
        features = {
            "named": float(named[code] > 0),
            "share": count / total,
            "code": float(codes[code] > 0),
            "beside_amount": float(amounts[code] > 0),
            "share_of_amounts": amounts[code] / max(1, sum(amounts.values())),
        }
        features["prior"] = (
            4.0 * features["named"] + 2.0 * features["share"] + features["code"] + 2.0 * features["share_of_amounts"]
        ) / 5.0 + 0.5
        result.append(
            Option(
                value=code,
                raw=cell.text[start:end],
                spans=(),
                features=features,
                signals={
                    "label": features["named"],
                    "repeats": float(count),
                    "shared": float(not codes[code] and code not in told.values()),
                },
                tokens=cell.slice(start, end),
                page=cell.page,
            )
        )
    return result


def _found(paper: Paper) -> Iterator[tuple[Cell, CurrencyFound]]:
    """Every currency on the page: codes, signs, names in words, and the letter of the rand before an amount."""
    # A name that is broken over cells is not found in the whole either: they are two spaces apart.
    named = {found[0] for found in NAMES.finditer(paper.sheet.plain)}
    rand = bool(RAND.search(paper.sheet.text))
    for cell in paper.sheet.cells:
        for found in find_currencies(cell.text):
            yield cell, found
        # As long as the text itself, if no letter of it became two: only then do the places agree.
        if named and len(cell.plain) == len(cell.text) and any(name in cell.plain for name in named):
            for name in NAMES.finditer(cell.plain):
                yield cell, CurrencyFound(*name.span(), name.lastgroup or "", weak=False)
        if rand:
            for sign in RAND.finditer(cell.text):
                yield cell, CurrencyFound(sign.start(), sign.start() + 1, "ZAR", weak=True)


def _means_else(cell: Cell, found: CurrencyFound) -> bool:
    """Whether what is written like a currency is more likely something else, if the page names another."""
    return found.code in _BYGONE or cell.text[found.start : found.end] in _UNITS


def by_country(paper: Paper) -> str | None:
    """What tax numbers and the words for the tax suggest; for a document that names no currency at all."""
    text = paper.sheet.text
    votes: Counter[str] = Counter()
    for country in re.findall(r"\b([A-Z]{2})\s?[A-Z]?\d{7,12}(?:B\d\d)?\b", text):
        code = "EUR" if country in _EURO else _COUNTRIES.get(country)
        if code:
            votes[code] += 1
    if votes:
        return votes.most_common(1)[0][0]
    return first_told(_SIGNS, text)


_SIGNS = hints(
    (r"\bGSTIN\b|\b\d{2}[A-Z]{5}\d{4}[A-Z]\w{3}\b", "INR"),
    (r"\bSdn\.? Bhd\b", "MYR"),
    (r"\bABN\b", "AUD"),
    (r"\bNZBN\b", "NZD"),
    (r"\b(?:HST|QST|TVQ)\b|\b\d{5} ?\d{4} ?RT ?\d{4}\b", "CAD"),
    (r"\(Pty\) Ltd\b", r"\bVAT\b", "ZAR"),
    (r"(?i)\bmva\b|merverdiavgift", "NOK"),
    (r"(?i)\bi[cč] dph\b", "EUR"),
    (r"(?i)\bdph\b", "CZK"),
    (r"\bNIP\b", "PLN"),
    (r"(?i)\bad[oó]sz[aá]m\b", "HUF"),
    (r"\bCHE-\d{3}", "CHF"),
    (r"\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b", r"\bVAT\b", "GBP"),
    (r"(?i)\bmwst|\bust\b|umsatzsteuer|\btva\b|\bbtw\b|\biva\b|\balv\b", "EUR"),
)
