"""Dates are understood in many languages and orders; what can be read in two ways says so."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.extraction.values.dates import DateOrder, find_dates, find_times, guess_order, parse_date
from docmill.extraction.values.months import NAMES

DAYS = st.dates(min_value=date(1980, 1, 1), max_value=date(2060, 12, 31))


@pytest.mark.parametrize("language", NAMES)
@settings(max_examples=15)
@given(day=DAYS)
def test_a_month_by_name_is_read_in_every_language(language: str, day: date) -> None:
    name = NAMES[language][day.month - 1]
    assert parse_date(f"{day.day}. {name} {day.year}") == day
    assert parse_date(f"{day.day:02} {name.upper()} {day.year} 14:05") == day
    assert parse_date(f"{name.capitalize()} {day.day}, {day.year}") == day


@pytest.mark.parametrize(
    ("form", "order"),
    [
        ("%d.%m.%Y", DateOrder.DMY),
        ("%d/%m/%Y", DateOrder.DMY),
        ("%d-%m-%Y", DateOrder.DMY),
        ("%d/%m/%y", DateOrder.DMY),
        ("%m/%d/%Y", DateOrder.MDY),
        ("%m-%d-%y", DateOrder.MDY),
        ("%Y-%m-%d", DateOrder.YMD),
        ("%Y/%m/%d", DateOrder.YMD),
        ("%Y.%m.%d", DateOrder.YMD),
        ("%Y%m%d", DateOrder.YMD),
        ("%Y年%m月%d日", DateOrder.YMD),
        ("%Y년 %m월 %d일", DateOrder.YMD),
        ("%d %b %Y", None),
        ("%d-%b-%y", None),
        ("%b %d, %Y", None),
        ("%d%b%Y", None),
    ],
)
@settings(max_examples=25)
@given(day=DAYS)
def test_a_date_in_any_form_is_read_back(form: str, order: DateOrder | None, day: date) -> None:
    assert parse_date(day.strftime(form), order=order) == day


def test_a_date_that_can_be_read_in_two_ways_gives_both() -> None:
    (found,) = find_dates("05/03/2018")
    assert found.candidates == (date(2018, 3, 5), date(2018, 5, 3))
    assert found.among(DateOrder.MDY) == date(2018, 5, 3)
    (hinted,) = find_dates("05/03/2018", order=DateOrder.MDY)
    assert hinted.value == date(2018, 5, 3)


@pytest.mark.parametrize("torn", ["03 Sep 20k", "03 Sep 20l7", "03/09/20l7", "3.9.19o"])
def test_a_year_whose_last_digits_were_misread_is_no_year_of_two_digits(torn: str) -> None:
    assert find_dates(torn) == []


@pytest.mark.parametrize("glued", ["03/09/20 10:15", "03/09/20CASHIER 2", "3 Sep 20, noon"])
def test_a_year_of_two_digits_may_be_glued_to_a_word(glued: str) -> None:
    assert [found.value for found in find_dates(glued)] == [date(2020, 9, 3)]


def test_points_are_not_american() -> None:
    (found,) = find_dates("05.03.2018")
    assert found.candidates == (date(2018, 3, 5),)


def test_the_order_is_guessed_from_dates_that_leave_no_doubt() -> None:
    assert guess_order(["05/03/2018", "25/12/2018"]) is DateOrder.DMY
    assert guess_order(["05/03/2018", "12/25/2018"]) is DateOrder.MDY
    assert guess_order(["05/03/2018", "5 March 2018", "2018-01-01"]) is None
    assert guess_order(["25/12/2018", "12/25/2018"]) is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("25/12/201812:30", date(2018, 12, 25)),
        ("25/12/1812:30:11", date(2018, 12, 25)),
        ("Datum: 1. März 2020 Nr. 12", date(2020, 3, 1)),
        ("5 de marzo de 2018", date(2018, 3, 5)),
        ("1er août 2019", date(2019, 8, 1)),
        ("Monday, March 5th, 2018", date(2018, 3, 5)),
        ("5th of March 2018", date(2018, 3, 5)),
        ("05 / 03 / 2018", date(2018, 3, 5)),
        ("2018 m. kovo 5 d.", date(2018, 3, 5)),
        ("5 мая 2018 г.", date(2018, 5, 5)),
        ("15 Μαΐου 2018", date(2018, 5, 15)),
        ("２０１８年３月５日", date(2018, 3, 5)),
        ("٥/٣/٢٠١٨", date(2018, 3, 5)),
    ],
)
def test_dates_are_found_among_other_words(text: str, day: date) -> None:
    assert parse_date(text) == day


@pytest.mark.parametrize(
    "text",
    ["", "May 2018", "31.02.2020", "1.234.56", "12.50 13.00", "192.168.10.20", "2018", "45/13/2018", "1234567890"],
)
def test_what_is_not_a_date_is_not_taken_for_one(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "clock"),
    [("14:05", "14:05:00"), ("2:05 PM", "14:05:00"), ("12:05:09 am", "00:05:09"), ("9h30", "09:30:00")],
)
def test_times_are_kept_on_a_clock_of_24_hours(text: str, clock: str) -> None:
    assert [found[2] for found in find_times(text)] == [clock]


@given(text=st.text(alphabet="0123456789./- :'MarFebOct,年月日", max_size=60))
def test_no_text_makes_the_scanner_stumble(text: str) -> None:
    for found in find_dates(text):
        assert 0 <= found.start < found.end <= len(text)
        assert found.candidates


def test_a_span_of_days_without_a_year_is_no_date() -> None:
    assert find_dates("Oct 1 - Oct 31") == []
    assert [found.value for found in find_dates("Oct 1 - Oct 31, 2023")] == [date(2023, 10, 31)]
    assert [found.value for found in find_dates("1 Oct 31")] == [date(2031, 10, 1)]
