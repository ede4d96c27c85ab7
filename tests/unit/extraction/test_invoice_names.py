"""Which of the names on an invoice are the seller's and the buyer's, and how much of a text is the name."""

import pytest

from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.local.invoices.form_words import is_form
from docmill.extraction.local.invoices.running_names import names_in_text
from tests.unit.extraction.typed_pages import typed_reading

SUMS = """

Description                              Qty      Unit price      Amount
Work as agreed                             1           99.00       99.00

                                           Subtotal                99.00
                                           VAT 20%                 19.80
                                           Total                  118.80
"""


def parties(top: str, bottom: str = "") -> tuple[str | None, str | None]:
    fields = read_invoice(typed_reading(top + SUMS + bottom)).fields
    seller, buyer = (fields[name].value if name in fields else None for name in ("seller_name", "buyer_name"))
    return seller, buyer


ADDRESSED = """
Fernhill                                            Invoice no.  4711
                                                    Date         03/02/2025

Tolland Marine Limited
{beneath}
3 Harbour Road
Plymouth PL1 2AB
"""


def test_the_company_behind_a_brand_is_the_seller() -> None:
    foot = "\n\nFernhill Office Supplies Ltd. Registered in England 01234567. VAT no. GB 123 4567 89.\n"
    assert parties(ADDRESSED.format(beneath="Unit 4"), foot) == (
        "Fernhill Office Supplies Ltd",
        "Tolland Marine Limited",
    )


@pytest.mark.parametrize(
    ("foot", "seller"),
    [
        ("Fernhill is a trading name of FH Stationers Ltd, registered in England no. 01234567.", "FH Stationers Ltd"),
        ("Fernhill SAS au capital de 10 000 € - RCS Brest 123 456 789", "Fernhill SAS"),
        ("SARL Fernhill - SIRET 123 456 789 00012", "SARL Fernhill"),
        ("Fernhill Papelería, S.L.U. · CIF B12345678 · Registro Mercantil de Vigo", "Fernhill Papelería, S.L.U."),
        (
            "Fernhill Bürobedarf UG (haftungsbeschränkt) · Amtsgericht Köln HRB 1234",
            "Fernhill Bürobedarf UG (haftungsbeschränkt)",
        ),
        (
            "Fernhill di Rossi S.n.c. di Rossi Carlo & C. - P.IVA 01234567890",
            "Fernhill di Rossi S.n.c. di Rossi Carlo & C.",
        ),
    ],
)
def test_the_foot_of_the_page_says_who_the_seller_is_by_law(foot: str, seller: str) -> None:
    assert parties(ADDRESSED.format(beneath="Unit 4"), f"\n\n{foot}\n")[0] == seller


def test_whoever_trades_under_another_name_keeps_both() -> None:
    top = """
Harbour Sparks
Jane Roe t/as Harbour Sparks ABN 12 345 678 901

To: Coastline Motels Pty Ltd
12 Beach Street
Cowes VIC 3922
"""
    assert parties(top) == ("Jane Roe t/as Harbour Sparks", "Coastline Motels Pty Ltd")


@pytest.mark.parametrize(
    "beneath", ["Attn: Mary Poole", "c/o Poole Estates Ltd", "z. Hd. Frau Poole", "T.a.v. de administratie"]
)
def test_a_company_above_the_one_who_opens_its_letters_is_the_buyer(beneath: str) -> None:
    foot = "\n\nFernhill Office Supplies Ltd. Registered in England 01234567.\n"
    assert parties(ADDRESSED.format(beneath=beneath), foot)[1] == "Tolland Marine Limited"


def test_a_person_above_the_company_is_not_the_buyer() -> None:
    top = """
Quarry Lane Consulting
8 Quarry Lane
Boise, ID 83702
Phone: 208-555-0100

BILL TO
Nora Feldman
Silver Creek Lumber, Inc.
77 Mill Road
Nampa, ID 83651
"""
    assert parties(top) == ("Quarry Lane Consulting", "Silver Creek Lumber, Inc.")


BOXES = """
MERIDIAN                                             Ferretería La Esquina
Suministros Meridian, S.L.                           Calle Mayor 8
C/ Norte 3, 29004 Málaga                             29740 Nerja
Tel. 952 000 000

FACTURA Nº     FECHA         CLIENTE      ALBARÁN       FORMA DE PAGO    AGENTE
A/25 001       24-02-2025    430001       25/3306       Recibo 30 días   07 - Luis
"""


def test_the_labels_in_a_bar_of_boxes_are_no_names() -> None:
    assert parties(BOXES) == ("Suministros Meridian, S.L.", "Ferretería La Esquina")


