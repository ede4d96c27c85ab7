"""The day by which to pay is found by labels and in sentences; days of other things are not taken for it."""

import pytest

from docmill.extraction.local.invoices import read_invoice
from tests.unit.extraction.typed_pages import typed_reading


def due(*lines: str) -> str | None:
    """The due date of an invoice of 3 April 2031 that ends with these lines."""
    head = """
Birkenhof Werkzeuge GmbH
Invoice no. 55012
Invoice date: 03.04.2031

Description                    Qty    Price      Amount
Steel brackets, galvanised       4    12.50       50.00
Mounting rails                   2    25.00       50.00

Subtotal                                         100.00
VAT 20%                                           20.00
Total EUR                                        120.00

"""
    found = read_invoice(typed_reading(head + "\n".join(lines))).fields.get("due_date")
    return found.value if found else None


@pytest.mark.parametrize(
    "line",
    [
        *("Die Summe wird am 17.04.2031 abgebucht.", "Wir ziehen ein: Lastschrift zum 17.04.2031"),
        *("Bitte überweisen Sie den Betrag bis längstens 17. April 2031.", "Zahlbar bis spätestens 17.04.2031"),
        *("Your Direct Debit will be taken on or around 17 April 2031.", "Please pay no later than 17 April 2031."),
        *("Kindly settle this bill by 17 April 2031 at the latest.", "Your card will be charged on 17 April 2031"),
        *("Prélèvement le 17/04/2031", "À régler au plus tard le 17 avril 2031", "Merci de régler avant le 17/04/2031"),
        *("Votre règlement est attendu pour le 17 avril 2031", "Le montant sera prélevé le 17/04/2031"),
        *("Da pagare entro il 17/04/2031", "Addebito SDD il 17/04/2031", "Scadenza: 17/04/2031"),
        *("Le pedimos que pague antes del 17/04/2031.", "Fecha de cargo: 17/04/2031"),
        *("Pagar até 17/04/2031", "Débito direto em 17/04/2031"),
        *("Wij ontvangen uw betaling graag vóór 17 april 2031.", "Uiterlijk 17 april 2031 te voldoen"),
        *("Bedrag wordt op 17-04-2031 per automatische incasso afgeschreven.",),
        *("Betalas senast 17.04.2031", "Beløbet bedes betalt senest den 17.04.2031", "Betales innen 17.04.2031"),
        *("Maksettava viimeistään 17.4.2031", "Eräpäivä 17.4.2031"),
        *("Prosimy o zapłatę do dnia 17.04.2031", "Termin płatności: 17.04.2031"),
        *("Prosíme o úhradu do 17.04.2031", "Datum splatnosti: 17. 4. 2031"),
        *("Fizetési határidő: 2031.04.17", "Rok plačila: 17.04.2031", "Dospijeće: 17.04.2031"),
        *("Vă rugăm să plătiți până la data de 17.04.2031", "Maksetähtaeg: 17.04.2031"),
        *("Apmokėti iki 2031-04-17", "Apmaksas termiņš: 17.04.2031", "Son ödeme tarihi: 17.04.2031"),
    ],
)
def test_the_day_of_payment_or_of_the_debit_is_found_in_any_language(line: str) -> None:
    assert due(line) == "2031-04-17"


def test_the_verb_may_stand_in_the_next_line_of_the_sentence() -> None:
    lines = ("Den Rechnungsbetrag werden wir vereinbarungsgemäß am 17.04.2031 von Ihrem", "Konto abbuchen.")
    assert due(*lines) == "2031-04-17"


def test_a_row_of_due_days_has_its_heading_above() -> None:
    assert due("SCADENZE               TOTALE DOCUMENTO", "17/04/2031   120,00      120,00") == "2031-04-17"


@pytest.mark.parametrize(
    "line",
    [
        *("Ihr Vertrag läuft bis 31.12.2031.", "The guarantee is valid until 31 December 2031."),
        *(
            "Your deposit received on 31 March 2031 was taken into account.",
            "Nächster Abschlag erstmals am 01.05.2031.",
        ),
        *("Prochaine facture : 01/05/2031", "Mindestlaufzeit des Vertrags bis 31.12.2032, danach monatlich kündbar."),
        *("SEPA-Mandat vom 01.02.2029", "Your next bill is due on 1 May 2031"),
    ],
)
def test_the_end_of_a_contract_or_the_day_of_another_payment_is_no_due_date(line: str) -> None:
    assert due(line) is None


def test_the_own_day_of_payment_beats_that_of_the_next_instalment() -> None:
    lines = (
        "Am 17.04.2031 ziehen wir den Betrag von Ihrem Konto ein.",
        "Der neue Abschlag ist erstmals am 01.05.2031 fällig.",
    )
    assert due(*lines) == "2031-04-17"


@pytest.mark.parametrize("label", ["Payment date", "Zahlungsdatum", "Fecha de pago"])
def test_a_date_of_payment_is_the_day_by_which_to_pay_unless_it_is_paid(label: str) -> None:
    assert due(f"{label}: 17.04.2031") == "2031-04-17"
    assert due(f"{label}: 17.04.2031", "", "Paid with Visa ending in 4410") is None


def test_the_label_of_a_day_may_end_in_the_line_beneath() -> None:
    assert due("Termin         17.04.2031", "płatności") == "2031-04-17"
