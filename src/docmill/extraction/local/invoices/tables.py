"""Tables of an invoice: where their headings stand, which column is which, and where the rows end."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import combinations

from docmill.extraction.local.invoices.headings import parted
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.vocabulary import AMOUNT_LABELS
from docmill.extraction.phrases import Phrases

_TAX = (
    r"(?:mwst|mehrwertsteuer|ust|u\.st|umsatzsteuer|steuer|vat|tva|btw|iva|moms|mva|gst|cgst|sgst|igst|tax|taxe|alv|"
    r"dph|pdv|ddv|pvm|pvn|kdv|afa|φπα|ддс)"
)
HEADINGS: Sequence[tuple[str, Phrases]] = tuple(
    (kind, Phrases(pattern))
    for kind, pattern in (
        ("position", r"^\W*(?:#|pos\.?|position|nr\.?|no\.?|line(?: no\.?)?|ligne|lfd\W.*|s\W?\s?no\.?|sl\W?\s?no\.?|"
         r"sr\W?\s?no\.?|lp\.?|item no\.?|regel|riga|rad|n[°.]|nro|linea)\W*$"),
        ("tax_amount", rf"{_TAX}\W{{0,3}}(?:betrag|amount|amt|bedrag|belopp)|(?:montant|betrag|"
         rf"amount of)\W{{0,3}}{_TAX}|steuerbetrag"),
        ("unit_price", r"^\W*(?:cena(?! celkem)|precio|prezzo|prix|prijs|preis|pris|price|rate)\b.{0,12}\b"
         r"(?:netto|net|neto|nett|ht|ex|exc|excl|exkl|ekskl|ohne|hors|bez|sin|fara|m\. ?j|jedn|"
         r"ks\b|stk)|netto(?:preis|pris|prijs)"),
        ("amount", r"total ht|total net|prijs incl|line total|net amount|nettobetrag|gesamtpreis|amount|montant|"
         r"gesamt\w*|entgelt|\btotal\w*|totaal|(?<!ust.-)(?<!steuer)\bbetrag|summe|bedrag|importo|importe|belopp|"
         r"\bsum\b|positions ?betrag|\bgp\b|subtotal|wartosc|netto(?!preis)|extended|charges?$|line value|beitrag|"
         r"ext\w*\.? price|\bvalor(?! unit)|\bvalue\b|\bbelo[bp]\b|\bi alt\b|yhteensa|\bkwota|celkem|^\W*net\W*$|"
         r"osszesen|\bertek\b|valoare|\biznos\b|ukupno|\bznesek|skupaj|\btutar|\bspolu\b|\bkokku\b|\bkopa\b|"
         r"\bαξια|συνολο|стоиност|\bсума\b|^\W*[€$£₹]\W*$|"
         rf"\b(?:bez|ohne|hors|sans|fara|brez|uden|uten|utan|excl?\.?|exkl\.?)\W{{0,2}}{_TAX}"),
        ("unit_price", r"unit price|unit cost|einzelpreis|preis|prix|p\.?\s?u\.?\b|\brate\b|price|prijs|prezzo|"
         r"precio|pris\b|\be\.?p\.?\b|stuckpreis|\bcost\b|cena|a-pris|tarif|pris\b(?<=\wpris)|hinta\b|"
         r"preco|\bp\. ?unit|ansatz|egysegar|\bpret\b|cijena|birim fiyat|\bhind\b|\bkaina|\btimi\b|τιμη|\bцена"),
        ("quantity", r"qty|quantity|menge|anzahl|aantal|\bqte\b|quantite|nombre|cantidad|quantita|\bqta\b|antal|"
         r"hours|stunden|\bhrs\b|\bstd\b|ilosc|maara|units\b|stuckzahl|\bkwh\b|usage$|\bqtd|\bquant\.|"
         r"\bcant\.|\buds\b|antall|\bant\b|\bkpl\b|mnozstvi|\banz\.|\bstk\b|\buren\b|"
         r"\bq\.? ?ta\b|\bq\.te\b|\bpieces\b|\bpcs\b|\bcolli\b|\bnights\b|\bpocet\b|mnozstvo|mennyiseg|cantitate|"
         r"kolicina|\bmiktar|\bkogus\b|\bkiekis|daudzums|ποσοτητα|количество"),
        ("unit", r"^\W*(?:einheit|unit|units?|unite|me|uom|eenheid|um|einh\.?|jedn?\.?|j\.?m\.?)\b"),
        ("tax_rate", rf"\b{_TAX}\b|steuersatz|tax rate|taux|^\W*%\W*$"),
        ("discount", r"rabatt|discount|remise|korting|sconto|descuento|disc\b|nachlass"),
        ("article", r"art\W{0,2}-?\s?(?:nr|no|n°)|artikel-?nr|\bsku\b|\bcode\b|\bref|hsn|sac\b|product id|^\W*id\W*$|"
         r"item code|artnr|material\b|varenr|varenummer|tuotenro|codigo|part no|stock code"),
        ("description", r"descri|beschreibung|bezeichnung|designation|artikel|produkt|produit|product|\bitem|"
         r"leistung|concepto|omschrijving|beskrivning|benamning|service|detail|text\b|charge name|particulars|"
         r"libelle|objet|tatigkeit|\bopis|nazwa|article|subscription|name\b|ware\b|tuote|vara\b|dienst|position\b|artigo|articulo|designacao|"
         r"beskrivelse|tekst\b|kuvaus|nimike|popis|activity|\bgoods\b|\btask\b|\bjob\b|tjanst|ydelse|prestazione|prestation|"
         r"megnevezes|denumire|\bnaziv|\bnazev|\bnazov|oznaceni|aciklama|kirjeldus|nimetus|pavadinimas|nosaukums|"
         r"περιγραφη|наименование|описание|^\W*works?\W*$|travaux|trabajos|denominacion|\boggetto\b"),
        ("date", r"\bdate|\bdat[ao]\b|datum|fecha|paiva|period|zeitraum|interval"),
    )
)  # fmt: skip


MOST_NUMBERS = 12
"""Of a row that are multiplied with each other."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its heading."""

    kind: str
    left: float
    right: float


