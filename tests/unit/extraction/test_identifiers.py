"""Currencies, account numbers and tax numbers are told from what only looks like them."""

import pytest

from docmill.extraction.values import FieldType, canonical
from docmill.extraction.values.currencies import find_currencies, parse_currency
from docmill.extraction.values.identifiers import bic, find_ibans, find_phones, find_vat_ids, iban
from docmill.extraction.values.texts import bare, clean, fold, loose


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("€", "EUR"),
        ("eur", "EUR"),
        ("RM", "MYR"),
        ("US$", "USD"),
        ("zł", "PLN"),
        ("Kč", "CZK"),
        ("SFr.", "CHF"),
        ("x", None),
    ],
)
def test_signs_and_codes_become_iso_codes(text: str, code: str | None) -> None:
    assert parse_currency(text) == code


def test_codes_count_in_capitals_and_words_beside_numbers() -> None:
    assert [found.code for found in find_currencies("all of it: 12 kr, ALL 5, total in EUR")] == ["SEK", "ALL", "EUR"]
    assert not find_currencies("the kr and the rm")
    assert not find_currencies("order BWP12J")
    assert not find_currencies("M&G R3 GEL PEN 0.5MM 3'S")
    assert [found.code for found in find_currencies("BWP12, 12BWP")] == ["BWP", "BWP"]


def test_an_iban_needs_its_length_and_its_checksum() -> None:
    assert iban("DE89 3704 0044 0532 0130 00") == "DE89370400440532013000"
    assert iban("IBAN: GB82 WEST 1234 5698 7654 32") == "GB82WEST12345698765432"
    assert iban("DE89 3704 0044 0532 0130 01") is None
    assert iban("DE89 3704 0044 0532 0130") is None


def test_an_iban_ends_where_its_country_says() -> None:
    (found,) = find_ibans("IBAN DE89 3704 0044 0532 0130 00 BIC COBADEFFXXX")
    assert found.value == "DE89370400440532013000"


def test_a_bic_has_the_shape_of_one() -> None:
    assert bic("COBADEFFXXX") == "COBADEFFXXX"
    assert bic("INVOICE1") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("USt-IdNr. DE 123 456 789", "DE123456789"),
        ("TVA FR 32 123 456 789", "FR32123456789"),
        ("ATU12345678", "ATU12345678"),
        ("CHE-123.456.789 MWST", "CHE123456789MWST"),
        ("VAT NL123456789B01 and more", "NL123456789B01"),
    ],
)
def test_vat_numbers_are_found_with_or_without_spaces(text: str, value: str) -> None:
    assert [found.value for found in find_vat_ids(text)] == [value]


def test_telephone_numbers_are_known_as_such() -> None:
    assert find_phones("Tel: 03-87686092")
    assert find_phones("+49 (30) 1234-567")
    assert not find_phones("Total 1.234,56")


def test_text_has_one_form_to_keep_and_two_to_compare() -> None:
    assert clean("  ACME \n Ltd. ") == "ACME Ltd."
    assert fold("ACME\u00a0 Straße") == "acme strasse"
    assert loose("A.C.M.E. (Ltd)") == "acmeltd"
    assert bare("Größe n’été") == "große n'ete"
    assert len(bare("ĲssİZ ﬁ")) == len("ĲssİZ ﬁ")


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (FieldType.AMOUNT, "€ 1.234,5", "1234.50"),
        (FieldType.NUMBER, "2,50", "2.5"),
        (FieldType.PERCENT, "19,00 %", "19"),
        (FieldType.COUNT, "3", "3"),
        (FieldType.COUNT, "3,5", None),
        (FieldType.DATE, "5. März 2018", "2018-03-05"),
        (FieldType.TIME, "2:05 pm", "14:05:00"),
        (FieldType.CURRENCY, "$", "USD"),
        (FieldType.TEXT, "  a   b ", "a b"),
        (FieldType.IBAN, "DE00", None),
        (FieldType.BOOLEAN, "Ja", "true"),
        (FieldType.TEXT, "   ", None),
    ],
)
def test_every_type_has_one_canonical_form(kind: FieldType, raw: str, value: str | None) -> None:
    assert canonical(kind, raw) == value


def test_a_word_of_a_list_is_kept_as_the_list_spells_it() -> None:
    assert canonical(FieldType.ENUM, "CARD", words=["cash", "card"]) == "card"
    assert canonical(FieldType.ENUM, "cheque", words=["cash", "card"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "KEDAI BUKU MEKAR SDN BHD",
        "KEDAI BUKU MEKAR SDN. BHD. (123456-K)",
        "MEKAR CO. (M) BHD (126926-H)",
        "MEKAR SDN BHD 123456",
        "PERNIAGAAN MEKAR BHD",
    ],
)
def test_the_form_of_a_malaysian_company_is_not_the_dinar_of_bahrain(text: str) -> None:
    assert not find_currencies(text)


@pytest.mark.parametrize("text", ["TOTAL BHD 12.500", "12.500 BHD", "Currency: BHD", "BHD", "(BHD)"])
def test_the_dinar_of_bahrain_is_found_beside_an_amount_behind_its_label_and_alone(text: str) -> None:
    assert [found.code for found in find_currencies(text)] == ["BHD"]
