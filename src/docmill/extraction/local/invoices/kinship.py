"""Which long name belongs to the short one over the letter: brands, and the companies behind them."""

import re
from collections.abc import Mapping, Sequence

from docmill.extraction.local.invoices.form_words import is_form
from docmill.extraction.local.invoices.names import Name
from docmill.extraction.local.invoices.wording import letters, plain

_WORD = re.compile(r"[^\W\d_]{4,}")
_GENERAL = (
    "consulting services service solutions systems group gruppe groupe hotel restaurant design studio digital media "
    "energy international technik bau handel trade trading management partner partners logistics transport kliniken "
    "praxis team france deutschland italia espana nederland europe security care home club energie verlag"
)
_COMMON = frozenset(_GENERAL.split())
"""Words that companies share which have nothing else in common."""
_SHARED = 6
"""Letters at the beginning of two names that make them one."""


def kinship(named: Sequence[tuple[Name, Mapping[str, float]]]) -> list[tuple[float, float]]:
    """Of each name how far it is the legal name of a brand at the top of the page, and how far it is such a brand."""
    brands = [place for place, (name, features) in enumerate(named) if _is_brand(name, features)]
    legal = [place for place, (_, features) in enumerate(named) if _is_legal(features)]
    behind = [0.0] * len(named)
    short = [0.0] * len(named)
    for one in brands:
        for other in legal:
            if kin := _kin(named[one][0].text, named[other]):
                behind[other] = max(behind[other], kin)
                short[one] = max(short[one], kin)
    return list(zip(behind, short, strict=True))


def _is_brand(name: Name, features: Mapping[str, float]) -> bool:
    """Whether a name stands where a company shows itself, and lacks a legal form."""
    shown = features["first"] or (features["large_type"] > 0.2 and features["top"] > 0.0) or features["domain"] == 1.0
    return bool(
        shown
        and not features["legal_form"]
        and not features["label_like"]
        and not features["address"]
        and max(features["buyer_label"], features["ship_label"]) < 0.5
        and len(letters(name.text)) >= 3
        and not is_form(plain(name.text))
    )


def _is_legal(features: Mapping[str, float]) -> bool:
    """Whether a name stands as that of a company: by its legal form, or in one line with its address."""
    return (
        bool(features["legal_form"] or features["sender_line"])
        and max(features["buyer_label"], features["ship_label"]) < 0.5
    )


def _kin(brand: str, legal: tuple[Name, Mapping[str, float]]) -> float:
    name, features = legal
    short, key = letters(brand), letters(name.text)
    if short == key:
        return 0.0
    if key.startswith(short) or (len(short) >= 5 and short in key):
        return 1.0
    if not features["legal_form"]:
        return 0.0
    same = next((place for place, (one, two) in enumerate(zip(short, key, strict=False)) if one != two), len(short))
    if same >= _SHARED and same >= 0.6 * len(short):
        return 1.0
    # One word in common says little, unless the other name stands where companies say what they are by law.
    told = features["registered"] or features["footer"] or features["sender_line"] or features["top"] > 0.5
    shared = {*_WORD.findall(plain(brand))} & {*_WORD.findall(plain(name.text))} - _COMMON
    return 0.7 if told and shared else 0.0
