"""Amounts are understood however they are written, and kept in one form."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.extraction.values.amounts import find_amounts, format_amount, guess_decimal, parse_amount

LOCALES = {
    "english": (",", "."),
    "german": (".", ","),
    "french": ("\u202f", ","),
    "swedish": ("\u00a0", ","),
    "plain spaces": (" ", ","),
    "swiss": ("'", "."),
    "swiss, typeset": ("’", "."),
}
AMOUNTS = st.decimals(min_value=-9_999_999_999, max_value=9_999_999_999, places=2, allow_nan=False)


def written(value: Decimal, group: str, decimal: str) -> str:
    """The amount as a locale writes it."""
    return f"{value:,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", group)


def indian(value: Decimal) -> str:
    """The amount with lakhs and crores."""
    whole, cents = f"{abs(value):.2f}".split(".")
    head, tail = whole[:-3], whole[-3:]
    pairs: list[str] = []
    while head:
        head, pair = head[:-2], head[-2:]
        pairs.insert(0, pair)
    return f"{'-' if value < 0 else ''}{','.join([*pairs, tail])}.{cents}"


@pytest.mark.parametrize("locale", LOCALES)
@settings(max_examples=40)
@given(value=AMOUNTS)
def test_an_amount_written_in_any_locale_is_read_back(locale: str, value: Decimal) -> None:
    assert parse_amount(written(value, *LOCALES[locale])) == value


@given(value=AMOUNTS)
def test_an_amount_with_lakhs_is_read_back(value: Decimal) -> None:
    assert parse_amount(indian(value)) == value


@pytest.mark.parametrize(
    "frame",
    ["{} €", "€ {}", "EUR {}", "{} EUR", "RM{}", "RM {}", "${}", "{}kr", "CHF {}", "Rs. {}", "{} zł", "£{}", "{} Kč"],
)
@settings(max_examples=20)
@given(value=AMOUNTS.filter(lambda value: value >= 0))
def test_a_currency_beside_an_amount_does_not_matter(frame: str, value: Decimal) -> None:
    assert parse_amount(frame.format(written(value, ",", "."))) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$-5", "-5"),
        ("-$5.00", "-5.00"),
        ("(12.00)", "-12.00"),
        ("12,00-", "-12.00"),
        ("12,00 -", "-12.00"),
        ("- 5.00", "-5.00"),
        ("−5,00", "-5.00"),
        ("12.00 CR", "-12.00"),
        ("12.00 DR", "12.00"),
        ("EUR -1.234,56", "-1234.56"),
        ("DKK-782179.43", "-782179.43"),
        ("USD (5.00)", "-5.00"),
        ("-.02", "-0.02"),
    ],
)
def test_every_way_to_write_a_negative_is_one(text: str, value: str) -> None:
    assert parse_amount(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CHF 12.–", "12"),
        ("12,-", "12"),
        ("1·50", "1.50"),
        ("Rs. 1,500/-", "1500"),
        ("1,23,456.50/-", "123456.50"),
        ("KES 1,500/=", "1500"),
        ("１，２３４．５０", "1234.50"),
        ("￥１，２３４", "1234"),
        ("١٬٢٣٤٫٥٦", "1234.56"),
        ("12.50SR", "12.50"),
        ("1,00,000", "100000"),
        ("5.592.00", "5592.00"),
        ("1,234,567,89", "1234567.89"),
        ("1.234.567", "1234567"),
        ("0.234", "0.234"),
        ("1234.567", "1234.567"),
        ("1,5", "1.5"),
    ],
)
def test_unusual_forms_are_understood(text: str, value: str) -> None:
    assert parse_amount(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "abc", "05.03.2018", "12:30", "19 %", "19%", "INV12345", "03-87686092", "1.23.4", "12.50 13.00", "3 pcs"],
)
def test_what_is_not_an_amount_is_not_taken_for_one(text: str) -> None:
    assert parse_amount(text) is None


def test_the_document_decides_what_its_text_leaves_open() -> None:
    assert parse_amount("1.234") == 1234
    assert parse_amount("1.234", decimal=",") == 1234
    assert parse_amount("1.234", decimal=".") == Decimal("1.234")
    assert parse_amount("1,234", decimal=".") == 1234
    # What the text says itself is stronger than the hint.
    assert parse_amount("1,234.56", decimal=",") == Decimal("1234.56")


def test_the_decimal_sign_is_guessed_from_amounts_that_leave_no_doubt() -> None:
    assert guess_decimal(["Summe 1.234,56", "Menge 1.000", "7,50"]) == ","
    assert guess_decimal(["Total 1,234.56", "Qty 1,000"]) == "."
    assert guess_decimal(["1.234", "no amounts here"]) is None


def test_amounts_are_found_with_their_place_and_currency() -> None:
    text = "Total (3 items) RM 12.30 incl. 6% tax on 05/03/2018, rounding -0.02"
    found = [(text[one.start : one.end], one.value, one.currency) for one in find_amounts(text) if one.digits]
    assert found == [("RM 12.30", Decimal("12.30"), "MYR"), ("-0.02", Decimal("-0.02"), None)]


def test_cells_of_a_table_are_not_joined() -> None:
    assert [one.value for one in find_amounts("1 234,50")] == [Decimal("1234.50")]
    assert [one.value for one in find_amounts("1 234,50", spaces=False)] == [1, Decimal("234.50")]


@pytest.mark.parametrize(("text", "value"), [("l2.5O", "12.50"), ("12. 50", "12.50"), ("12 .50", "12.50")])
def test_what_ocr_does_to_digits_is_forgiven_when_asked(text: str, value: str) -> None:
    assert parse_amount(text) is None
    assert parse_amount(text, misread=True) == Decimal(value)


@given(value=AMOUNTS)
def test_the_kept_form_has_a_point_and_at_least_two_digits(value: Decimal) -> None:
    kept = format_amount(value)
    assert parse_amount(kept) == value
    assert len(kept.partition(".")[2]) == 2
    assert not kept.startswith("-0.00")


@given(text=st.text(alphabet="0123456789., '-()RM$€%CR/:", max_size=60))
def test_no_text_makes_the_scanner_stumble(text: str) -> None:
    for one in find_amounts(text, misread=True):
        assert 0 <= one.start < one.end <= len(text)