@dataclass(frozen=True, kw_only=True)
class Table:
    """A heading and the rows beneath it."""

    columns: tuple[Column, ...]
    heading: range
    """Numbers of the rows of the heading."""
    first: int
    """Number of the first row under the heading."""
    last: int
    """Number of the row after the last."""

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(column.kind for column in self.columns)

    def column_of(self, left: float, right: float, among: Sequence[str] = ()) -> Column | None:
        """The column that something stands in: that which it overlaps most, else the nearest."""
        best, most = None, -1.0
        for column in self.columns:
            if among and column.kind not in among:
                continue
            end, begin = column.right, column.left
            shared = (end if end < right else right) - (begin if begin > left else left)
            if best is None or shared > most:
                best, most = column, shared
        return best if most > -0.06 else None


def heading_kind(cell: Cell) -> str | None:
    """Which column a cell could be the heading of."""
    return _named(cell.plain) if len(cell.tokens) <= 6 else None


@lru_cache(maxsize=4096)
def _named(text: str) -> str | None:
    """Which column a text names."""
    if len(text) > 45:
        return None
    return next((kind for kind, phrases in HEADINGS if phrases.within(text)), None)


def tables_in(paper: Paper) -> list[Table]:
    """Every table with a heading, from top to bottom."""
    rows = paper.sheet.rows
    found: list[Table] = []
    number = 0
    while number < len(rows):
        heading = _heading(paper, number, foreign=not found)
        if heading is None:
            number += 1
            continue
        bottom, columns = heading
        last = _end(paper, bottom + 1, columns)
        found.append(Table(columns=columns, heading=range(number, bottom + 1), first=bottom + 1, last=last))
        number = max(bottom + 1, last)
    return found


def _heading(paper: Paper, number: int, *, foreign: bool = False) -> tuple[int, tuple[Column, ...]] | None:
    """The heading that has its main row here: its last row, and its columns.

    One in words that nobody knows (`foreign`) shows by the row beneath it, in which two numbers make a third.
    """
    row: Sequence[Cell] = paper.sheet.rows[number]
    if len(row) < 2 or any(number.money for cell in row for number in paper.numbers_of.get(id(cell), ())):
        return None
    row, named, known = _parted(paper, row)
    usual = known and _usual(named, len(row))
    if not usual and not _over_amounts(paper, number, products=not named & {"description", "quantity"} or not known):
        return None
    if (not usual and not known and not foreign) or _sums_side_by_side(paper, row):
        return None
    groups = [[cell] for cell in row]
    bottom = number
    for step in (-1, 1):
        at = number + step
        while 0 <= at < len(paper.sheet.rows) and abs(at - number) <= 3:
            other = paper.sheet.rows[at]
            edge = paper.sheet.rows[at - step]
            gap = abs(other[0].middle - edge[0].middle)
            if other[0].page != row[0].page or gap > 1.9 * paper.sheet.height:
                break
            if any(paper.numbers_of.get(id(cell)) for cell in other) or not all(
                heading_kind(cell) or len(cell.text) <= 14 for cell in other
            ):
                break
            if not any(heading_kind(cell) for cell in other):
                break
            for cell in other:
                home = next((group for group in groups if any(cell.overlaps(part) for part in group)), None)
                if home is None:
                    groups.append([cell])
                else:
                    home.append(cell)
            bottom = max(bottom, at)
            at += step
    columns = tuple(sorted(_columns(groups), key=lambda column: column.left))
    if columns[-1].kind == "other" and "amount" not in {column.kind for column in columns}:
        columns = (*columns[:-1], replace(columns[-1], kind="amount"))
    if columns[0].kind == "other" and columns[0].right - columns[0].left < 0.06:
        columns = (replace(columns[0], kind="position"), *columns[1:])
    return bottom, columns


