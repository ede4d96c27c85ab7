"""In which country a receipt was printed, as far as days and money depend on it: by its taxes, towns and numbers."""

import re
from enum import Enum

from docmill.extraction.local.layout import Layout

_STATES = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]"
)
_ELSEWHERE = re.compile(
    r"\b(?:GST|HST|PST|SST|VAT|MwSt|USt|TVA|IVA|BTW|ABN|UEN|RM|SGD|CAD|AUD|NZD|HKD|EUR|CHF|GBP|SEK|NOK|DKK|PLN|CZK|SDN|BHD|PTE|PTY|GmbH)\b|[€£₹]"
    r"|\b(?:Singapore|Malaysia|Canada|Australia|New Zealand|Hong Kong|Ontario|Jalan)\b",
    re.IGNORECASE,
)
_WORDS = "CO|DE|HI|I[DN]|LA|MA|ME|O[HKR]|PA"
"""States whose letters are a word elsewhere (`Order ID 10234`, `Palermo PA 90133`): only behind a comma."""
_ADDRESS = re.compile(
    rf"[A-Za-z](?:,\s?(?:{_STATES})|[., ]{{1,3}}(?!(?:{_WORDS})\b)(?:{_STATES}))[., ]{{1,3}}\d{{5}}(?:-\d{{4}})?(?!\d)"
)
_AMERICAN = re.compile(
    rf"\b(?:sales|state|county|(?-i:(?!(?:{_WORDS})\b)(?:{_STATES})))\s+tax\b|\b(?:USA|U\.S\.A\.|USD|US\$)(?!\w)",
    re.IGNORECASE,
)
_TOWN = re.compile(rf"[A-Za-z]{{3,}}[.,]?\s(?:{_STATES})\.?$", re.MULTILINE)
"""`CHARLOTTE NC`: half a sign, for two letters stand for much; so is a telephone number as Americans write it."""
_TELEPHONE = re.compile(r"(?<![\d-])(?:\(\d{3}\)\s?|\d{3}[-.])\d{3}[-.]\d{4}(?![\d-])")


class Country(Enum):
    """What is known of it."""

    AMERICA = "america"
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


def country_of(layout: Layout) -> Country:
    """By words that stand on receipts of one country and on none of another."""
    text = "\n".join(piece.text for piece in layout.pieces)
    if _ADDRESS.search(text):
        # Before the words: Ontario is in California too, and who sells Singapore noodles is not there.
        return Country.AMERICA
    if _ELSEWHERE.search(text):
        return Country.ELSEWHERE
    half = [_TOWN.search(text), _TELEPHONE.search(text), "$" in text]
    if _AMERICAN.search(text) or sum(map(bool, half)) > 1:
        return Country.AMERICA
    return Country.UNKNOWN
