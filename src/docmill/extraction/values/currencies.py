"""Currencies: ISO 4217 codes, and the signs that are printed for them."""

import re
from dataclasses import dataclass

_LISTED = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF
CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG
HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA
MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX
USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG DEM FRF ITL ESP ATS BEF NLG PTE IEP FIM GRD HRK
LTL LVL EEK SKK SIT
"""
CODES = frozenset(_LISTED.split())
"""ISO 4217, with those that the euro replaced: old documents name them."""

SIGNS: dict[str, str] = {
    "€": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "us$": "USD",
    "usd$": "USD",
    "$us": "USD",
    "$": "USD",
    "£": "GBP",
    "¥": "JPY",
    "円": "JPY",
    "元": "CNY",
    "rmb": "CNY",
    "cn¥": "CNY",
    "₹": "INR",
    "rs": "INR",
    "rs.": "INR",
    "rm": "MYR",
    "rp": "IDR",
    "rp.": "IDR",
    "s$": "SGD",
    "a$": "AUD",
    "au$": "AUD",
    "c$": "CAD",
    "ca$": "CAD",
    "cdn$": "CAD",
    "hk$": "HKD",
    "nt$": "TWD",
    "nz$": "NZD",
    "mx$": "MXN",
    "r$": "BRL",
    "sfr": "CHF",
    "sfr.": "CHF",
    "fr.": "CHF",
    "zł": "PLN",
    "zl": "PLN",
    "kč": "CZK",
    "kc": "CZK",
    "ft": "HUF",
    "lei": "RON",
    "лв": "BGN",
    "лв.": "BGN",
    "₽": "RUB",
    "руб": "RUB",
    "руб.": "RUB",
    "₺": "TRY",
    "₩": "KRW",
    "₫": "VND",
    "฿": "THB",
    "₱": "PHP",
    "₪": "ILS",
    "₴": "UAH",
    "kr": "SEK",
    "kr.": "DKK",
}
"""By what is printed, in lower case. `kr` alone may be any of three crowns: a code elsewhere on the page decides."""
WEAK = frozenset({"$", "¥", "kr", "kr.", "rs", "rs.", "fr.", "ft", "lei"})
"""Signs that several currencies share, or that are words of their own: a code beats them."""

_CODE_WORDS = "|".join(
    f"{first}(?:{'|'.join(sorted(code[1:] for code in CODES if code[0] == first))})"
    for first in sorted({code[0] for code in CODES})
)
"""By their first letters: two dozen ways to begin are tried at each place of a text, not two hundred."""
_WORDY = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True) if sign[-1].isalpha())
_SIGNED = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True) if not sign[-1].isalpha())
_FOUND = re.compile(
    # What stands behind capitals and a dash is part of a number of something: `ART-GRD`.
    rf"(?<![A-Za-z])(?:(?<![A-Z][-_])(?P<code>{_CODE_WORDS})(?!\d*[A-Za-z])"
    rf"|(?<![A-Za-z][-_])(?P<word>(?i:{_WORDY}))(?=[\s\d.,:;)\]/-]|$)|(?P<sign>(?i:{_SIGNED})))"
)
BEFORE = re.compile(rf"(?<![^\W\d_])(?:{_CODE_WORDS}|(?i:{_WORDY})|(?i:{_SIGNED}))\.?\s?$")
"""A currency that ends where an amount begins."""
AFTER = re.compile(rf"\s?(?:(?:{_CODE_WORDS}|(?i:{_WORDY}))(?![^\W\d_])|(?i:{_SIGNED}))")
"""A currency that begins where an amount ends."""


_WORDS = frozenset({"ALL", "BAM", "BHD", "BOB", "COP", "CUP", "GEL", "MAD", "MOP", "PEN", "SIT", "SOS", "TOP", "TRY"})
"""Codes that are words, or the form of a company, in a text in capitals: money only beside an amount or alone."""
_COMPANY = re.compile(r"(?:\bS[A-Z0]N|\bS|\bCO|\bHOLDINGS?|\bGROUP|[A-Z]\))[\s.,]*$", re.IGNORECASE)
"""What stands before the legal form BHD of a Malaysian company, which is also the code of the Bahraini dinar."""
_ENDS_AMOUNT = re.compile(r"\d[.,]\d+\s*$")
_STARTS_AMOUNT = re.compile(r"[\s.:]*-?\d[\d.,]*[.,]\d{2,3}(?!\w)|[\s.:]*-?\d+(?![\w.'-])")
_STARTS_CENTS = re.compile(r"[\s.:]*-?\d[\d.,]*[.,]\d{2}(?!\d)")
_NAMED = re.compile(r"(?:currency|w[aä]hrung|devise|valuta|moneda)\W*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CurrencyFound:
    """A currency in a text."""

    start: int
    end: int
    code: str
    weak: bool
    """Printed by several currencies alike."""


def parse_currency(text: str) -> str | None:
    """The ISO code of a text that is a currency and nothing else."""
    kept = text.strip().strip("()[]:")
    if kept.upper() in CODES:
        return kept.upper()
    return SIGNS.get(kept.lower()) or SIGNS.get(kept.lower().rstrip("."))


def find_currencies(text: str) -> list[CurrencyFound]:
    """Every currency named in a text, in order. Codes count in capitals only: `all` and `try` are words."""
    found = []
    for match in _FOUND.finditer(text):
        code = match["code"]
        if code in _WORDS and not _is_money(text, *match.span()):
            continue
        sign = (match["word"] or match["sign"] or "").lower()
        if match["word"] and sign not in ("euro", "euros", "rmb") and not _beside_digits(text, *match.span()):
            continue
        if match["word"] == "Rm" and not _STARTS_CENTS.match(text, match.end()):
            continue  # A room of a hotel.
        found.append(CurrencyFound(*match.span(), code or SIGNS[sign], code is None and sign in WEAK))
    return found


def _beside_digits(text: str, start: int, end: int) -> bool:
    """Words such as `kr`, `ft` and `rm` mean money only beside a number or alone in brackets."""
    before, after = text[:start].rstrip(), text[end:].lstrip(" .")
    if after[:1].isdigit() or before[-1:].isdigit() or (after[:1] in ("-", "−") and after[1:2].isdigit()):
        return True
    return (before[-1:] in ("(", "[") and after[:1] in (")", "]")) or not (before or after)


def _is_money(text: str, start: int, end: int) -> bool:
    """Whether a code that is also a word means money: beside an amount, behind its label or alone; a legal form not."""
    before, after = text[:start], text[end:]
    if text[start:end] == "BHD" and _COMPANY.search(before):
        return False
    if _ENDS_AMOUNT.search(before) or _STARTS_AMOUNT.match(after) or _NAMED.search(before):
        return True
    return not (before.strip(" ([:") or after.strip(" )]:."))