def _parted(paper: Paper, row: Sequence[Cell]) -> tuple[Sequence[Cell], set[str], bool]:
    """A row as headings part it, the kinds of columns that it names, and whether it names enough of them."""
    if any(map(heading_kind, row)):
        row = parted(paper, row, heading_kind)
    kinds = [heading_kind(cell) or _kind_above(paper, cell) for cell in row]
    return row, {kind for kind in kinds if kind}, sum(kind is not None for kind in kinds) >= max(2, 0.5 * len(row))


def _usual(named: set[str], width: int) -> bool:
    """Whether kinds of columns are those of a heading, whatever stands beneath it."""
    value = named & {"amount", "unit_price", "tax_amount"}
    what = named & {"description", "quantity", "article", "tax_rate", "position", "unit_price"}
    return bool(value) and len(named) > 1 and (bool(what - value) or width > 3)


def _kind_above(paper: Paper, cell: Cell) -> str | None:
    """Which column the line above names, of a heading that says no more of it than a currency."""
    if not cell.row or not _CURRENCY.match(cell.plain):
        return None
    above = paper.sheet.rows[cell.row - 1]
    near = above[0].page == cell.page and cell.middle - above[0].middle < 1.9 * paper.sheet.height
    return next((heading_kind(other) for other in above if near and other.overlaps(cell)), None)


_CURRENCY = re.compile(r"^\W*(?:in )?(?:[€$£₹]|[a-z]{3}|rs|kr|zl|kc|ft|lei)\W*$")


def _over_amounts(paper: Paper, number: int, *, products: bool) -> bool:
    """Whether amounts stand beneath the last cell of a row, with other numbers beside them: it heads them.

    With `products`, an amount must be the product of two numbers beside it.
    """
    row = paper.sheet.rows[number]
    if len(row) < 3 or any(char.isdigit() for cell in row for char in cell.text):
        return False
    for at in range(number + 1, min(number + 6, len(paper.sheet.rows))):
        below = paper.sheet.rows[at]
        numbers = [each for cell in below for each in paper.numbers_of.get(id(cell), ())]
        if len(numbers) > 1 and numbers[-1].money:
            values = [each.value for each in numbers if not each.percent]
            return row[-1].overlaps(numbers[-1].cell) and (not products or _multiplies(values, one=True))
        # By its own words alone: to ask what stands beneath it in turn would be asked of every row again and again.
        if products and len(below) > 1:
            heading, named, known = _parted(paper, below)
            if known and _usual(named, len(heading)):
                return False
    return False


def _columns(groups: Sequence[Sequence[Cell]]) -> Iterator[Column]:
    for group in groups:
        ordered = sorted(group, key=lambda cell: cell.row)
        text = " ".join(cell.plain for cell in ordered)
        kind = next((kind for kind, phrases in HEADINGS if phrases.within(text)), "other")
        yield Column(kind, min(cell.left for cell in group), max(cell.right for cell in group))


def _end(paper: Paper, start: int, columns: Sequence[Column]) -> int:
    """The first row that is no longer part of the table: a total, another heading, or far below."""
    table = Table(columns=tuple(columns), heading=range(start, start), first=start, last=start)
    rows = paper.sheet.rows
    empty = 0
    for number in range(start, len(rows)):
        row = rows[number]
        if closes(paper, row, table) and not (number == start and _carried(row)) and not _goes_on(paper, number, table):
            return number
        if number > start and _heading(paper, number) is not None:
            return number
        if any(item.money for cell in row for item in paper.numbers_of.get(id(cell), ())):
            empty = 0
        else:
            empty += 1
            if empty > 40:
                return number - 40
    return len(rows)


