"""What the shipped model reads from a till slip, and what it says about it."""

from dataclasses import replace

import pytest

from docmill.extraction.checks import check
from docmill.extraction.confidence import DOUBTED_BY_READER
from docmill.extraction.local.receipts import RECEIPT, read_receipt
from docmill.extraction.local.training import Labelled, Model, cross_validate, shipped
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from tests.unit.extraction.local.slips import GROCER, slip

SCHEMA = load_schema("receipt")
ADDRESS = "NO. 8, JALAN KENANGA 3/2, TAMAN BUNGA RAYA, 43000 KAJANG, SELANGOR."


@pytest.fixture(scope="module")
def model() -> Model:
    return shipped("receipt")


def changed(*replacements: tuple[str, str]) -> list[str]:
    rows = list(GROCER)
    for old, new in replacements:
        assert any(old in row for row in rows)
        rows = [row.replace(old, new) for row in rows]
    return rows


def read(model: Model, *rows: str) -> Extraction:
    return read_receipt(slip(*rows), SCHEMA, model)


def values(extraction: Extraction) -> dict[str, str]:
    return {name: found.value for name, found in extraction.fields.items()}


def test_the_fields_that_matter_are_read(model: Model) -> None:
    found = values(read(model, *GROCER))
    assert found["company"] == "HARVEST MOON GROCER SDN BHD"
    assert found["address"] == ADDRESS
    assert found["date"] == "2018-03-14"
    assert found["total"] == "18.80"


def test_every_value_has_evidence_on_its_page_and_signals(model: Model) -> None:
    extraction = read(model, *GROCER)
    for name in ("company", "address", "date", "total"):
        found = extraction.fields[name]
        assert found.grounded
        assert found.evidence[0].page == 1
        assert 0 <= found.evidence[0].box.left < found.evidence[0].box.right <= 1
        assert {"score", "margin", "ocr", "repaired", "page_legible"} <= found.signals.keys()
    total = extraction.fields["total"]
    assert {"repeats", "label", "settled", "rank"} <= total.signals.keys()
    assert total.signals["arithmetic"] >= 1
    assert total.evidence[0].box.left > 0.5
    address = extraction.fields["address"].evidence[0].box
    assert address.top < extraction.fields["total"].evidence[0].box.top


def test_what_was_hard_to_read_is_doubted(model: Model) -> None:
    blurred = slip(*GROCER, score=0.8)
    sharp, poor = read(model, *GROCER), read_receipt(blurred, SCHEMA, model)
    for name in ("company", "address", "date", "total"):
        assert poor.fields[name].signals["page_legible"] < sharp.fields[name].signals["page_legible"]
    typed = read_receipt(slip(*GROCER, score=None), SCHEMA, model)
    assert "page_legible" not in typed.fields["total"].signals


def test_an_address_whose_lines_are_joined_without_commas_is_doubted(model: Model) -> None:
    whole = read(model, *GROCER).fields["address"].signals
    joined = read(model, *changed(("RAYA,", "RAYA"), ("SELANGOR.", "SELANGOR"))).fields["address"].signals
    assert joined["open_joins"] > whole["open_joins"]


def test_a_total_that_cash_and_change_confirm_is_trusted_more(model: Model) -> None:
    settled = read(model, *GROCER).fields["total"].signals
    unsettled = read(model, *changed(("CHANGE                               1.20", ""))).fields["total"].signals
    assert settled["settled"] > unsettled["settled"]


def test_the_rounded_amount_is_the_total(model: Model) -> None:
    assert values(read(model, *changed(("18.82", "18.83"), ("-0.02", "-0.03"))))["total"] == "18.80"


ROUNDED = (
    *GROCER[:13],
    "TOTAL SALES (INCLUSIVE GST)         18.82",
    "TOTAL                               18.82",
    "ROUNDING ADJUSTMENT                 -0.02",
    "ROUNDING                            18.80",
    "CASH                                20.00",
    "CHANGE                               1.20",
)
PAYABLE = (
    *GROCER[:10],
    "Total 0% supplies:                  20.67",
    "Total 6% supplies (excl. GST):      69.36",
    "GST:                                 4.16",
    "Total 6% supplies (Inc. GST):       73.52",
    "Total 0% supplies:                  20.67",
    "Total Payable:                      94.19",
)


@pytest.mark.parametrize(("rows", "total"), [(ROUNDED, "18.80"), (PAYABLE, "94.19")])
def test_a_total_that_became_part_of_what_was_paid_is_not_the_total(
    model: Model, rows: tuple[str, ...], total: str
) -> None:
    found = read(model, *rows).fields["total"]
    assert found.value == total
    assert not {"18.82", "73.52", "20.67"} & set(found.alternatives)


