"""The amount due: by its label and by what was paid, else the total."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from docmill.extraction.local.invoices.money import CENT, Money, money_text
from docmill.extraction.local.invoices.paper import Option
from docmill.extraction.local.invoices.settled import Paid

_SAID = 2.0
"""Log odds of what is left when words say what was paid: surer than a guess, less sure than a printed amount."""


def left_of(money: Sequence[Money], options: Sequence[Option], total: Option | None) -> Option | None:
    """What is left to pay of the total, whatever it is called: the two amounts beneath or beside it make the total."""
    if total is None or not total.tokens:
        return None
    whole = Decimal(total.value)
    last = max((each.number.cell.row for each in money if each.number.value == whole and not each.in_items), default=0)
    near = [(each, option) for each, option in zip(money, options, strict=True) if 0 <= each.number.cell.row - last < 4]
    after = [pair for pair in near if pair[0].number.cell.row > last]
    edge = total.tokens[-1].right
    beside = [pair for pair in near if pair[0].number.cell.row == last and pair[0].number.left > edge]
    for (paid, _), (left, option) in (*pairwise(after), *pairwise(beside)):
        known = max([each.means.get(name, 0.0) for each in (paid, left) for name in ("tax", "subtotal")])
        parts = abs(paid.number.value), left.number.value
        if known < 0.5 and 0 < parts[1] != parts[0] and sum(parts) == whole and _apart(paid, left):
            return option
    return None


def _apart(one: Money, other: Money) -> bool:
    """Whether each of two amounts stands in a row of its own, at the same edge, or in a cell of its own in one row."""
    first, second = one.number, other.number
    if first.cell.row == second.cell.row:
        return first.cell is not second.cell
    return first.cell.row < second.cell.row and abs(first.right - second.right) < 0.02


def due_of(ranked: Sequence[tuple[Option, float]], total: Option | None, paid: set[Decimal]) -> Option | None:
    """What is to be paid: as it is called, else the total."""
    best: Option | None = None
    points = 0.0
    for option, score in ranked:
        if option.signals.get("label", 0.0) < 0.55:
            continue
        bonus = 0.0
        if total is not None:
            value, whole = Decimal(option.value), Decimal(total.value)
            if value == whole:
                bonus = 1.0
            elif any(abs(abs(whole - value) - part) <= CENT for part in paid if part):
                bonus = 3.0
        if score + bonus > points:
            best, points = option, score + bonus
    return best if best is not None else total


def unpaid(due: Option, paid: Paid) -> Option:
    """What is left of what was due, with the words that say what was paid as its evidence."""
    return Option(
        value=money_text(Decimal(due.value) - paid.amount),
        raw=paid.text,
        spans=(),
        features={},
        signals={"label": 0.5, "repeats": 1.0, "said": 1.0},
        tokens=paid.tokens,
        page=paid.page,
    )


def due_margin(
    ranked: Sequence[tuple[Option, float]], due: Option | None, total_margin: float, total: Option | None
) -> float:
    """By how much it is better than the next; as sure as the total, if it is the total for want of a label."""
    if due is None or (due is total and not any(option is due for option, _ in ranked)):
        return total_margin
    if due.signals.get("said"):
        return _SAID
    own = max((score for option, score in ranked if option.value == due.value), default=0.0)
    return own - max((score for option, score in ranked if option.value != due.value), default=0.0)
