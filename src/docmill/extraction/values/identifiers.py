"""Numbers that name somebody or something: IBAN, BIC, VAT and tax numbers, and telephone numbers to be left out."""

import re
from dataclasses import dataclass
from functools import lru_cache

from docmill.extraction.phrases import Phrases, by_letter

_IBAN_LENGTHS = {
    "AD": 24,
    "AE": 23,
    "AL": 28,
    "AT": 20,
    "AZ": 28,
    "BA": 20,
    "BE": 16,
    "BG": 22,
    "BH": 22,
    "BR": 29,
    "BY": 28,
    "CH": 21,
    "CR": 22,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "DO": 28,
    "EE": 20,
    "EG": 29,
    "ES": 24,
    "FI": 18,
    "FO": 18,
    "FR": 27,
    "GB": 22,
    "GE": 22,
    "GI": 23,
    "GL": 18,
    "GR": 27,
    "GT": 28,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IL": 23,
    "IQ": 23,
    "IS": 26,
    "IT": 27,
    "JO": 30,
    "KW": 30,
    "KZ": 20,
    "LB": 28,
    "LC": 32,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "MC": 27,
    "MD": 24,
    "ME": 22,
    "MK": 19,
    "MR": 27,
    "MT": 31,
    "MU": 30,
    "NL": 18,
    "NO": 15,
    "PK": 24,
    "PL": 28,
    "PS": 29,
    "PT": 25,
    "QA": 29,
    "RO": 24,
    "RS": 22,
    "SA": 24,
    "SC": 31,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "ST": 25,
    "SV": 28,
    "TL": 23,
    "TN": 24,
    "TR": 26,
    "UA": 29,
    "VA": 22,
    "VG": 24,
    "XK": 20,
}
_IBAN = re.compile(r"(?<![A-Za-z0-9])([A-Z]{2}\d{2}(?:[ \u00a0.-]?[A-Z0-9]{1,4}){3,9})(?![a-z0-9])")
_BIC = re.compile(r"(?<![A-Za-z0-9])([A-Z]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)(?![A-Za-z0-9])")
_VAT = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      AT\s?U\d{8} | BE\s?[01]?\d{9} | BG\s?\d{9,10} | CY\s?\d{8}[A-Z] | CZ\s?\d{8,10} | DE\s?\d{9} | DK\s?\d{8}
    | EE\s?\d{9} | (?:EL|GR)\s?\d{9} | ES\s?[A-Z0-9]\d{7}[A-Z0-9] | FI\s?\d{8} | FR\s?[A-Z0-9]{2}\s?\d{9}
    | (?:GB|XI)\s?(?:\d{9}(?:\d{3})?|GD\d{3}|HA\d{3}) | HR\s?\d{11} | HU\s?\d{8} | IE\s?\d[A-Z0-9]\d{5}[A-Z]{1,2}
    | IT\s?\d{11} | LT\s?(?:\d{9}|\d{12}) | LU\s?\d{8} | LV\s?\d{11} | MT\s?\d{8} | NL\s?\d{9}B\d{2} | PL\s?\d{10}
    | PT\s?\d{9} | RO\s?\d{2,10} | SE\s?\d{12} | SI\s?\d{8} | SK\s?\d{10} | NO\s?\d{9}(?:\s?MVA)?
    | CHE\d{9}(?:MWST|TVA|IVA)?
    )(?![A-Za-z0-9])""",
    re.VERBOSE,
)
_VAT_COUNTRIES = "AT|BE|BG|CHE|CY|CZ|DE|DK|EE|EL|ES|FI|FR|GB|GR|HR|HU|IE|IT|LT|LU|LV|MT|NL|NO|PL|PT|RO|SE|SI|SK|XI"
_SPACED_VAT = by_letter(
    rf"(?<![A-Za-z0-9])(?:{_VAT_COUNTRIES})[ -]?(?=[A-Z0-9. -]*\d)[A-Z0-9]+(?:[ .-][A-Z0-9]+){{0,4}}"
)
_VAT_GAP = re.compile(r"[ .-]")
_TAX = re.compile(
    r"""(?<![\w/.-])(?:
      [A-Z]{2}\s?\d{8,12} | \d{2,3}/\d{3,4}/\d{4,5} | \d{12} | \d{3}-?\d{2}-?\d{4} | \d{2}-\d{7} 
    | [A-Z]\d{2}-\d{4}-\d{8} | \d{2}\s\d{3}\s\d{3}\s\d{3}
    | \d{2}[A-Z]{5}\d{4}[A-Z]\d?[A-Z\d]{1,2} | \d{5,7}-?[A-Z] | \d{3}\s\d{3}\s\d{3} | \d{8,13}
    )(?![\w/])(?!-\d)""",
    re.VERBOSE,
)
_PHONE = by_letter(
    r"(?:\+\d|(?<!\d)00[1-9]\d?[ \-/(])[\d \-/().]{6,}\d|"
    r"\(\d{2,5}\)[ \d\-/]{5,}\d|(?<!\d)0\d{1,4}[ \-/][\d \-/]{4,}\d|(?<!\d)1-\d{3}-\d{3}-\d{4}"
)
_PHONE_WORD = re.compile(
    r"\b(?:tel|telefon|telephone|phone|fax|telefax|mobile?|mobil|handy|hotline|tlf|tél|téléphone|h/?p)\b\.?\s*[:.]?",
    re.IGNORECASE,
)
_PHONE_WORDS = Phrases(_PHONE_WORD.pattern, any_case=True)
_PHONE_BEHIND = re.compile(r"\s*[+(\d][\d \-/().]{4,}\d")
_MAIL_OR_PAGE = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}|(?:https?://|www\.)\S+", re.IGNORECASE
)
_LINES = 512
"""Texts whose numbers are kept: several fields look for them in the lines of one document."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something in a text, in its canonical form."""

    start: int
    end: int
    value: str


