"""Words stand in rows, beside and above each other."""

from docmill.extraction.local.layout import Span, lay_out
from tests.unit.extraction.local.slips import slip


def test_pieces_of_one_height_are_one_row_from_left_to_right() -> None:
    layout = lay_out(slip("TOTAL                  12.50", "CASH                   20.00"))
    assert [[piece.text for piece in row] for row in layout.rows] == [["TOTAL", "12.50"], ["CASH", "20.00"]]


def test_rows_of_a_skewed_page_are_found() -> None:
    rows = [f"ITEM NUMBER {number}              {number}.50" for number in range(1, 9)]
    layout = lay_out(slip(*rows, skew=0.08))
    assert [len(row) for row in layout.rows] == [2] * 8


def test_a_span_knows_what_stands_before_it_and_where_it_is() -> None:
    layout = lay_out(slip("GRAND TOTAL      RM 12.50"))
    amount = layout.rows[0][1]
    span = Span(piece=amount, start=3, end=8)
    assert span.text == "12.50"
    assert layout.before(span) == "GRAND TOTAL RM"
    assert abs(span.box.left - 20 / 48) < 0.01
    assert abs(span.box.right - 25 / 48) < 0.01


def test_neighbours_above_and_below_share_the_width() -> None:
    layout = lay_out(slip("QTY      AMOUNT", "1          2.80", "2          5.60"))
    amount = layout.rows[1][1]
    above, below = layout.above(amount), layout.below(amount)
    assert above is not None
    assert above.text == "AMOUNT"
    assert below is not None
    assert below.text == "5.60"
    assert layout.left(amount) is layout.rows[1][0]
    assert layout.right(amount) is None