def test_a_part_that_cash_and_change_confirm_stays_a_candidate(model: Model) -> None:
    """What was paid is settled; a sum that follows it is not the total for being a sum."""
    rows = (*GROCER, "TOTAL SAVED                          1.00", "TOTAL BILL                          19.80")
    assert values(read(model, *rows))["total"] == "18.80"


def test_how_legible_a_value_is_and_a_number_before_an_address_are_told(model: Model) -> None:
    found = read(model, *GROCER).fields
    assert all("legible" in found[name].signals for name in ("company", "date", "total"))
    assert found["address"].signals["numbered"] == 1
    assert read(model, *changed(("NO. 8,", "8,"))).fields["address"].signals["numbered"] == 0
    typed = read_receipt(slip(*GROCER, score=None), SCHEMA, model)
    assert typed.fields["address"].signals["numbered"] == 0


def test_a_stamp_or_a_name_written_above_is_not_the_company(model: Model) -> None:
    found = values(read(model, "              A03018", *GROCER))
    assert found["company"] == "HARVEST MOON GROCER SDN BHD"


def test_a_name_over_two_lines_is_joined(model: Model) -> None:
    rows = ["          HARVEST MOON GROCER &", "          HARDWARE SDN BHD", *GROCER[1:]]
    assert values(read(model, *rows))["company"] == "HARVEST MOON GROCER & HARDWARE SDN BHD"


@pytest.mark.parametrize("second", ["& HARDWARE SDN BHD", "(KAJANG) SDN BHD", "CO. (M) SDN BHD"])
def test_no_name_begins_with_its_second_line(model: Model, second: str) -> None:
    rows = ["          HARVEST MOON", f"          {second}", *GROCER[1:]]
    found = read(model, *rows).fields["company"]
    assert found.value == f"HARVEST MOON {second}"
    assert second not in found.alternatives


def test_a_number_of_registration_that_was_misread_does_not_leave_its_bracket(model: Model) -> None:
    rows = ["  HARVEST MOON GROCER SDN. BHD. (2-19336-T)", *GROCER[1:]]
    assert values(read(model, *rows))["company"] == "HARVEST MOON GROCER SDN. BHD."


def test_a_postcode_is_no_telephone_number(model: Model) -> None:
    """46000 has the 60 of a call to Malaysia in it; an address goes on behind it."""
    rows = changed(("43000 KAJANG, SELANGOR.", "46000 PETALING JAYA,"))
    place = next(number for number, row in enumerate(rows) if "46000" in row)
    rows.insert(place + 1, "            SELANGOR DARUL EHSAN")
    assert values(read(model, *rows))["address"].endswith("46000 PETALING JAYA, SELANGOR DARUL EHSAN")


def test_names_and_addresses_are_repaired_and_raw_keeps_what_was_read(model: Model) -> None:
    rows = changed(("GROCER SDN BHD", "GROCERYSDNBHD"), ("JALAN KENANGA", "JA:AN KENANGA"), ("RAYA,", "RAYA."))
    extraction = read(model, *rows)
    assert extraction.fields["address"].value == ADDRESS
    assert "JA:AN" in extraction.fields["address"].raw
    assert extraction.fields["address"].signals["repaired"] > 0
    assert extraction.fields["company"].value == "HARVEST MOON GROCERY SDN BHD"


def test_a_misread_total_is_what_the_sums_demand(model: Model) -> None:
    rows = [row.replace("18.80", "118.80") if row.startswith("TOTAL") else row for row in GROCER]
    found = read(model, *rows).fields["total"]
    assert found.value == "18.80"
    assert found.raw == "118.80"
    assert found.signals["mended"] == 1


@pytest.mark.parametrize(
    "written", ["TOTAL                               18-80", "TCTAL                               18.80"]
)
def test_a_total_is_found_when_its_point_or_its_label_was_misread(model: Model, written: str) -> None:
    assert values(read(model, *changed(("TOTAL                               18.80", written))))["total"] == "18.80"


@pytest.mark.parametrize(
    "written", ["14/03/201810:22:31", "DATE:14-03-2018", "2018-03-1410:22:31", "14 MAR 2018", "DATE 14032018"]
)
def test_dates_are_found_when_they_run_into_what_stands_beside_them(model: Model, written: str) -> None:
    assert values(read(model, *changed(("DATE: 14/03/2018", written))))["date"] == "2018-03-14"


