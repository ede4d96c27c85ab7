"""Issue date and due date: candidates with features."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from docmill.extraction.local.invoices.deadlines import promised
from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.kinds import CREDIT_NOTE, kind_of, names_an_invoice
from docmill.extraction.local.invoices.paper import Option, Paper, meanings
from docmill.extraction.local.invoices.priors import prior
from docmill.extraction.local.invoices.settled import says_paid
from docmill.extraction.local.invoices.spans import DateSpan
from docmill.extraction.local.invoices.vocabulary import DATE_LABELS
from docmill.extraction.local.invoices.wording import plain

MEANING = {"issue_date": "issue", "due_date": "due", "delivery_date": "delivery"}

_TO = re.compile(r"^\W*(?:bis|bis zum|to|through|until|au|al|till|tot|tot en met|t/m|a|-)?\W*$")


def _in_range(paper: Paper, span: DateSpan) -> bool:
    """Whether it is one end of a period: two dates with nothing but `to` between them."""
    beside = paper.dates_of.get(id(span.cell), ())
    text = span.cell.text
    for other in beside:
        first, second = (other, span) if other.start < span.start else (span, other)
        if other is not span and _TO.match(plain(text[first.end : second.start])):
            return True
    return False


def _means(paper: Paper, span: DateSpan) -> Mapping[str, float]:
    if _in_range(paper, span):
        return {"period": 1.0}
    labelled = meanings(DATE_LABELS, paper.labels(span.cell, span.start, span.end, dated=True))
    if len(span.cell.tokens) - len(span.tokens) < _SENTENCE or labelled.get("discount", 0.0) >= _PLAINLY:
        return labelled
    said = promised(paper.sheet, span.cell, span.start, span.end)
    if "due" in said:
        return {"due": 1.0}
    return {**labelled, "period": 1.0, "due": 0.0} if said and labelled.get("due") else labelled


_SENTENCE = 2
"""Words beside a day that may say something about it; one is a label."""
_PLAINLY = 0.6
"""How surely a label says that a document was written that day: `Datum` beside it or above."""


def _corrected(paper: Paper, labelled: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """The meanings of all dates of a credit note: the day of the invoice is not its own, if another is."""
    whose = [_of_invoice(paper, span) for span in paper.dates]
    if not any(means.get("issue", 0.0) >= _PLAINLY and not other for means, other in zip(labelled, whose, strict=True)):
        return list(labelled)
    return [{"order": 1.0} if other else means for means, other in zip(labelled, whose, strict=True)]


def _of_invoice(paper: Paper, span: DateSpan) -> bool:
    """Whether the label that makes it a day of issue names an invoice."""
    labels = paper.labels(span.cell, span.start, span.end, dated=True)
    sure = [(DATE_LABELS(label.text).get("issue", 0.0) * label.weight, label.text) for label in labels]
    points, text = max(sure, default=(0.0, ""))
    return points > 0 and names_an_invoice(text)


def meanings_of(paper: Paper) -> list[Mapping[str, float]]:
    """What the labels of each date say: the same whichever field it may be."""
    return _paid_or_due(paper, [_means(paper, span) for span in paper.dates])


def _paid_or_due(paper: Paper, labelled: list[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """A date of payment is the day on which it was paid if a sentence says that it is, else the day by which to pay."""
    if not any("payment" in means for means in labelled):
        return labelled
    meant = "paid" if says_paid(paper) else "due"
    return [
        {**{name: sure for name, sure in means.items() if name != "payment"}, meant: means["payment"]}
        if "payment" in means
        else means
        for means in labelled
    ]


def options(paper: Paper, items: Items, field: str, means_of: Sequence[Mapping[str, float]]) -> list[Option]:
    """Candidates of one field: every date on the page, with what its labels say."""
    meaning = MEANING[field]
    counts = Counter(span.value for span in paper.dates)
    latest = max(counts, default=None)
    found = []
    labelled = means_of
    if field == "issue_date" and kind_of(paper.sheet) == CREDIT_NOTE:
        labelled = _corrected(paper, labelled)
    early = {span.value for span, means in zip(paper.dates, labelled, strict=True) if means.get("discount", 0.0) >= 0.5}
    # Where an earlier day earns a discount there are two by which to pay, and people write down one or the other.
    signals = {"either": float(bool(early))} if field == "due_date" else {}
    for index, (span, means) in enumerate(zip(paper.dates, labelled, strict=True)):
        if span.value in early:
            # Whoever pays by then may deduct something: not the day by which to pay.
            means = {**means, "discount": 1.0}
        own = means.get(meaning, 0.0)
        rival = max((sure for name, sure in means.items() if name != meaning), default=0.0)
        words = len(span.cell.tokens)
        siblings = len(paper.dates_of.get(id(span.cell), ()))
        features = {
            "label": own,
            "label_strong": float(own >= 0.9),
            "rival": rival,
            "rival_stronger": float(rival > own),
            "unlabelled": float(not means),
            "top": max(0.0, 1.0 - 2 * span.cell.depth) if span.cell.page == 1 else 0.0,
            "first": float(index == 0),
            "repeats": min(counts[span.value] - 1, 3) / 1.5,
            "in_items": float(span.cell.row in items.rows),
            "sentence": float(words > 12),
            "alone": float(words <= 3),
            "range": float(siblings > 1),
            "latest": float(span.value == latest),
            "later_page": float(span.cell.page > 1),
        }
        features["prior"] = prior(field, features)
        found.append(
            Option(
                value=span.value.isoformat(),
                raw=span.text,
                spans=(),
                features=features,
                signals=signals | {"label": own, "repeats": float(counts[span.value])},
                tokens=span.tokens,
                page=span.cell.page,
            )
        )
    return found
