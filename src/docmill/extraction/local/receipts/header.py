"""What the lines at the head of a receipt are: who sells, where, under which numbers; told line by line."""

import re
from dataclasses import dataclass
from functools import cached_property

from docmill.extraction.local.layout import Layout, Piece, Span
from docmill.extraction.local.wording import plain, tokens

_SIGNS = {
    "registration": r"""\(?\b\d{5,10}\s?[-–]\s?[A-Z0-9]\b\)? | \bco\.?\s?(?:reg|no) | \breg(?:\.|istration)?\s?no
        | \broc\b | company\s(?:reg|no)""",
    "gst": r"\b[cg]st\b | \bsst\b | \bvat\b | \bgst\s?(?:id|no|reg) | \btax\s?(?:id|reg)",
    "phone": r"""\b(?:te[l1]|fax|phone|h/?p|hotline|mobile|careline|contact)\b\s?(?:no)?[\s.:] | \bte[l1]\s?[:.(\d+]
        | (?<!\d)\(?0\d{1,2}\)?\s?[-–]\s?\d{3,4}\s?\d{3,4} | (?<!\d)\+?60[\s-]?\d{1,2}[\s-]?\d{3} | \bte[l1]$""",
    "web": r"www\. | @\w+\. | \.com\b | e-?mail | http | website | facebook",
    "title": r"""\b(?:tax|simplified|cash)\s?(?:invoice|bill|sales?|receipt) | \binvoice\b | \breceipt\b
        | \bcash\s?(?:bill|sale|memo) | guest\ check | order\ chit | adjustment\ note | welcome | thank\ you
        | official""",
    "postcode": r"(?<![\d/-])\d{5}(?![\d/-])",
    "street": r"""\b(?:ja[l1]an|j[l1]n|j[l1]|lorong|lrg|lebuh\w*|persiaran|psrn|street|st|road|rd|avenue|ave|lane|drive
        |boulevard|rue|calle|via|weg|\w+stra(?:ss|ß)e|tingkat|medan|lingkaran|dataran|off|km|batu)\b""",
    "quarter": r"""\b(?:taman|tmn|bandar|bdr|kampung|kg|seksyen|section|sek|seri|sri|pusat|kawasan|perindustrian
        |industrial|park|garden|desa|kota|mall|plaza|centre|center|complex|kompleks|wisma|menara|tower|bangunan|building
        |square|city)\b""",
    "unit": r"""^\W?(?:no|lot|unit|suite|block|blok|level|g\d|[a-z]?-?\d{1,4})\b
        | \b(?:floor|flr|level|ground|lot|unit|block|basement|tingkat)\b""",
    "state": r"""\b(?:se[l1]angor|johor|kua[l1]a\s?[l1]umpur|k\.?[l1]\.?|penang|pulau\ pinang|perak|pahang|kedah
        |kelantan|melaka|malacca|negeri\ sembilan|terengganu|sabah|sarawak|putrajaya|labuan|ma[l1]ays[il1]a|darul
        |ehsan|takzim|petaling|shah\s?alam|singapore|usa|uk|germany)\b""",
    "company": r"""\bsdn\.?\s?bhd | \bsdn\b | \bbhd\b | \b[s5]/[b8]\b | \bs\.b\b | \bsb\b | \bltd\b | \bllc\b | \binc\b
        | \bgmbh\b | \bplc\b | \bco\. | \bcompany\b | \bcorp | \benterprises?\b | \btrading\b | \bholdings?\b""",
    "shop": r"""\b(?:restorant?|restaurant|cafe|kopitiam|bakery\w*|confectionery\w*|stationery|hardware|mart|shop|store
        |pharmacy|kedai|syarikat|perniagaan|marketing|house|books?|food|pasar|market|florist|furnishing|motor|petrol)\b""",
    "owner": r"dimiliki | own(?:ed)?\ by | operated\ by | managed\ by | formerly | f\.?k\.?a\b",
    "bill_to": r"""\b(?:bill\ to|customer|cashier|sold\ to|ship\ to|attn|member|table|server|sales\s?person)\b
        | \bdeliver""",
    "date": r"""\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4} | \d{1,2}:\d{2} | \bdate\b | \btime\b
        | \d{1,2}[\s-](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)""",
    "amount": r"\d\.\d{2}(?!\d) | \brm\b | \bqty\b | \bprice\b | \bamount\b",
    "hours": r"\bhrs?\b | \bhours\b | \d\s?[ap]m\b | \bmon(?:day)?\b | \bsun(?:day)?-",
}
_PATTERNS = {name: re.compile(pattern, re.VERBOSE) for name, pattern in _SIGNS.items()}
_CODE = re.compile(r"\W*[A-Z]{0,3}[\d\W]{3,}[A-Z]?\W*", re.IGNORECASE)
_ADDRESS_OF_WEB = re.compile(r"www\.|@|http|e-?mail|website")
_LIMIT = 20
"""Pieces from the top among which the header is looked for."""


