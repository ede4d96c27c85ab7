"""Line items: which rows of which table they are, and what each says.

A table with a heading is read by its columns. Rows are counted by what starts an item: a position number, or an amount
in the column of amounts. Where the two disagree, the sum decides: it must be one of the sums of the invoice. Without a
heading, items are the rows above the sums whose amounts add up to one of them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise

from docmill.extraction.local.invoices.grid import CENT, Grid
from docmill.extraction.local.invoices.item import Item
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Cell, Token
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.subtotals import adjusts, without_sums
from docmill.extraction.local.invoices.tables import Table, closes, tables_in
from docmill.extraction.local.invoices.unheaded import lines_of, naming
from docmill.extraction.local.invoices.vocabulary import AMOUNT_LABELS


@dataclass(frozen=True, kw_only=True)
class Items:
    """The items of a document, and the rows that they fill."""

    items: tuple[Item, ...] = ()
    rows: frozenset[int] = frozenset()
    adds_up: bool = False
    """Whether their amounts make one of the sums below them."""
    headed: bool = False
    headings: frozenset[int] = frozenset()
    """Rows that are headings of tables."""
    shared: frozenset[int] = frozenset()
    """Rows of items in which something else stands before them: a box beside the items."""


def items_in(paper: Paper) -> Items:
    """The line items: the best of all ways to read them."""
    sums = _sums(paper)
    best, points = Items(), 0.0
    tables = tables_in(paper)
    used: set[int] = set()
    for index, table in enumerate(tables):
        if index in used or not table.kinds & {"amount", "unit_price"}:
            continue
        parts = [table]
        for later in range(index + 1, len(tables)):
            if tables[later].kinds == table.kinds and (
                len(table.kinds) > 2 or _headed_alike(paper, table, tables[later])
            ):
                parts.append(tables[later])
                used.add(later)
        for items, sure in _readings(paper, parts, sums):
            worth = sure + 0.5 * len(table.kinds & _TELLING) + min(len(items), 4) * 0.1
            worth += 0.5 * ("quantity" in table.kinds) + 0.5 * ("description" in table.kinds)
            worth -= 1.5 * ("tax_amount" in table.kinds and "quantity" not in table.kinds)
            if len(items) == 1 and not table.kinds & _THINGS:
                # `Account | Date | Amount due` above what is due of all.
                continue
            if items and worth > points + 1e-9:
                rows = _filled(paper, parts, items)
                best, points = Items(items=tuple(items), rows=rows, adds_up=sure >= 2.0, headed=True), worth
    headings = frozenset(row for table in tables for row in table.heading)
    if points < 1.5 or not best.adds_up or len(best.items) == 1:
        bare = _bare(paper, sums)
        # Where the items of a table make no sum, more of them that do are believed; one is easily a sum by itself.
        if bare.items and (points < 1.5 or len(bare.items) > len(best.items) + best.adds_up):
            best = bare
    return replace(best, headings=headings)


def _headed_alike(paper: Paper, one: Table, other: Table) -> bool:
    """Whether the same heading stands above both, as on a further page."""
    first, second = ([cell.plain for row in table.heading for cell in paper.sheet.rows[row]] for table in (one, other))
    return first == second


def _filled(paper: Paper, parts: Sequence[Table], items: Sequence[Item]) -> frozenset[int]:
    """The rows of a table down to its last item, and what is said of that; amounts further down are none of items."""
    rows = [row for part in parts for row in range(part.first, part.last)]
    last = max(items[-1].rows)
    end = next((row for row in rows if row > last and any(map(paper.is_money, paper.sheet.rows[row]))), rows[-1] + 1)
    return frozenset(row for row in rows if row < end)


_THINGS = frozenset({"description", "quantity", "unit_price", "article", "position"})
_TELLING = frozenset({"quantity", "unit_price", "amount", "description", "position", "tax_rate"})


def _sums(paper: Paper) -> set[Decimal]:
    """Amounts that are called a sum."""
    found = set()
    for number in paper.numbers:
        if number.money or number.currency:
            for label in paper.labels(number.cell, number.start, number.end):
                meaning = AMOUNT_LABELS(label.text)
                if meaning and max([meaning.get(kind, 0.0) for kind in ("subtotal", "total", "due")]) >= 0.6:
                    found.add(number.value)
    return found


def _readings(paper: Paper, parts: Sequence[Table], sums: set[Decimal]) -> Iterable[tuple[list[Item], float]]:
    """Ways to count the items of a table, each with what speaks for it."""
    grids = [Grid(paper=paper, table=part) for part in parts]
    by_amount = without_sums([item for grid in grids for item in _by_amount(grid)])
    by_position = [item for grid in grids for item in _by_position(grid)]
    whole = [item for item in by_amount if item.position is not None or item.values.keys() & {"quantity", "unit_price"}]
    # Items are told apart by which they are, so sets of them cost nothing in a long table.
    adjusting = {item for item in by_amount if adjusts(item)}
    sold = [item for item in by_amount if item not in adjusting]
    kept = {*whole, *sold}
    plain_items = [item for item in by_amount if item in kept] if 2 * len(whole) >= len(kept) else by_amount
    sides = [item for item in by_amount if item not in kept] if plain_items is not by_amount else []
    if 1 < len(by_amount) <= 2 * len(sides) and _makes_sum(paper, by_amount, sums):
        # Of a carrier, delivery and surcharges are what was sold.
        whole, plain_items, sides = [], by_amount, []
    if not by_position and _counting([item.position or "" for item in sold]):
        # What is taken off or added has numbers of its own, which do not go on counting.
        by_position, sides = sold, [item for item in by_amount if item in adjusting]
    for items, others in (
        (by_position, sides),
        (by_position, []),
        (whole, sides),
        (whole, []),
        (plain_items, sides),
        (plain_items, []),
    ):
        if not items or not all(item.amount for item in items):
            continue
        sure = 2.0 if _makes_sum(paper, items, sums, others) else 0.0
        if items is by_position:
            sure += 1.6
        elif items is plain_items:
            sure += 0.05
        yield items, sure


def _makes_sum(paper: Paper, items: Sequence[Item], sums: set[Decimal], others: Sequence[Item] = ()) -> bool:
    """Whether items, and what else changes their sum, make an amount that is called one or stands beneath them."""
    total = sum((item.amount.value for item in (*items, *others) if item.amount), Decimal(0))
    if any(abs(total - wanted) <= CENT for wanted in sums):
        return True
    return len(items) > 1 and _printed(paper, total, max(items[-1].rows))


def _printed(paper: Paper, total: Decimal, last: int) -> bool:
    """Whether the sum of items stands beneath the last of them, whatever it is called."""
    return any(number.money and number.value == total and number.cell.row > last for number in paper.numbers)


def _by_amount(grid: Grid) -> list[Item]:
    """An item per row with an amount in the column of amounts."""
    paper, table = grid.paper, grid.table
    found: list[Item] = []
    loose: list[int] = []
    for number in range(table.first, table.last):
        values, position = grid.values(number), grid.position(number)
        if "amount" in values and closes(paper, paper.sheet.rows[number], table):
            loose = []
        elif "amount" in values:
            item = Item(rows=[number], position=position, values=dict(values))
            bare = position is None and "quantity" not in values
            if loose and bare and not _words(paper, paper.sheet.rows[number], table):
                # The amount stands a little lower than what it belongs to.
                for earlier in loose:
                    item.rows.insert(0, earlier)
                    item.position = item.position or grid.position(earlier)
                    for kind, value in grid.values(earlier).items():
                        item.values.setdefault(kind, value)
            found.append(item)
            loose = []
        elif values or position:
            loose.append(number)
        else:
            loose = []
    _fill(paper, table, found)
    for item in found:
        if (amount := item.amount) and amount.cell.text.startswith("(") and adjusts(item):
            # `Discount (40.00)`: what is taken off stands in brackets.
            item.values["amount"] = replace(amount, value=-abs(amount.value))
    return found


def _by_position(grid: Grid) -> list[Item]:
    """An item per position number; its numbers are those of its row or, if they stand apart, of the nearest."""
    table = grid.table
    marks = []
    for number in range(table.first, table.last):
        position = grid.position(number)
        if position is not None:
            marks.append((number, position))
    if not marks or not _counting([position for _, position in marks]):
        return []
    found: list[Item] = []
    taken = {number for number, _ in marks if "amount" in grid.values(number)}
    for index, (number, position) in enumerate(marks):
        end = marks[index + 1][0] if index + 1 < len(marks) else table.last
        values = dict(grid.values(number))
        rows = [number]
        if "amount" not in values:
            before = marks[index - 1][0] if index else table.first - 1
            near = sorted((*range(number + 1, end), *range(number - 1, before, -1)), key=lambda at: abs(at - number))
            for at in near:
                others = grid.values(at)
                if "amount" in others and at not in taken and abs(at - number) <= 7:
                    values = {**others, **values}
                    rows.append(at)
                    taken.add(at)
                    break
        found.append(Item(rows=sorted(rows), position=position, values=values))
    _fill(grid.paper, table, found)
    return found


def _counting(positions: Sequence[str]) -> bool:
    """Whether these are positions and not quantities that happen to stand on the left."""
    keys = [tuple(int(part) for part in re.findall(r"\d+", position)) for position in positions]
    return (
        bool(keys)
        and all(keys)
        and len(set(positions)) == len(positions)
        and (sum(one < other for one, other in pairwise(keys)) >= 0.6 * (len(keys) - 1))
    )


_NUMERIC = frozenset({"quantity", "tax_rate", "amount", "unit_price", "discount", "date"})


def _words(paper: Paper, row: Sequence[Cell], table: Table) -> list[Cell]:
    """Cells of a row that describe: neither number nor position nor unit."""
    found = []
    for cell in row:
        column = table.column_of(cell.left, cell.right)
        if (column and column.kind == "unit") or (column and column.kind in _NUMERIC and len(cell.text) < 8):
            continue
        if paper.is_value(cell) or not cell.worded:
            continue
        found.append(cell)
    return found


def _fill(paper: Paper, table: Table, items: Sequence[Item]) -> None:
    """Give each item the words of its rows and of those up to the next item."""
    described = [column for column in table.columns if column.kind == "description"]
    for index, item in enumerate(items):
        end = items[index + 1].rows[0] if index + 1 < len(items) else min(table.last, item.rows[-1] + 6)
        for number in range(item.rows[0], end):
            row = paper.sheet.rows[number]
            words = _words(paper, row, table)
            if number not in item.rows and any(paper.numbers_of.get(id(cell)) and paper.is_value(cell) for cell in row):
                break
            inside = [
                cell
                for cell in words
                if not described
                or ((column := table.column_of(cell.left, cell.right)) and column.kind == "description")
            ]
            for cell in inside or (words if number in item.rows else ()):
                tokens = cell.tokens
                if item.position and tokens[0].text == item.position:
                    tokens = tokens[1:]
                if tokens:
                    item.words.append((cell.page, tokens))
            item.unit = item.unit or _unit(paper, row, table, item)


def _unit(paper: Paper, row: Sequence[Cell], table: Table, item: Item) -> tuple[int, tuple[Token, ...]] | None:
    """What the quantity counts: after it in its cell, or in a column of its own."""
    quantity = item.values.get("quantity")
    if quantity is not None and quantity.cell in row:
        rest = quantity.cell.slice(quantity.end + 1, len(quantity.cell.text))
        if rest and len(rest) <= 2 and any(char.isalpha() for char in rest[0].text):
            return quantity.cell.page, rest
    for cell in row:
        column = table.column_of(cell.left, cell.right)
        if column and column.kind == "unit" and cell.worded and len(cell.text) < 15:
            return cell.page, cell.tokens
    return None


def _bare(paper: Paper, sums: set[Decimal]) -> Items:
    """Rows of words and an amount above the first sum, without a heading."""
    if lines := lines_of(paper, sums):
        kept = [
            Item(rows=[row], values={"amount": money}, words=[(cell.page, cell.tokens)]) for row, money, cell in lines
        ]
        rows = frozenset(row for row, _, _ in lines)
        shared = frozenset(row for row, _, cell in lines if paper.sheet.rows[row][0] is not cell)
        return Items(items=tuple(kept), rows=rows - shared, adds_up=True, shared=shared)
    found: list[Item] = []
    edge: float | None = None
    for number, row in enumerate(paper.sheet.rows):
        money = [item for cell in row for item in paper.numbers_of.get(id(cell), ()) if item.money]
        words = [cell for cell in row if not paper.is_value(cell) and cell.worded]
        if not money or not words or money[-1].cell is not row[-1] or len(row) < 2:
            continue
        amount = money[-1]
        meaning: Mapping[str, float] = AMOUNT_LABELS(words[-1].plain)
        sums_here = max((meaning.get(kind, 0.0) for kind in ("subtotal", "total", "due", "tax")), default=0.0)
        if sums_here >= 0.55:
            if found:
                break
            continue
        if max(meaning.get("paid", 0.0), meaning.get("carried", 0.0)) >= 0.9:
            continue
        if edge is not None and abs(amount.right - edge) > 0.03:
            if len(found) > 1:
                break
            found = []
        edge = amount.right
        found.append(Item(rows=[number], values={"amount": amount}, words=[(words[0].page, words[0].tokens)]))
    taxes = {number.value for number in paper.numbers if number.money and _is_tax(paper, number)}
    sums = sums | {each - tax for each in sums for tax in taxes}
    for start in range(len(found)):
        total = sum((item.amount.value for item in found[start:] if item.amount), Decimal(0))
        if any(abs(total - wanted) <= CENT for wanted in sums):
            kept = found[start:]
            return Items(items=tuple(kept), rows=frozenset(row for item in kept for row in item.rows), adds_up=True)
    return _single(paper, sums)


def _is_tax(paper: Paper, number: Number) -> bool:
    labels = paper.labels(number.cell, number.start, number.end)
    return any(AMOUNT_LABELS(label.text).get("tax", 0.0) >= 0.9 for label in labels[:1])


def _single(paper: Paper, sums: set[Decimal]) -> Items:
    """One item whose amount is the sum itself: the first time that sum is printed, if it is printed again."""
    money = [number for number in paper.numbers if number.money and number.value in sums]
    for number in money:
        if sum(other.value == number.value for other in money) > 1:
            row = paper.sheet.rows[number.cell.row]
            words = [cell for cell in row if not paper.is_value(cell)] or list(paper.sheet.above(number.cell, reach=2))
            item = Item(rows=[number.cell.row], values={"amount": number})
            item.words = [(cell.page, cell.tokens) for cell in naming(paper, words)[:1]]
            return Items(items=(item,), adds_up=True)
    return Items()
