"""Amounts as people write them, in any common locale, and as we keep them.

What the digits and separators say themselves decides first (`1.234,56` can be read in one way only); where they leave
two readings (`1.234`), the decimal sign of the other amounts of the document decides, see `guess_decimal`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from docmill.extraction.values import currencies
from docmill.extraction.values.texts import western

_GAPS = "\u00a0\u202f\u2009"
"""Spaces that typesetters put inside numbers and nowhere else."""
_NUMBER = re.compile(
    rf"""(?<![\d])(?<!\d[.,:/'])(?:
      (?P<indian>\d{{1,2}}(?:,\d{{2}})+,\d{{3}}(?:\.\d{{1,4}})?)
    | (?P<grouped>\d{{1,3}}(?P<mark>[.,'’{_GAPS}\ ])\d{{3}}(?:(?P=mark)\d{{3}})*(?!\d)(?:[.,·]\d{{1,4}})?)
    | (?P<plain>\d+(?:[.,·]\d{{1,4}})?)
    | (?P<bare>(?<![\w.,])[.,]\d{{2}})
    )(?!\d)(?![.:/,'-]\d)(?P<dash>(?:[.,](?:[-–—]{{1,2}}|=)|/[-=])(?!\d))?""",
    re.VERBOSE,
)
_NARROW = re.compile(_NUMBER.pattern.replace("\\ ])", "])"), re.VERBOSE)
"""The same without spaces between groups: for cells of a table, where `1 234,50` is a count and a price."""
_LOOKALIKES = str.maketrans({"O": "0", "o": "0", "Q": "0", "D": "0", "l": "1", "I": "1", "|": "1", "S": "5", "B": "8"})
_MISREAD = re.compile(
    r"(?<![A-Za-z\d.,|])(?=[.,]?[OoQDlI|SB]{0,9}\d)[\dOoQDlI|SB,.]{0,30}[.,][\dOoQDlI|SB]{2}(?![A-Za-z\d])"
)
_TORN = re.compile(r"(?<![\d.,])(\d+)(?: ([.,])|([.,]) )(\d{2})(?![\d.,%])")
_SIGNS = "-−–"
_OPENING = re.compile(r"(?<![\w)])([-−–])\s?$")
_DASH = re.compile(r"([-−–])\s?$")
_CREDIT = re.compile(r"\s?(?:CR|Cr|cr)(?![A-Za-z])")
_FLAG = re.compile(r"[A-Z]{1,2}(?![A-Za-z])")
_MARK = re.compile(r"[.,·]")
_PLAIN = re.compile(r"[-+]?\d{1,40}(?:\.\d{1,40})?", re.ASCII)
_CENTS = 2


@dataclass(frozen=True, slots=True)
class AmountFound:
    """An amount in a text."""

    start: int
    end: int
    """With its sign and its currency."""
    value: Decimal
    digits: int
    """Written behind the decimal sign; most counts and numbers of things have none."""
    currency: str | None = None
    """The code of the currency that stands beside it."""
    ambiguous: bool = False
    """One separator with three digits behind it, and nothing said which it is."""


def parse_amount(text: str, *, decimal: str | None = None, misread: bool = False) -> Decimal | None:
    """The amount that a text is, and nothing else; None if it is not one.

    `decimal` is the decimal sign of the document, which settles `1.234`. `misread` forgives what OCR does to digits.
    """
    kept = (mend(western(text)) if misread else western(text)).strip()
    for sign in _SIGNS:
        if kept.startswith(sign + " "):
            kept = sign + kept[2:].lstrip()
        if kept.endswith(" " + sign):
            kept = kept[:-2].rstrip() + sign
    found = find_amounts(kept, decimal=decimal)
    if len(found) != 1:
        return None
    rest = (kept[: found[0].start] + " " + kept[found[0].end :]).strip(" .:*()[]+")
    if not rest or currencies.parse_currency(rest) or (found[0].digits == _CENTS and _is_flag(rest)):
        return found[0].value
    return None


def labelled_amount(text: str) -> Decimal | None:
    """The amount that a label means: a decimal number with a point is its value, however many zeros end it.

    So `1000.000` is a thousand and `1.000` is one; what is written as print is (`1.234,50`) is read as such.
    """
    kept = text.strip()
    return Decimal(kept) if _PLAIN.fullmatch(kept) else parse_amount(kept, decimal=".")


def find_amounts(
    text: str, *, decimal: str | None = None, misread: bool = False, spaces: bool = True
) -> list[AmountFound]:
    """Every number in a text that may be an amount, in order; no dates, times, rates in percent or parts of words.

    Whole numbers count (`digits` is 0). `spaces=False` never joins `1 234` over a plain space.
    """
    return list(_amounts(mend(western(text)) if misread else western(text), decimal, spaces))


@lru_cache(maxsize=1024)
def _amounts(text: str, decimal: str | None, spaces: bool) -> tuple[AmountFound, ...]:
    """Kept, because several readers ask for the amounts of one line."""
    found = [_judge(text, match, decimal) for match in (_NUMBER if spaces else _NARROW).finditer(text)]
    return tuple([one for one in found if one is not None])


def mend(text: str) -> str:
    """OCR's confusions undone where a number stands (`l2.5O`), as long as before; gaps at a decimal sign closed."""
    mended = _MISREAD.sub(lambda match: match[0].translate(_LOOKALIKES), text)
    # The gap moves in front of the number, so that every place behind it stays where it was.
    return _TORN.sub(lambda match: f" {match[1]}{match[2] or match[3]}{match[4]}", mended)


def guess_decimal(texts: Iterable[str]) -> str | None:
    """The decimal sign that most amounts of these texts show beyond doubt; None if none does."""
    shown = "".join([_sure_signs(text) for text in texts])
    points, commas = shown.count("."), shown.count(",")
    if points == commas:
        return None
    return "." if points > commas else ","


@lru_cache(maxsize=1024)
def _sure_signs(text: str) -> str:
    """The decimal signs of the amounts of a text that show theirs beyond doubt."""
    written = [match["indian"] or match["grouped"] or match["plain"] for match in _NUMBER.finditer(western(text))]
    return "".join([sign for one in written if one and (sign := _sure_sign(one))])


def format_amount(value: Decimal) -> str:
    """As it is kept: two digits behind the point, or as many as there are."""
    exponent = value.as_tuple().exponent
    digits = max(_CENTS, -exponent) if isinstance(exponent, int) else _CENTS
    return f"{value + 0:.{digits}f}"


def format_number(value: Decimal) -> str:
    """As numbers that are not money are kept: no zeros at the end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _sure_sign(written: str) -> str | None:
    last = max(written.rfind("."), written.rfind(","))
    if last < 0:
        return None
    behind, before = len(written) - last - 1, written[:last]
    if behind != 3 and (behind == _CENTS or any(mark in before for mark in ".,'’ ")):
        return written[last]
    if behind == 3 and written[last] in before:
        return "," if written[last] == "." else "."
    return None


def _judge(text: str, match: "re.Match[str]", decimal: str | None) -> AmountFound | None:
    start, end = match.span()
    value, digits, ambiguous = _value(match, decimal)
    before, after = text[max(0, start - 8) : start], text[end : end + 8]
    if after.lstrip()[:1] in ("%", "‰"):
        return None
    currency = None
    if not before or before.isspace():
        # As most numbers of a table stand: alone.
        negative = False
    elif near := currencies.BEFORE.search(before):
        currency = currencies.parse_currency(near[0].strip())
        start -= len(near[0])
        before = text[max(0, start - 8) : start]
        negative = False
    elif (sign := _DASH.search(before)) and (near := currencies.BEFORE.search(before[: sign.start()] or "")):
        # `$-5`, `RM -5.00`
        currency = currencies.parse_currency(near[0].strip())
        start -= len(near[0]) + len(sign[0])
        before = text[max(0, start - 8) : start]
        negative = True
    else:
        negative = False
    if before[-1:].isalpha() or before[-1:] in ("_", "#", "@", "\\"):
        return None
    if not currency and before[-1:] in ("/", ":") and before[-2:-1].isalnum() and before[-1:] == "/":
        return None
    if not negative and (sign := _OPENING.search(before)) and len(sign[0]) == 1:
        negative, start = True, start - 1
    if near := (None if currency or not after else currencies.AFTER.match(after)):
        currency = currencies.parse_currency(near[0].strip())
        end += len(near[0])
        after = text[end : end + 8]
    if after[:1] in ("-", "−", "–") and not after[1:2].isalnum() and not negative and not match["dash"] and digits:
        negative, end = True, end + 1
    elif credit := _CREDIT.match(after):
        negative, end = not negative, end + len(credit[0])
    elif after[:1].isalpha() and not (digits == _CENTS and _is_flag(after)):
        return None
    elif text[start - 1 : start] == "(" and text[end : end + 1] == ")" and digits:
        negative, start, end = True, start - 1, end + 1
    return AmountFound(start, end, -value if negative else value, digits, currency, ambiguous)


def _is_flag(after: str) -> bool:
    """A letter or two that till rolls print behind a price to say how it is taxed: `12.50 SR`, `2,99A`."""
    return _FLAG.match(after) is not None


def _value(match: "re.Match[str]", decimal: str | None) -> tuple[Decimal, int, bool]:
    if written := match["indian"]:
        return _made(written.replace(",", ""), ".")
    if written := match["bare"]:
        return _made("0" + written, written[0])
    if written := match["plain"]:
        found = _MARK.search(written)
        if not found:
            return _made(written, None)
        whole, behind = written[: found.start()], written[found.end() :]
        # Four digits or more before the sign, or a leading zero: no thousands are written like that.
        if len(behind) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0" and found[0] != "·":
            return _one_mark(whole, behind, found[0], decimal)
        return _made(written, found[0])
    written, mark = match["grouped"], match["mark"]
    last = max(written.rfind("."), written.rfind(","), written.rfind("·"))
    if mark in ".,":
        if written.count(mark) == 1 and last == written.rfind(mark):
            whole, behind = written.split(mark)
            if whole[0] == "0":
                return _made(written, mark)
            return _one_mark(whole, behind, mark, decimal)
        if written[last] == mark and len(written) - last > _CENTS + 1:
            return _made(written.replace(mark, ""), None)
        # Else the last group is too short for one: `5.592.00` as OCR reads `5,592.00`.
    if last < 0:
        return _made(written.replace(mark, ""), None)
    return _made(written[:last].replace(mark, "") + written[last:], written[last])


def _one_mark(whole: str, behind: str, mark: str, decimal: str | None) -> tuple[Decimal, int, bool]:
    """`1.234`: thousands unless the document writes its decimals with this very mark."""
    if mark == decimal:
        return Decimal(f"{whole}.{behind}"), len(behind), False
    return Decimal(whole + behind), 0, decimal is None


def _made(written: str, sign: str | None) -> tuple[Decimal, int, bool]:
    if sign is None:
        return Decimal(written), 0, False
    whole, _, behind = written.partition(sign)
    return Decimal(f"{whole or 0}.{behind}"), len(behind), False
