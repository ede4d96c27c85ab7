"""Names of companies inside running text, such as the last lines of a page: found by their legal forms."""

import re
from collections.abc import Iterator

from docmill.extraction.local.invoices.party_words import BEHIND_FORM, LEGAL, SMALL, has_form
from docmill.extraction.local.invoices.wording import plain

_WORD = re.compile(r"\S+")
_MOST = 7
"""Words of a name before its legal form."""
_MORE = re.compile(r"(?:\s*(?:&|und|and|et)\s*|,?\s+)(?=\S)")
_STOPS = re.compile(r"[.:;!?)·•|–—]$")
_INITIAL = re.compile(r"(?:\w|[A-Z][a-z]{0,2}|[A-Z](?:\.[A-Z])+)\.$")
_BEHIND = re.compile(BEHIND_FORM, re.IGNORECASE)
_LEAD = re.compile(
    r"(?:the|an|by|for|from|to|of|firma|bei|der|die|registered|office|issued|sold|our|unsere|company|directors?|"
    r"sitz|bank|banque|banco|banca|sparkasse|insured|copyright|powered|cheques?|checks?|payable|site|job|re)\W*$"
)


def names_in_text(text: str) -> Iterator[tuple[int, int, str]]:
    """Where names with a legal form begin and end in a text, each with the words before it."""
    done = 0
    if not has_form(text):
        return
    for form in LEGAL.finditer(text):
        if form.start() < done or not _is_form(form[0].rstrip(".")):
            continue
        start = _start(text, done, form.start())
        if start is None:
            continue
        done = _end(text, form.end())
        yield start, done, plain(text[max(0, start - 30) : start]).strip()


def _is_form(form: str) -> bool:
    """Whether a legal form is written as one: `AG`, not the first word of `Ag. Roma`."""
    if len(form) == 2:
        return form.isupper() or form in ("Oy", "Co", "Bt")
    return form[0].isupper() or "." in form


def _start(text: str, first: int, end: int) -> int | None:
    """Where the name begins whose legal form stands at `end`: with the first of the capitalised words before it."""
    words = list(_WORD.finditer(text, first, end))[-_MOST:]
    taken: list[re.Match[str]] = []
    for place, word in enumerate(reversed(words)):
        flat = plain(word[0]).strip(",")
        if place and (word[0].endswith(",") or (_STOPS.search(word[0]) and not _INITIAL.search(word[0]))):
            break
        large = word[0][0].isupper() or (flat.isdigit() and len(flat) > 4)
        if not large and flat not in SMALL and word[0] not in ("&", "+"):
            break
        taken.insert(0, word)
    while taken and (not taken[0][0][0].isalnum() or taken[0][0] in SMALL or _LEAD.match(plain(taken[0][0]))):
        del taken[0]
    return taken[0].start() if sum(map(str.isalpha, "".join(word[0] for word in taken))) >= 3 else None


def _end(text: str, end: int) -> int:
    """Where it ends: behind the last of several forms; a stop that ends the sentence is none of the name."""
    while (more := _MORE.match(text, end)) and (form := LEGAL.match(text, more.end())):
        if not _is_form(form[0].rstrip(".")):
            break
        end = form.end()
    if behind := _BEHIND.match(text, end):
        return behind.end()
    last = text[:end].split()[-1]
    sentence = (
        text[end - 1] == "."
        and "." not in last[:-1]
        and (end == len(text) or text[end : end + 2].strip()[:1].isupper())
    )
    return end - 1 if sentence else end
