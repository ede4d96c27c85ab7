"""Pages that are made to keep their reader busy: each of these took minutes, or longer than anybody waits."""

import pytest

from docmill.documents.pdf_relationships import relationships
from docmill.extraction.einvoice.found import net, summed, worth
from docmill.extraction.extracting import extract
from tests.unit.extraction.typed_pages import typed_reading


def test_columns_of_words_are_asked_once_whether_they_are_a_heading() -> None:
    words = "\n".join("terms of sale          goods and risk          law and place" for _ in range(150))
    assert not extract(typed_reading(words), "invoice").rows.get("line_items")


def test_words_that_come_in_pairs_are_looked_for_one_by_one() -> None:
    page = "Total $ 100.00\n" + "\n".join("GST " * 12 for _ in range(150))
    assert extract(typed_reading(page), "invoice").fields["currency"].value == "USD"


@pytest.mark.parametrize("text", ["1e9999999", "-1e9999999", "1e-9999999", "NaN", "inf", "ten"])
def test_what_has_no_end_of_digits_is_no_amount(text: str) -> None:
    assert worth(text) is None
    assert net(text, None, None) is None
    assert summed([text]) is None


def test_so_many_relationships_of_attachments_are_looked_at_and_no_more() -> None:
    data = b"".join(b"<< /F (%d.xml) /AFRelationship /Data >>" % number for number in range(300))
    found = relationships(data, 1000)
    assert found["199.xml"] == "Data"
    assert "200.xml" not in found
