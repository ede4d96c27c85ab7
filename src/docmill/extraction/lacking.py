"""Why a rule could not be looked at: what its unknown parts need and was not found."""

from decimal import Decimal

from docmill.extraction.rules import Known, Rule, parts_of, value_of
from docmill.templates.syntax import Literal, Path


def lacking(rule: Rule, known: Known, tolerance: Decimal) -> tuple[tuple[str, str | None], ...]:
    """Fields and tables that a rule lacks, and of a table that has rows the column with gaps.

    Not what may lack (`coalesce(rounding, 0)`), nor what another part makes up for. Nothing, if all of it is known and
    cannot be computed.
    """
    pending, found = [rule.node], []
    while pending:
        node = pending.pop(0)
        match node:
            case _ if value_of(node, known, tolerance) is not None:
                pass
            case Path(root, (Literal(str(column)),)):
                found.append((root, column if known.rows.get(root) else None))
            case Path(root):
                found.append((root, None))
            case _:
                pending[:0] = parts_of(node)
    return tuple(dict.fromkeys(found))