def test_labels_beside_their_values_are_no_names() -> None:
    top = """
Caves Martel SAS
ZI du Pont, 46000 Cahors
Tél. 05 65 00 00 00

Date            06/03/2025
Compte client   411REST7                     RESTAURANT DES ARTS
Bon             BL250304-77                  11 place Neuve
Représentant    G. Duval                     46100 FIGEAC
"""
    assert parties(top) == ("Caves Martel SAS", "RESTAURANT DES ARTS")


@pytest.mark.parametrize("text", ["our ref", "forma de pago", "bl n°", "er referens", "cod. cliente", "mastercard"])
def test_words_of_labels_are_known(text: str) -> None:
    assert is_form(text)


@pytest.mark.parametrize("text", ["le fournisseur", "order of malta hospital", "4711", "meridian"])
def test_a_name_has_other_words_than_labels(text: str) -> None:
    assert not is_form(text)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("● Alder & Finch GmbH", "Alder & Finch GmbH"),
        ("M/s. ALDER MEDICALS", "ALDER MEDICALS"),
        ("D. JUAN ALDER PEÑA", "JUAN ALDER PEÑA"),
        ("Alder Verlag UG (haftungsbeschränkt)", "Alder Verlag UG (haftungsbeschränkt)"),
        ("Alder Pest Control Sdn. Bhd. (202301012345 / 1234567-K)", "Alder Pest Control Sdn. Bhd."),
        ("Alder Systems GmbH USt-IdNr. DE123456789", "Alder Systems GmbH"),
    ],
)
def test_what_stands_around_a_name_is_no_part_of_it(printed: str, name: str) -> None:
    top = f"""
Fernhill Office Supplies Ltd
2 Mill Lane, Exeter EX1 1AA
Tel. 01392 000000

Bill to:
{printed}
3 Harbour Road
Plymouth PL1 2AB
"""
    assert parties(top)[1] == name


def test_a_name_that_wraps_is_read_as_where_it_does_not() -> None:
    top = """
Grünhof Gartenbau AG, Seestrasse 4, 8810 Horgen

Eigentümergemeinschaft Sonnenberg
c/o Domus Verwaltungen AG
Alte Landstrasse 7
8802 Kilchberg
"""
    slip = """

Zahlbar durch
Eigentümergemeinschaft
Sonnenberg
Alte Landstrasse 7
8802 Kilchberg
"""
    assert parties(top, slip) == ("Grünhof Gartenbau AG", "Eigentümergemeinschaft Sonnenberg")


def test_a_name_goes_on_in_a_line_that_begins_with_a_small_word() -> None:
    top = """
Papeterie Morel SARL
4 rue Haute, 44000 Nantes
Tél. 02 40 00 00 00

                                                COMMUNAUTÉ DE COMMUNES
                                                DU VAL DE SARTHE
                                                1 avenue de la Gare
                                                72210 LA SUZE
"""
    assert parties(top)[1] == "COMMUNAUTÉ DE COMMUNES DU VAL DE SARTHE"


def test_on_the_slip_at_the_foot_the_payment_is_addressed_to_the_seller() -> None:
    top = """
TAX INVOICE                      Invoice Date                Birch Lane Media Ltd
                                 30 Sep 2025                 Unit 5, The Maltings
Orkney Weavers Limited                                       EDINBURGH EH6 7EB
Attention: Isla Reid             Invoice Number
14 Victoria Street               INV-3127
STROMNESS
KW16 3AA
"""
    slip = (
        "\n" * 22
        + """
PAYMENT ADVICE                                     Customer         Orkney Weavers Limited
To: Birch Lane Media Ltd                           Invoice Number   INV-3127
Unit 5, The Maltings
EDINBURGH EH6 7EB
"""
    )
    assert parties(top, slip) == ("Birch Lane Media Ltd", "Orkney Weavers Limited")


def test_companies_are_found_in_running_text_by_their_legal_forms() -> None:
    text = "Fernhill is a trading name of FH Stationers Ltd, registered in England. Bank: Ag. Roma, Mo-Fr 8 Uhr, Sa zu"
    assert [text[start:end] for start, end, _ in names_in_text(text)] == ["FH Stationers Ltd"]
    text = "Lieferung durch Müller & Söhne GmbH & Co. KG seit 1990"
    assert [text[start:end] for start, end, _ in names_in_text(text)] == ["Müller & Söhne GmbH & Co. KG"]