DINER = (
    "          BLUE HERON DINER",
    "          88 MAIN ST",
    "          RYE, NY 10580",
    "CHECK 4471     06/07/2026 08:14 AM",
    "COFFEE                               3.25",
    "PANCAKES                             9.50",
    "SUBTOTAL                            12.75",
    "TAX                                  1.07",
    "TOTAL                               13.82",
    "VISA                                13.82",
)


@pytest.mark.parametrize(
    ("changes", "day", "currency"),
    [
        ({}, "2026-06-07", "USD"),
        ({"NY 10580": "NY", "88 MAIN ST": "(914) 555-0142", "TOTAL ": "TOTAL $"}, "2026-06-07", "USD"),
        ({"RYE, NY 10580": "55100 KUALA LUMPUR", "TAX ": "GST "}, "2026-07-06", "MYR"),
        ({"RYE, NY 10580": "LONDON N1 9GU", "TAX ": "VAT "}, "2026-07-06", None),
        ({"RYE, NY 10580": "ONTARIO, CA 91761"}, "2026-06-07", "USD"),
        ({"PANCAKES ": "SINGAPORE"}, "2026-06-07", "USD"),
    ],
)
def test_the_month_stands_first_in_america_only(
    model: Model, changes: dict[str, str], day: str, currency: str | None
) -> None:
    rows = "\n".join(DINER)
    for old, new in changes.items():
        rows = rows.replace(old, new)
    extraction = read(model, *rows.splitlines())
    assert extraction.fields["date"].value == day
    assert DOUBTED_BY_READER not in extraction.fields["date"].signals
    assert values(extraction).get("currency") == currency


@pytest.mark.parametrize("line", ["RYE", "Order ID 10234", "Check in 12345", "Palermo PA 90133"])
def test_a_day_that_may_be_two_is_doubted_where_nothing_tells_the_country(model: Model, line: str) -> None:
    rows = [row.replace("RYE, NY 10580", line) for row in DINER]
    assert read(model, *rows).fields["date"].signals[DOUBTED_BY_READER] == 1
    plain = [row.replace("06/07/2026", "26/07/2026") for row in rows]
    assert DOUBTED_BY_READER not in read(model, *plain).fields["date"].signals


def test_other_days_of_a_slip_tell_which_number_is_the_month(model: Model) -> None:
    rows = [*DINER, "VALID UNTIL 26/08/2026"]
    assert values(read(model, *rows))["date"] == "2026-07-06"


def test_what_was_owed_before_is_not_what_was_paid(model: Model) -> None:
    rows = [*GROCER[:9], "Outstanding before payment       RM 153.85", "Amount Paid (Cash)               RM 118.35"]
    found = read(model, *rows).fields["total"]
    assert found.value == "118.35"
    assert "153.85" not in found.alternatives


def test_the_number_of_a_house_is_no_date(model: Model) -> None:
    rows = changed(("NO. 8, JALAN KENANGA 3/2,", "1-1-09, QUEENS MALL,"))
    found = read(model, *rows)
    assert found.fields["date"].value == "2018-03-14"
    assert "2009-01-01" not in found.fields["date"].alternatives
    dated = changed(("     DATE: 14/03/2018", ""), ("THANK YOU PLEASE COME AGAIN", "14-03-18, Wed 12:10"))
    assert values(read(model, *dated))["date"] == "2018-03-14"


def test_the_number_of_a_shop_keeps_its_sign(model: Model) -> None:
    rows = changed(("TAMAN BUNGA RAYA,", "#03-11 BUNGA RAYA MALL,"))
    assert "#03-11 BUNGA RAYA MALL," in values(read(model, *rows))["address"]


def test_a_name_that_is_written_twice_is_given_in_letters(model: Model) -> None:
    beside = read(model, *changed(("SDN BHD", "SDN BHD 收获月"))).fields["company"]
    assert beside.value == "HARVEST MOON GROCER SDN BHD"
    rows = [GROCER[0], "               收获月杂货", *GROCER[1:]]
    assert values(read(model, *rows))["company"] == "HARVEST MOON GROCER SDN BHD"


def test_words_that_are_printed_as_one_are_left_so(model: Model) -> None:
    rows = changed(("TAMAN BUNGA RAYA,", "TAMANBANDAR BUNGA RAYA,"))
    whole = read_receipt(slip(*rows, whole=True), SCHEMA, model)
    assert "TAMANBANDAR" in whole.fields["address"].value
    assert "TAMAN BANDAR" in values(read(model, *rows))["address"]