def closes(paper: Paper, row: Sequence[Cell], table: Table) -> bool:
    """Whether a row speaks of sums rather than of things."""
    numbers = [number for cell in row for number in paper.numbers_of.get(id(cell), ())]
    words = [cell for cell in row if not paper.is_value(cell)]
    if not words:
        return False
    if _sums_side_by_side(paper, row):
        return True
    if any(len(cell.tokens) == 1 and AMOUNT_LABELS(cell.plain).get("total", 0.0) >= 0.8 for cell in words) and numbers:
        return True
    if (leads(paper, row, table) and len(numbers) >= 2) or (numbers and all(number.percent for number in numbers)):
        return False
    values = [number.value for number in numbers if not number.percent]
    if _multiplies(values) or _counted(numbers, table):
        return False
    for cell in words:
        own = next(iter(paper.numbers_of.get(id(cell), ())), None)
        if own is not None and not any(number.money for number in paper.numbers_of[id(cell)]):
            # `+ 7 % MwSt.` beside its amount: the rate is part of the label.
            own = None
        label = cell.plain if own is None or own.start == 0 else cell.plain[: own.start]
        sure = _summing(label)
        if AMOUNT_LABELS(label).get("carried", 0.0) == sure and len(row) > 3 and _multiplies(values, one=True):
            # `Transport` is carried over in one language, and a service in another.
            return False
        if sure >= 0.7 and len(label) < 60 and (numbers or len(row) <= 3):
            return sum(number.money or number.decimals == 0 for number in numbers) <= 3 and bool(
                numbers or (sure >= 0.95 and len(label) < 30)
            )
    return False


def _counted(numbers: Sequence[Number], table: Table) -> bool:
    """Whether a row has one of something: a 1 among the quantities, a price, and the same as its amount."""
    if not {"quantity", "unit_price", "amount"} <= table.kinds or len(numbers) < 3:
        return False
    columns = [table.column_of(number.left, number.right) for number in numbers]
    values = {column.kind: number.value for column, number in zip(columns, numbers, strict=True) if column}
    return values.get("quantity") == 1 and values.get("unit_price") == values.get("amount", 0) != 0


def _sums_side_by_side(paper: Paper, row: Sequence[Cell]) -> bool:
    """Whether a row holds the labels of sums that stand beneath it: most of them are known."""
    below = paper.sheet.rows[row[0].row + 1] if row[0].row + 1 < len(paper.sheet.rows) else ()
    if not 1 < len(row) <= len(below) + 1 or not all(map(paper.is_money, below)) or any(map(paper.is_money, row)):
        return False
    sums = [cell.plain for cell in row if _summing(cell.plain) >= 0.7]
    return (len(sums) > 0.5 * len(row) or (len(sums) > 2 and len({_foremost(label) for label in sums}) > 1)) and not {
        heading_kind(cell) for cell in row
    } & {"description", "quantity", "unit_price", "position"}


def _foremost(label: str) -> str:
    """What a label means above all."""
    meaning = AMOUNT_LABELS(label)
    return max(meaning, key=lambda name: meaning[name])


def _carried(row: Sequence[Cell]) -> bool:
    """Whether a row repeats the sum of the page before."""
    return any(AMOUNT_LABELS(cell.plain).get("carried", 0.0) >= 0.7 for cell in row)


def _summing(label: str) -> float:
    """How surely a label speaks of a sum."""
    meaning = AMOUNT_LABELS(label)
    sure = max([meaning.get(kind, 0.0) for kind in ("subtotal", "total", "tax", "due", "carried")])
    return sure if sure > meaning.get("quantity", 0.0) else 0.0


def _multiplies(values: Sequence[Decimal], *, one: bool = False) -> bool:
    """Whether the last of three numbers or more is the product of two of the others, as in a row of an item.

    With `one`, also of itself and 1.
    """
    *others, last = values[-MOST_NUMBERS:] or [Decimal(0)]
    return bool(last) and any(
        abs(abs(first * second) - abs(last)) < Decimal("0.02") and (one or 1 not in (abs(first), abs(second)))
        for first, second in combinations(others, 2)
    )


def _goes_on(paper: Paper, number: int, table: Table) -> bool:
    """Whether a further item follows: then what looked like a sum belongs to an item, or sums up a part."""
    carried = _carried(paper.sheet.rows[number])
    for step, row in enumerate(paper.sheet.rows[number + 1 : number + 13]):
        numbers = [each for cell in row for each in paper.numbers_of.get(id(cell), ())]
        if step < 6 and len(numbers) >= 3 and leads(paper, row, table):
            return True
        if carried and any(each.money for each in numbers) and not _carried(row):
            return not closes(paper, row, table)
        if len(row) > 3 and _multiplies([each.value for each in numbers if not each.percent], one=True):
            return True
    return False


def leads(paper: Paper, row: Sequence[Cell], table: Table) -> str | None:
    """What stands in the position column of a row, if it is a position."""
    column = next((column for column in table.columns if column.kind == "position"), None)
    if column is None:
        return None
    for cell in row:
        token = cell.tokens[0]
        if token.left <= column.right + 0.01 and token.left >= column.left - 0.04 and _POSITION.match(token.text):
            return token.text
    return None


_POSITION = re.compile(r"^\d{1,4}(?:\.\d{1,3})*[.)]?$")
