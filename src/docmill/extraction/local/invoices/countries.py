"""Which country's money a sign stands for that several countries print: `$`, `kr`, `Rs`. By words of the page."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_CROWNS = frozenset({"SEK", "DKK", "NOK", "ISK"})
_RUPEES = frozenset({"INR", "PKR", "LKR", "NPR", "MUR"})
_DOLLARS = frozenset(
    {"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "ARS", "CLP", "COP", "JMD", "TTD", "BBD", "FJD", "BMD"}
)
_FAMILIES = (_CROWNS, _RUPEES, _DOLLARS)
"""Currencies that are printed with the same sign."""

Hints = Sequence[tuple[Sequence[re.Pattern[str]], str]]
"""Patterns that must all be found, and the currency that they speak for."""


def hints(*told: tuple[str, ...]) -> Hints:
    """Of patterns, the last of each being the code."""
    return tuple((tuple(map(re.compile, patterns)), code) for *patterns, code in told)


def first_told(among: Hints, text: str) -> str | None:
    """The first currency that a text speaks for."""
    return next((code for patterns, code in among if all(pattern.search(text) for pattern in patterns)), None)


_REGISTERED: Mapping[frozenset[str], Hints] = {
    _CROWNS: hints(
        (r"(?i)\bmva\b|merverdiavgift|foretaksregisteret", "NOK"),
        (r"(?i)\bvsk\b|kennitala", "ISK"),
        (r"(?i)\bcvr\b|\bdk ?\d{8}\b|ekskl\. moms", "DKK"),
        (r"(?i)momsreg|bankgiro|plusgiro|\bse ?\d{10,12}\b|exkl\. moms|f-skatt", "SEK"),
    ),
    _RUPEES: hints(
        (r"\bSTRN\b|\bNTN\b|\bPakistan\b", "PKR"),
        (r"\bSri Lanka\b", "LKR"),
        (r"\bNepal\b", "NPR"),
        (r"\bMauritius\b", "MUR"),
    ),
    _DOLLARS: hints(
        (r"\b(?:HST|QST|TVQ)\b|\b\d{5} ?\d{4} ?R[TP] ?\d{4}\b", "CAD"),
        (r"\bGST\b", r"\bPST\b", "CAD"),
        (r"\bNZBN\b|\bGST(?: reg)?(?: no| number|#)?\.?:? ?\d{2,3}-\d{3}-\d{3}\b", "NZD"),
        (r"(?i)\babn\b", r"(?i)\bgst\b", "AUD"),
        (r"\bUEN\b|\bPte\.? Ltd\b|\bPTE\.? LTD\b", "SGD"),
        (r"\bR\.?F\.?C\.?\b", r"\bI\.?V\.?A\b", "MXN"),
        (r"\bCFDI\b", "MXN"),
        (r"\bCUIT\b", "ARS"),
    ),
}
"""Numbers and taxes that only those have who are registered there: the seller names them."""
_PLACES: Hints = hints(
    (r"\b[A-Z]\d[A-Z] ?\d[A-Z]\d\b|\bCanada\b|\bOntario\b|\bQu[eé]bec\b|\bBritish Columbia\b", "CAD"),
    (r"\bNew Zealand\b|\bAotearoa\b", "NZD"),
    (r"\bAustralia\b|\b(?:NSW|VIC|QLD|TAS) \d{4}\b|\bABN\b", "AUD"),
    (r"\bSingapore\b", "SGD"),
    (r"\bHong Kong\b", "HKD"),
    (r"\bTaiwan\b", "TWD"),
)
_AMERICAN = re.compile(r"\b[A-Z]{2},? \d{5}(?:-\d{4})?\b|\bU\.?S\.?A\b|\bUnited States\b")
"""Places say less than registers: one of the two parties may be American."""


def country_of_sign(text: str, code: str, named: Counter[str]) -> str | None:
    """What a sign that is usually `code` stands for on this page, if it says so; `named` are the codes on it."""
    family = next((each for each in _FAMILIES if code in each), None)
    if family is None:
        return None
    codes = [each for each, _ in named.most_common() if each in family]
    if len(codes) == 1:
        return codes[0]
    told = first_told(_REGISTERED[family], text)
    if told or codes:
        return told if told in codes or not codes else codes[0]
    if family is _DOLLARS and not _AMERICAN.search(text):
        return first_told(_PLACES, text)
    return None


NAMES = re.compile(
    r"\b(?:(?P<USD>(?:us|u\.s\.|american) dollars?)|(?P<CAD>canadian dollars?|dollars? canadiens?)|"
    r"(?P<AUD>australian dollars?)|(?P<NZD>new zealand dollars?)|(?P<SGD>singapore dollars?)|"
    r"(?P<HKD>hong kong dollars?)|(?P<GBP>pounds? sterling)|(?P<CHF>schweizer franken|swiss francs?|francs? suisses?)|"
    r"(?P<DKK>danske kroner)|(?P<NOK>norske kroner)|(?P<SEK>svenska kronor)|(?P<ZAR>south african rand)|"
    r"(?P<INR>(?:indian )?rupees?)|(?P<PLN>zlotych|zlote)|(?P<CZK>korun ceskych))\b"
)
"""Currencies that are named in words; plain text."""
RAND = re.compile(r"(?<![A-Za-z0-9])R ?\d[\d ,]*[.,]\d{2}(?!\d)")
"""An amount in rand; without cents it may be a number of something."""
