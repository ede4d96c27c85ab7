"""The currency: by code, by sign, else by the country of the seller's tax number."""

import re
from collections import Counter

from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.values.currencies import find_currencies

_NAMED = re.compile(r"currency|wahrung|devise|valuta|moneda|moeda|monnaie|waluta|\bcur\b")
_EURO = frozenset(re.findall("..", "ATBECYDEEEESFIFRGRELHRIEITLTLULVMTNLPTSISK"))
_COUNTRIES = {
    "GB": "GBP", "CH": "CHF", "SE": "SEK", "NO": "NOK", "DK": "DKK", "PL": "PLN", "CZ": "CZK", "HU": "HUF", "RO": "RON",
    "BG": "BGN",
}  # fmt: skip
_BOOKED = re.compile(r"buch|umsatzsteuerbuchung|tax currency|umrechnung|exchange|kurs\b")


_CROWNS = ("SEK", "DKK", "NOK")
_CROWN_SIGNS = (
    (re.compile(r"(?i)\bmva\b|merverdiavgift"), "NOK"),
    (re.compile(r"(?i)\bcvr\b|\bdk ?\d{8}\b|ekskl\. moms"), "DKK"),
    (re.compile(r"(?i)momsreg|bankgiro|\bse ?\d{10,12}\b|exkl\. moms|f-skatt"), "SEK"),
)
"""`kr` is printed for three crowns: words of the country say which."""
_AUSTRALIAN = (re.compile(r"(?i)\babn\b"), re.compile(r"(?i)\bgst\b"))


def _told(paper: Paper, code: str) -> str | None:
    """What a sign that several countries share stands for on this page, if it says so."""
    text = paper.sheet.text
    if code in _CROWNS:
        return next((code for pattern, code in _CROWN_SIGNS if pattern.search(text)), None)
    if code == "USD" and all(pattern.search(text) for pattern in _AUSTRALIAN):
        return "AUD"
    return None


def options(paper: Paper) -> list[Option]:
    """Candidates, one per currency that is named, with how often and how."""
    votes: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    named: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    places: dict[str, tuple[Cell, int, int]] = {}
    told: dict[str, str | None] = {}
    money = {id(number.cell): number for number in paper.numbers if number.money}
    for cell in paper.sheet.cells:
        for found in find_currencies(cell.text):
            left = " ".join(other.plain for other in paper.sheet.before(cell)[:1])
            label = f"{left} {cell.plain}"
            code = found.code
            if found.weak:
                if code not in told:
                    told[code] = _told(paper, code)
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
    return next((code for pattern, code in _SIGNS if pattern.search(text)), None)


_SIGNS = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"\bGSTIN\b|\b\d{2}[A-Z]{5}\d{4}[A-Z]\w{3}\b", "INR"),
        (r"\bSdn\.? Bhd\b", "MYR"),
        (r"\bABN\b", "AUD"),
        (r"\bCHE-\d{3}", "CHF"),
        (r"\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b(?s:.*)\bVAT\b|\bVAT\b(?s:.*)\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b", "GBP"),
        (r"(?i)\bmwst|\bust\b|umsatzsteuer|\btva\b|\bbtw\b|\biva\b|\balv\b", "EUR"),
    )
)
