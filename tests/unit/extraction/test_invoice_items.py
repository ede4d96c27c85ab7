"""Line items of layouts that say little: headings that run together or are missing, rows that only look like items."""

from dataclasses import replace

from docmill.documents.reading import Box, Line, Page, Reading, Word
from docmill.extraction.extracting import extract
from tests.unit.extraction.typed_pages import typed_reading

_HEAD = """
Nordlicht Handel GmbH
Hafenstrasse 4
20457 Hamburg

Bill to
Kite and Sons Ltd
12 Harbour Lane
Whitby YO21 3PU

Invoice no.  4711
Date         04.03.2026

"""


def _rows(reading: Reading) -> list[dict[str, str]]:
    rows = extract(reading, "invoice").rows.get("line_items", ())
    return [{name: cell.value for name, cell in row.items() if cell.value} for row in rows]


def _amounts(page: str) -> list[str]:
    return [row["amount"] for row in _rows(typed_reading(_HEAD + page))]


def _run_together(page: Page, *texts: str) -> Page:
    """The page, with the words of these headings in one line of text, nearer than columns are."""
    lines = list(page.lines)
    first, second, *_ = (line for line in lines if " ".join(word.text for word in line.words) in texts)
    moved = first.words[-1].box.right + 0.009
    width = second.words[0].box.right - second.words[0].box.left
    box = second.words[0].box
    word = Word(text=second.words[0].text, box=Box(moved, box.top, moved + width, box.bottom))
    lines[lines.index(first)] = Line(words=(*first.words, word))
    lines.remove(second)
    return replace(page, lines=tuple(lines))


def test_headings_that_run_together_are_told_apart_by_what_stands_beneath() -> None:
    reading = typed_reading(
        _HEAD
        + """
Description                 Qty     Price     Goods  VAT
Rope, 50 m                    2     50.00    100.00   S
Books on knots               10     30.00    300.00   Z

                            Total net        400.00
                            VAT               20.00
                            Total            420.00
""".replace("Goods", "Net £")
    )
    page = _run_together(reading.pages[0], "Net £", "VAT")

    rows = _rows(replace(reading, pages=(page,)))

    assert [(row["quantity"], row["unit_price"], row["amount"]) for row in rows] == [
        ("2", "50.00", "100.00"),
        ("10", "30.00", "300.00"),
    ]


def test_without_a_heading_items_are_the_amounts_above_their_sum_whatever_stands_beside_them() -> None:
    page = """
Fibre, 1 to 30 June                     39.00 €       Your next bill
Hotline in four hours                   15.00 €       comes in July
Calls                                    4.50 €       70.20 €
Loyalty                                 -5.00 €       to be collected
Total without VAT                       53.50 €
VAT 20 %                                10.70 €
Total                                   64.20 €
"""

    assert _amounts(page) == ["39.00", "15.00", "4.50", "-5.00"]


def test_what_is_kept_back_of_a_valuation_is_no_item() -> None:
    page = """
Works                                           £
Foundations, labour                       6000.00
Hire of a digger                          1000.00
Gravel                                     900.00
Pipes                                      100.00
Gross valuation                           8000.00
Less 5 % retention                        -400.00
Net excluding VAT                         7600.00
VAT at 20 %                               1520.00
Invoice total                             9120.00
"""

    assert _amounts(page) == ["6000.00", "1000.00", "900.00", "100.00"]


def test_a_tax_among_the_charges_of_a_stay_is_no_item_where_the_net_charges_are_summed() -> None:
    page = """
Date       Description        Reference           Charges    Credits
03/01/26   Room               Room 12              100.00
03/01/26   Occupancy tax      7 % on room            7.00
03/02/26   Room               Room 12              100.00
03/02/26   Occupancy tax      7 % on room            7.00
03/02/26   Garage             One night             20.00
03/03/26   Card               XXXX 3009                       234.00
           Total                                   234.00     234.00
           Net charges                             220.00
           Total taxes                              14.00
"""

    assert _amounts(page) == ["100.00", "100.00", "20.00"]


def test_the_box_that_says_what_is_due_is_no_table_of_items() -> None:
    page = """
Account number     Bill date      Due date       Total amount due
70021884           03/08/2026     03/29/2026     92.00

Basic charge                                     12.00
Energy, 500 kWh at 0.16                          80.00
Total amount due                                 92.00
"""

    assert _amounts(page) == ["12.00", "80.00"]