MARKET = (
    "              SUPERMARKT LINDE",
    "          Schillerplatz 4, 70173 Stuttgart",
    "                                  EUR",
    "BIO MILCH 3,8%                   1,29 B",
    "ROGGENBROT                       3,49 B",
    "WEIN GRAUBURG.                   5,99 A",
    "SUMME                EUR        10,77",
    "Geg. BAR             EUR        20,00",
    "Rückgeld             EUR         9,23",
    "Steuer %      Netto   Steuer   Brutto",
    "A= 19,0%       5,03     0,96     5,99",
    "B= 7,0%        4,47     0,31     4,78",
    "14.03.2026     18:22      Bon 7712",
)


def test_the_lines_of_a_till_on_the_continent_end_at_its_sum(model: Model) -> None:
    found = read(model, *MARKET)
    assert [row["amount"].value for row in found.rows["line_items"]] == ["1.29", "3.49", "5.99"]
    assert values(found)["total"] == "10.77"
    assert found.fields["total"].signals["settled"] == 1


def test_a_tip_and_a_charge_for_service_are_parts_of_the_total(model: Model) -> None:
    rows = [*DINER[:-2], "SERVICE CHARGE                       1.28", "TIP                                  2.00"]
    rows += ["GRAND TOTAL                         17.10", "VISA                                17.10"]
    found = check(read(model, *rows), SCHEMA)
    assert [values(found)[name] for name in ("service_charge", "tip", "total")] == ["1.28", "2.00", "17.10"]
    assert {"total_adds_up", "lines_add_up"} <= {each.name for each in found.checks if each.passed}
    bread = read(model, *[row.replace("PANCAKES     ", "TIP TOP BREAD") for row in DINER])
    assert "tip" not in bread.fields
    assert [row["description"].value for row in bread.rows["line_items"]] == ["COFFEE", "TIP TOP BREAD"]
    above = [*DINER[:-3], "TIP                                  2.00", "TOTAL                               15.82"]
    assert [row["amount"].value for row in read(model, *above).rows["line_items"]] == ["3.25", "9.50"]


def test_how_many_stands_before_what_if_it_does_so_in_every_row(model: Model) -> None:
    rows = [row.replace("COFFEE  ", "2 COFFEE").replace("PANCAKES  ", "1 PANCAKES") for row in DINER]
    items = read(model, *rows).rows["line_items"]
    assert [(row["quantity"].value, row["description"].value) for row in items] == [("2", "COFFEE"), ("1", "PANCAKES")]
    rows = [row.replace("COFFEE      ", "7 UPTOWN SODA") for row in DINER]
    assert [row["description"].value for row in read(model, *rows).rows["line_items"]] == ["7 UPTOWN SODA", "PANCAKES"]


def test_lines_are_read_with_their_numbers(model: Model) -> None:
    rows = read(model, *GROCER).rows["line_items"]
    assert [row["description"].value for row in rows] == ["WHITE BREAD 400G", "FRESH MILK 1L", "BROWN SUGAR"]
    assert [row["amount"].value for row in rows] == ["2.80", "12.90", "3.12"]


def test_a_page_without_words_has_no_fields(model: Model) -> None:
    empty = replace(slip("x"), pages=())
    extraction = read_receipt(empty, SCHEMA, model)
    assert not extraction.fields
    assert extraction.confidence == 0


def test_a_model_is_learned_from_labelled_slips_and_tested_on_other_sellers() -> None:
    documents = []
    for number, name in enumerate(("LUNA", "SOLAR", "VENUS", "ORION", "COMET", "METEOR")):
        rows = changed(("HARVEST MOON", name), ("NO. 8,", f"NO. {number + 11},"), ("2018", f"201{number}"))
        labels = {"company": f"{name} GROCER SDN BHD", "total": "18.80", "date": f"14/03/201{number}"}
        documents.append(Labelled(reading=slip(*rows), labels=labels, group=name))
    found = cross_validate(documents, RECEIPT, lambda reading, model: read_receipt(reading, SCHEMA, model), folds=2)
    assert [values(extraction)["company"] for extraction in found] == [each.labels["company"] for each in documents]
    assert {values(extraction)["total"] for extraction in found} == {"18.80"}


def test_the_shipped_model_is_small_and_knows_no_seller(model: Model) -> None:
    assert model.kind == "receipt"
    assert {"company", "address", "date", "total"} == set(model.rankers)
    words = model.knowledge["spelling"]["words"]
    assert all(" " not in word for word in words)