@dataclass(frozen=True, kw_only=True)
class HeaderLine:
    """A piece of the header, and what it looks like."""

    piece: Piece
    text: str
    signs: frozenset[str]

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tokens(self.text)

    def has(self, *names: str) -> bool:
        """Whether it has one of these signs."""
        return not self.signs.isdisjoint(names)

    @cached_property
    def whole(self) -> Span:
        return Span(piece=self.piece, start=0, end=len(self.piece.text))


def header_lines(layout: Layout) -> list[HeaderLine]:
    """The first pieces of the document."""
    return [describe(piece) for piece in layout.pieces[:_LIMIT]]


def describe(piece: Piece) -> HeaderLine:
    """What one piece looks like."""
    text = plain(piece.text)
    low = text.lower()
    signs = {name for name, pattern in _PATTERNS.items() if pattern.search(low if name != "registration" else text)}
    if _PATTERNS["registration"].search(low):
        signs.add("registration")
    if "web" in signs and "company" in signs and not _ADDRESS_OF_WEB.search(low):
        signs.discard("web")  # A name may end in .com.
    if _CODE.fullmatch(text):
        signs.add("code")
    if sum(character.isdigit() for character in text) > len(text) / 2:
        signs.add("digits")
    if text.rstrip()[-1:] == ",":
        signs.add("comma")
    if text.rstrip()[-1:] == ".":
        signs.add("stop")
    if text.upper() == text:
        signs.add("capitals")
    if sum(character.isalpha() for character in text) < 3:
        signs.add("wordless")
    return HeaderLine(piece=piece, text=text, signs=frozenset(signs))


def gap(first: HeaderLine | None, second: HeaderLine | None) -> float:
    """The white space between two lines, in heights of the second; 2 where one is missing or on another page."""
    if first is None or second is None or first.piece.page != second.piece.page:
        return 2.0
    height = max(second.piece.box.height, first.piece.box.height, 1e-6)
    return max(-1.0, min(2.0, (second.piece.level - first.piece.level) / height - 1))


def aligned(first: HeaderLine | None, second: HeaderLine | None) -> float:
    """1 when the lines share their left edge or their middle."""
    if first is None or second is None:
        return 0.0
    one, other = first.piece.box, second.piece.box
    left = abs(one.left - other.left)
    middle = abs(one.left + one.right - other.left - other.right) / 2
    return float(min(left, middle) < 0.03)


def around(features: dict[str, float], name: str, line: HeaderLine | None, words: bool = True) -> None:
    """Add what a line beside the candidate looks like."""
    if line is None:
        features[f"{name}_edge"] = 1.0
        return
    for sign in sorted(line.signs):
        features[f"{name}_{sign}"] = 1.0
    if words:
        for word in dict.fromkeys(line.words[:6]):
            features[f"{name}={word}"] = 0.5
