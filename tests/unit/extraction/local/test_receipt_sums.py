"""Tax, rounding, currency and lines of till slips, where labels alone would mislead."""

import pytest

from docmill.extraction.local.receipts import read_receipt
from docmill.extraction.local.training import Model, shipped
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from tests.unit.extraction.local.slips import slip

SCHEMA = load_schema("receipt")
HEADER = (
    "          LILY STATIONERY SDN BHD (712345-K)",
    "          NO. 8, JALAN KENANGA 3/2,",
    "          43000 KAJANG, SELANGOR.",
    "          GST ID: 001234567890",
    "RECEIPT NO: CS00123456     DATE: 14/03/2018",
)
BOUGHT = ("ITEM               QTY    PRICE    AMOUNT", "NOTE BOOK A5         1   106.00    106.00")
PAID = ("TOTAL INCL GST 6%                   106.00", "CASH                               110.00", "CHANGE  4.00")
SUMMARY = ("GST SUMMARY        AMOUNT(RM)     TAX(RM)",)


@pytest.fixture(scope="module")
def model() -> Model:
    return shipped("receipt")


def read(model: Model, *rows: str) -> Extraction:
    return read_receipt(slip(*HEADER, *rows), SCHEMA, model)


def value(extraction: Extraction, name: str) -> str | None:
    return extraction.fields[name].value if name in extraction.fields else None


def lines(extraction: Extraction) -> list[tuple[str, str]]:
    return [(row["description"].value, row["amount"].value) for row in extraction.rows["line_items"]]


@pytest.mark.parametrize(
    "rows",
    [
        ("SR @ 6%               100.00        6.00",),
        ("SR @ 6%               100.00        6.00", "TOTAL                 100.00        6.00"),
        ("SR @ 6%               100.00        6.00", "ZR @ 0%                 0.00        0.00"),
        ("SR @ 6%               100.00        6.00", "                      100.00        6.00"),
        ("SR @ 6%                10.00        6.00", "TOTAL                 100.00        6.00"),
        ("SR @ 6%               100.00        6.00      106.00",),
    ],
    ids=["one rate", "its total", "two rates", "a total without a word", "a misread row", "with the sum behind"],
)
def test_the_tax_is_that_of_the_summary_and_not_the_total_that_names_it(model: Model, rows: tuple[str, ...]) -> None:
    found = read(model, *BOUGHT, *PAID, *SUMMARY, *rows)
    assert (value(found, "total"), value(found, "tax")) == ("106.00", "6.00")
    assert found.fields["tax"].grounded


def test_taxes_of_two_rates_are_added(model: Model) -> None:
    rows = ("GST 6%                 60.00        3.60", "GST 5%                 40.38        2.02")
    found = read(model, *BOUGHT, *PAID, *SUMMARY, *rows)
    assert value(found, "tax") == "5.62"
    assert found.fields["tax"].raw == "3.60 + 2.02"


def test_columns_of_the_items_are_no_summary_of_taxes(model: Model) -> None:
    heading = "DESC               PRICE   DISC   AMOUNT  TAX"
    item = "NOTE BOOK A5      106.00   0.00   106.00  SR"
    found = read(model, heading, item, *PAID, *SUMMARY, "SR @ 6%               100.00        6.00")
    assert value(found, "tax") == "6.00"


def test_a_row_that_names_the_tax_is_read(model: Model) -> None:
    found = read(model, *BOUGHT, "TOTAL GST                             6.00", *PAID)
    assert value(found, "tax") == "6.00"


def test_what_makes_the_total_of_the_total_without_tax_is_the_tax(model: Model) -> None:
    rows = ("TOTAL                               106.00", "TOTAL EXCLUDED TAX                  100.00")
    found = read(model, *BOUGHT, *rows, "                                      6.00", "CASH  110.00", "CHANGE  4.00")
    assert value(found, "tax") == "6.00"