def test_a_company_that_a_sentence_speaks_of_is_no_party() -> None:
    top = """
Dr. Eva Lindner
Schillerplatz 9
55116 Mainz

Herrn
Thomas Kern
Rheinallee 71
55118 Mainz

In der Angelegenheit Kern gegen Wohnbau Nord GmbH berechne ich
"""
    assert parties(top) == ("Dr. Eva Lindner", "Herrn Thomas Kern")


@pytest.mark.parametrize(
    ("foot", "seller"),
    [
        ("Fernhill Outfitters, 2201 N Lincoln Ave, Traverse City, MI 49684", "Fernhill Outfitters"),
        (
            "Agentur Fernhill – Inh. Tarek Brandt · Weserstraße 190 · 12045 Berlin",
            "Agentur Fernhill – Inh. Tarek Brandt",
        ),
        ("Afsender\nFernhill ApS\nKajgade 11\n8500 Grenaa", "Fernhill ApS"),
    ],
)
def test_a_brand_is_a_part_of_the_name_that_stands_with_the_address(foot: str, seller: str) -> None:
    assert parties(ADDRESSED.format(beneath="Unit 4"), f"\n\n{foot}\n") == (seller, "Tolland Marine Limited")


def test_a_legal_name_may_wrap_behind_the_first_word_of_the_brand() -> None:
    top = ADDRESSED.replace("Fernhill", "FERNHILL NETT")
    foot = "\n\nFernhill\nNett AS | Strandgata 14, 6002 Ålesund | Org.nr 988 112 209 MVA\n"
    assert parties(top.format(beneath="Unit 4"), foot) == ("Fernhill Nett AS", "Tolland Marine Limited")


@pytest.mark.parametrize("seller", ["Marigold Catering", "Gasthof zum Anker", "ATLAS BEARING & SUPPLY"])
def test_a_name_that_ends_like_a_street_is_none_without_a_number(seller: str) -> None:
    top = f"""
{seller}
Mill Road 2
88709 Meersburg

Invoice to:                    Invoice no.  4711
Tolland Marine Limited         Date         03/02/2025
3 Harbour Road
Plymouth PL1 2AB
"""
    assert parties(top) == (seller, "Tolland Marine Limited")


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("Bill to: Gem State Bank", "Gem State Bank"),
        ("Buyer: Fabrika Fashions, Mumbai", "Fabrika Fashions"),
        ("Buyer: Berg, Anna", "Berg, Anna"),
        ("Account\nPatrick Maloney\nBallyclough", "Patrick Maloney"),
        ("Customer\nConsultores Ibarra\nCalle Mayor 2", "Consultores Ibarra"),
    ],
)
def test_a_label_says_that_a_bank_or_the_holder_of_an_account_is_the_buyer(printed: str, name: str) -> None:
    top = f"""
Fernhill Limited               Invoice no.  4711
2 Mill Road                    Date         03/02/2025
Leeds LS1 4AB

{printed}
"""
    assert parties(top) == ("Fernhill Limited", name)


def test_a_legal_form_is_known_as_it_is_misread() -> None:
    top = ADDRESSED.replace("Tolland Marine Limited", "Oleificio Santoro S.r.I.")
    assert parties(top.format(beneath="Via Roma 4"))[1] == "Oleificio Santoro S.r.l."


def test_a_family_is_named_without_the_word_for_it_in_the_line_above() -> None:
    top = ADDRESSED.replace("Tolland Marine Limited\n{beneath}", "Familie\nJutta und Rolf Zeller")
    assert parties(top, "\n\nFernhill Limited, registered in England 01234567\n")[1] == "Jutta und Rolf Zeller"


def test_the_legal_form_in_a_line_of_its_own_is_nobody() -> None:
    top = """
Shannon Agri Stores      Account                Deliver to
Ltd                      Patrick Maloney        Patrick Maloney
Dock Road                Ballyclough            Ballyclough
Limerick V94 XT21

Document no.     Document date
D-118820         02/05/2024
"""
    assert parties(top) == ("Shannon Agri Stores Ltd", "Patrick Maloney")


def test_a_paper_in_greek_has_a_title_a_buyer_and_a_company() -> None:
    top = """
ΜΕΤΑΛΛΟΜΗΧΑΝΙΚΗ Α.Ε.                              ΤΙΜΟΛΟΓΙΟ
Πατησίων 10, Αθήνα

Πελάτης
ΔΗΜΟΣ ΚΑΛΑΜΑΤΑΣ
Καλαμάτα
"""
    assert parties(top) == ("ΜΕΤΑΛΛΟΜΗΧΑΝΙΚΗ Α.Ε.", "ΔΗΜΟΣ ΚΑΛΑΜΑΤΑΣ")