def iban(text: str) -> str | None:
    """The IBAN that a text is, without spaces; None if its length or checksum is wrong."""
    kept = re.sub(r"[\s.-]", "", text).upper()
    kept = kept.removeprefix("IBAN").lstrip(":")
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", kept) or len(kept) != _IBAN_LENGTHS.get(kept[:2], len(kept)):
        return None
    turned = kept[4:] + kept[:4]
    return kept if int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1 else None


def find_ibans(text: str) -> list[Found]:
    """Every IBAN in a text whose checksum is right."""
    found = []
    for match in _IBAN.finditer(text):
        if match[1][:2] not in _IBAN_LENGTHS:
            continue
        end = iban_end(text, *match.span(1))
        if value := iban(text[match.start(1) : end]):
            found.append(Found(match.start(1), end, value))
    return found


def iban_end(text: str, start: int, end: int) -> int:
    """Where what looks like an IBAN ends: the words behind it may look like more of it, and its country says how long
    it is."""
    wanted, taken, at = _IBAN_LENGTHS.get(text[start : start + 2], end - start), 0, start
    while taken < wanted and at < end:
        taken += text[at].isalnum()
        at += 1
    return at


def bic(text: str) -> str | None:
    """The BIC that a text is; its shape says so, and its country is one that has IBANs or a well-known other."""
    kept = re.sub(r"\s", "", text).upper()
    return kept if _BIC.fullmatch(kept) and (kept[4:6] in _IBAN_LENGTHS or kept[4:6] in _OTHER_BANKS) else None


_OTHER_BANKS = frozenset(
    {*("US", "CA", "AU", "NZ", "JP", "CN", "HK", "SG", "IN"), *("MY", "TH", "KR", "TW", "ZA", "MX", "ID", "PH", "VN")}
)


def find_bics(text: str) -> list[Found]:
    """Every word in capitals that has the shape of a BIC; many words of eight letters have, so look for a label."""
    return [Found(*match.span(1), match[1]) for match in _BIC.finditer(text) if bic(match[1])]


def find_vat_ids(text: str) -> list[Found]:
    """Every VAT number that begins with its country, spaces in it or not: sure enough without a label."""
    return list(_vat_ids(text))


@lru_cache(maxsize=_LINES)
def _vat_ids(text: str) -> tuple[Found, ...]:
    found = []
    for match in _SPACED_VAT.finditer(text):
        # The words behind it may look like more of it, so the longest run that has the shape of its country counts.
        ends = [match.start() + gap.start() for gap in _VAT_GAP.finditer(match[0])]
        for end in (match.end(), *reversed(ends)):
            value = _VAT_GAP.sub("", text[match.start() : end])
            if _VAT.fullmatch(value):
                found.append(Found(match.start(), end, value))
                break
    return tuple(found)


def find_tax_ids(text: str) -> list[Found]:
    """Everything that may be a tax or registration number; only a label beside it tells it from other numbers."""
    sure = find_vat_ids(text)
    rest = [Found(*match.span(), match[0]) for match in _TAX.finditer(text)]
    return sure + [one for one in rest if not any(one.start < other.end and other.start < one.end for other in sure)]


def find_phones(text: str) -> list[tuple[int, int]]:
    """Places of telephone and fax numbers, so that nobody takes them for amounts or invoice numbers."""
    return list(_phones(text))


@lru_cache(maxsize=_LINES)
def _phones(text: str) -> tuple[tuple[int, int], ...]:
    found = [match.span() for match in _PHONE.finditer(text)]
    for word in _PHONE_WORD.finditer(text) if _PHONE_WORDS.within(text) else ():
        if number := _PHONE_BEHIND.match(text, word.end()):
            found.append(number.span())
    return tuple(found)


def find_addresses(text: str) -> list[tuple[int, int]]:
    """Places of mail addresses and links."""
    return [match.span() for match in _MAIL_OR_PAGE.finditer(text)]