@pytest.mark.parametrize("rows", [(), (*SUMMARY, "SR @ 6%               100.00        3.00")], ids=["none", "misread"])
def test_no_tax_is_said_rather_than_a_wrong_one(model: Model, rows: tuple[str, ...]) -> None:
    found = read(model, *BOUGHT, *PAID, *rows)
    assert value(found, "total") == "106.00"
    assert value(found, "tax") is None


@pytest.mark.parametrize("skew", [-0.08, 0.0, 0.08])
def test_rounding_is_a_matter_of_cents_on_a_slip_that_lies_askew(model: Model, skew: float) -> None:
    rows = (
        "SUB TOTAL                            100.00",
        "DISCOUNT :                             0.00",
        "TOTAL GST :                            6.00",
        "ROUNDING :                             0.00",
        "TOTAL :                              106.00",
        "CASH :                               110.00",
        "CHANGE :                               4.00",
    )
    found = read_receipt(slip(*HEADER, *BOUGHT, *rows, skew=skew), SCHEMA, model)
    assert (value(found, "tax"), value(found, "rounding")) == ("6.00", "0.00")


@pytest.mark.parametrize("sign", ["", "RM", "$"])
def test_a_slip_of_a_malaysian_company_is_in_ringgit(model: Model, sign: str) -> None:
    found = read(model, *BOUGHT, f"TOTAL                          {sign}106.00", "CASH  110.00", "CHANGE  4.00")
    assert value(found, "currency") == "MYR"


def test_a_dollar_elsewhere_is_no_ringgit(model: Model) -> None:
    rows = (
        "SUNNY DINER",
        "12 MAIN STREET, AUSTIN, TX 78701",
        "TABLE 4   DATE: 03/14/2018",
        "BURGER   $10.60",
        "TOTAL   $10.60",
    )
    assert value(read_receipt(slip(*rows), SCHEMA, model), "currency") != "MYR"


def test_names_below_the_rows_of_codes_and_amounts_belong_to_these(model: Model) -> None:
    rows = (
        "      VALUED CUSTOMER: 1370001392",
        "   1x 000000118927                 16.90SR",
        "      DESK LAMP OIL",
        "   1x 000005270385                 10.45SR",
        "      PLASTIC BAG",
        "SUB-TOTAL                            27.35",
        "TOTAL SALES INCL GST                 27.35",
    )
    assert lines(read(model, *rows)) == [("DESK LAMP OIL", "16.90"), ("PLASTIC BAG", "10.45")]


def test_a_tax_code_beside_an_amount_is_no_name(model: Model) -> None:
    rows = (
        "ITEM        QTY   S/PRICE   AMOUNT   TAX",
        "E8318         1     80.91    80.91    SR",
        "SCHOOL BAG 15",
        "TOTAL QTY     1",
        "TOTAL SALES                  80.91",
    )
    assert lines(read(model, *rows)) == [("SCHOOL BAG 15", "80.91")]


def test_names_above_the_rows_of_amounts_belong_to_these(model: Model) -> None:
    rows = (
        "1.2012-0029 ORDER CHIT",
        '3.5"x6"',
        "2 X 2.9000                     5.80   SR",
        "2.2044-0137 GLUE STICK",
        "1 X 5.6000                     5.60   SR",
        "TOTAL                         11.40",
    )
    assert lines(read(model, *rows)) == [('ORDER CHIT 3.5"x6"', "5.80"), ("GLUE STICK", "5.60")]


def test_a_mark_behind_an_amount_is_no_quantity(model: Model) -> None:
    rows = (
        "ITEM            QTY    U/P       AMOUNT",
        "813086000911     1   103.77     103.77*",
        "SAFETY SHOES",
        "TOTAL QUANTITY   1",
        "TOTAL                           103.77",
    )
    (row,) = read(model, *rows).rows["line_items"]
    assert (row["description"].value, row["quantity"].value) == ("SAFETY SHOES", "1")