def test_sums_side_by_side_end_the_items_though_some_of_them_are_not_known() -> None:
    page = """
Code   Description                 Qty      Price     Amount
R12    Rope, 50 m                    2      50.00     100.00
B77    Books on knots               10      30.00     300.00

Gross goods   % Disc.   Discounted   Net total   % VAT   Amount of VAT   Total VAT
400.00        2.00      8.00         392.00      20.00   78.40           78.40

                                     Invoice total    470.40
"""

    assert _amounts(page) == ["100.00", "300.00"]


def test_one_of_something_is_an_item_though_it_is_called_a_tax() -> None:
    page = """
Description                          Qty      Price     Amount
Photographs of an event                1     380.00     380.00
Stamp tax                              1       2.00       2.00
Total to pay                                            382.00
"""

    assert _amounts(page) == ["380.00", "2.00"]


def test_the_discount_beneath_the_sum_of_the_goods_is_no_item() -> None:
    page = """
Item     Description               Qty     Price     Amount
R12      Rope, 50 m                  2     50.00     100.00
B77      Books on knots             10     30.00     300.00
H10      Hooks                       5      2.00      10.00
H20      Large hooks                 5      4.00      20.00
Checks that bounce cost 35.00.      Merchandise      430.00
Claims upon delivery.         Less 2 % discount       -8.60
                                    Net invoice      421.40
"""

    assert _amounts(page) == ["100.00", "300.00", "10.00", "20.00"]


def test_of_a_carrier_delivery_and_surcharges_are_items_and_a_discount_in_brackets_is_taken_off() -> None:
    page = """
Pieces   Description                 Weight      Rate     Charges
3        Adhesives                    2,400     25.00      600.00
         Fuel surcharge                                     60.00
         Delivery with a liftgate                           40.00
         Discount of the tariff                           (200.00)
3        Total                        2,400       USD      500.00
"""

    assert _amounts(page) == ["600.00", "60.00", "40.00", "-200.00"]
    assert extract(typed_reading(_HEAD + page), "invoice").fields["total"].value == "500.00"


def test_a_number_in_a_box_beside_items_without_a_heading_is_still_the_invoices() -> None:
    page = """
Nordlicht Handel GmbH              Kite and Sons Ltd
Hafenstrasse 4, 20457 Hamburg      12 Harbour Lane, Whitby YO21 3PU

Issued              Charges of this invoice
04.03.2026          Usage of 200 units                400.00
Invoice number
NH1130558217        Service                            50.00
Your contact        Waste                              30.00
                    Charges before VAT                480.00
                    VAT 20 %                           96.00
                    Total                             576.00
"""
    found = extract(typed_reading(page), "invoice")

    assert len(found.rows["line_items"]) == 3
    assert found.fields["invoice_number"].value == "NH1130558217"


def _of_each(table: str) -> list[str]:
    page = f"""
Zakład Stolarski Jan Mroczek                       Faktura VAT nr FV 118/09/2031
34-500 Zakopane                                    Data wystawienia 05-09-2031

{table}
"""
    rows = extract(typed_reading(page), "invoice").rows["line_items"]
    return [row["amount"].value for row in rows]


def test_the_amount_of_an_item_is_the_one_without_tax_where_both_are_printed() -> None:
    table = """
Nazwa towaru            Ilość   Cena netto   Wartość netto   VAT %   Kwota VAT   Wartość brutto
Łóżko sosnowe               6       890,00        5 340,00     23%    1 228,20         6 568,20
Szafka nocna               12       210,00        2 520,00     23%      579,60         3 099,60
                                    RAZEM         7 860,00            1 807,80         9 667,80
"""
    assert _of_each(table) == ["5340.00", "2520.00"]
    assert _of_each(table.replace("Kwota VAT", "      VAT")) == ["5340.00", "2520.00"]


def test_a_rate_close_behind_an_amount_is_no_amount() -> None:
    table = """
Articolo                 Qtà    Prezzo unit.    Totale Imposta%
Viti TSP 4x40              6           12,40      74,40 22
Tasselli nylon            10            6,15      61,50 22

                                  Imponibile            135,90
                                  IVA 22%                29,90
                                  Totale                165,80
"""
    assert _of_each(table) == ["74.40", "61.50"]
