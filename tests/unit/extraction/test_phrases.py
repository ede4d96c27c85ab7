"""Phrases that are sorted by their first letters are found where `re` finds them as they are written."""

import re

import pytest

from docmill.extraction.local.invoices import party_words
from docmill.extraction.local.invoices.vocabulary import AMOUNTS, DATES, NUMBERS
from docmill.extraction.local.invoices.wording import plain
from docmill.extraction.phrases import Phrases, by_letter
from docmill.testing.paper_readings import papers

_TEXTS = sorted({line.text for _, _, reading in papers() for _, line in reading.lines()})
_VOCABULARY = [*AMOUNTS, *DATES, *NUMBERS]
_ANY_CASE = ("STREET", "CONTACT")
_PARTIES = ("ADDRESS", "DEPARTMENT", "GUEST", "NUMBERED", "OWNER", "REACHED", "REFERENCE", "REGISTERED", "TITLE")
_LONG = "number|numero|nummer|nro|identification|reference|reference number|document|facture|rechnung"
"""More than is written behind every letter that a group begins with."""
_FORMS = (
    "Huber OG",
    "Konsum eG",
    "wegen og",
    "Öztürk Ltd. Şti. A.Ş.",
    "ACME GMBH & CO. KG",
    "Bt",
    "BT",
    "Sole s.r.l.",
    "Ag.",
)


@pytest.mark.parametrize(
    "pattern", [*(pattern for _, _, pattern in _VOCABULARY), *(getattr(party_words, name).pattern for name in _PARTIES)]
)
def test_a_vocabulary_is_found_where_its_pattern_is(pattern: str) -> None:
    phrases, written = Phrases(pattern), re.compile(pattern)
    for text in map(plain, _TEXTS):
        assert phrases.within(text) is bool(written.search(text)), text


@pytest.mark.parametrize("name", _ANY_CASE)
def test_words_about_parties_are_found_whatever_their_case(name: str) -> None:
    phrases: Phrases = getattr(party_words, name)
    written = re.compile(phrases.pattern, re.IGNORECASE)
    for text in (*_TEXTS, *map(str.upper, _TEXTS), "ÖZ LİMİTED ŞTİ", "Müller GMBH", "Zur Kaufmannſtrasse"):
        assert phrases.within(text) is bool(written.search(text)), text


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\bpaid\b", "unpaid", False),
        (r"\bpaid\b", "it is paid", True),
        (r"(?<!ver)kaufer|x", "verkaufer", False),
        (r"(?<!ver)kaufer|x", "kaufer", True),
        (r"(?:amount |sum )?due|never", "sum due", True),
        (r"(?:a|b)+c", "abac", True),
        (r"^to:?$|zzz", "to:", True),
        (r"^to:?$|zzz", "up to:", False),
        (r"\b#|n°", "a#", True),
        (r"\b#|n°", " #", False),
        (r"a?b|[cd]e", "de", True),
        (r"(?:x(?:y|z)|[|)]w)v", ")wv", True),
        (rf"(?:invoice|bill) ?(?:{_LONG})", "invoice nummer", True),
        (rf"(?:invoice|bill) ?(?:{_LONG})", "the invoice is paid", False),
        (rf"x|(?:invoice|bill)? ?(?:{_LONG})", "nummer", True),
        (rf"(?:^(?:to|from) ?(?:{_LONG})|y)z", "from zahl", False),
    ],
)
def test_what_stands_before_and_around_a_phrase_counts(pattern: str, text: str, found: bool) -> None:
    assert Phrases(pattern).within(text) is found is bool(re.search(pattern, text))


def test_legal_forms_are_found_as_their_patterns_find_them() -> None:
    for text in (*_TEXTS, *map(str.upper, _TEXTS), *_FORMS):
        assert party_words.has_form(text) is bool(party_words.LEGAL.search(text)), text
        assert party_words.ends_in_form(text) is bool(party_words.LEGAL_END.search(text)), text


def test_the_letters_that_phrases_fill_are_counted() -> None:
    assert Phrases(r"bill to|ship").letters("bill to, ship to") == len("bill to") + len("ship")
    assert Phrases(r"bill to|ship").letters("from") == 0


def test_a_sorted_pattern_finds_the_same_at_the_same_places() -> None:
    pattern = r"(?<![^\W\d_])(?:credit ?note|credit|note|invoice|in)(?![^\W\d_])"
    text = "creditnote credit note notes in invoice 3in"
    places = [match.span() for match in re.finditer(pattern, text)]
    assert [match.span() for match in by_letter(pattern).finditer(text)] == places
    assert len(places) == 5


def test_a_pattern_that_cannot_be_sorted_is_refused() -> None:
    with pytest.raises(ValueError, match="begin with a letter"):
        by_letter(r"\d+|a")
    with pytest.raises(ValueError, match="no end"):
        Phrases("(?:a")


def test_what_follows_a_group_is_written_once_for_each_letter() -> None:
    pattern = r"(?:invoice|inv|bill|(?:due|debit) note)\W{0,2}(?:number|no)"
    assert by_letter(pattern).pattern.count("number") == len({"i", "b", "d"})
    for text in ("invoice number", "inv no", "bill-no", "due note no", "debit note no"):
        assert by_letter(pattern).fullmatch(text), text
    assert not by_letter(pattern).search("due no")


@pytest.mark.parametrize(
    "pattern", ["|".join(pattern for _, _, pattern in table) for table in (AMOUNTS, DATES, NUMBERS)]
)
def test_heads_pass_over_no_text_that_holds_a_phrase(pattern: str) -> None:
    heads, phrases = Phrases(pattern, heads=True), Phrases(pattern)
    texts = list(map(plain, _TEXTS))
    assert all(heads.within(text) for text in texts if phrases.within(text))
    assert sum(not heads.within(text) for text in texts) > 0.8 * sum(not phrases.within(text) for text in texts)
