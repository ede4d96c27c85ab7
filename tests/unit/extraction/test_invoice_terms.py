"""Terms of payment and the number of an order are what labels and sentences say, not what only looks like them."""

import pytest

from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.result import Extraction
from tests.unit.extraction.typed_pages import typed_reading


def value(extraction: Extraction, name: str) -> str | None:
    return extraction.fields[name].value if name in extraction.fields else None


def _read_with(line: str, foot: str) -> Extraction:
    page = f"""
Fernhill Limited               Invoice no.  4711
PO Box 123                     Date         03/02/2025
Leeds LS1 4AB                  {line}

Bill to
Tolland Marine Limited
P.O. Box 771
Plymouth PL1 2AB

Description                              Qty      Unit price      Amount
Work as agreed                             1           99.00       99.00

                                           Total                   99.00

{foot}
"""
    return read_invoice(typed_reading(page))


def test_a_box_at_the_post_office_is_no_order() -> None:
    assert value(_read_with("", ""), "order_number") is None
    assert value(_read_with("PO           7788-B", ""), "order_number") == "7788-B"


@pytest.mark.parametrize(
    ("foot", "terms"),
    [
        ("Please pay within 30 days of receipt.", "Please pay within 30 days of receipt."),
        ("Zahlbar bis:             11.11.2025", None),
        ("Einwendungen müssen innerhalb von 8 Wochen erhoben werden.", None),
        ("Terms of Delivery        Due on", None),
    ],
)
def test_terms_say_how_to_pay(foot: str, terms: str | None) -> None:
    assert value(_read_with("", foot), "payment_terms") == terms
