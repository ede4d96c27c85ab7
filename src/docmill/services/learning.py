"""`docmill learn` as a service: fit ranker and confidence to the documents of one house, and say whether it helps.

It always starts from the models that ship, which stand for the documents they were fitted on, and adds what these
documents teach. What it promises is measured on documents it had not seen: those of one sender are all in or all out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

from docmill.extraction.calibrating import fit
from docmill.extraction.checks import check
from docmill.extraction.confidence import Calibration, calibrated
from docmill.extraction.ground_truth import Labelled
from docmill.extraction.judging import examples_of, group_of
from docmill.extraction.likeness import KINDS as LEARNED
from docmill.extraction.models import CALIBRATION, Models
from docmill.extraction.result import Extraction
from docmill.extraction.schema import FieldSchema
from docmill.extraction.scoring import Summary, score_document, summarise
from docmill.model.errors import Conflict, InvalidInput
from docmill.model.percents import percent

if TYPE_CHECKING:
    from docmill.documents.reading import Reading
    from docmill.extraction.calibrating import Example

FEWEST_DOCUMENTS, FEWEST_SENDERS = 5, 2
FOLDS = 5
_NO_WORSE = 0.01
"""Of the calibration error: differences below it are noise."""


class TooLittleToLearn(InvalidInput):
    """There are not enough labelled documents to fit anything and to tell whether it helps."""

    code = "too_little_to_learn"


class NothingGained(Conflict):
    """What was learned is no better than what ships; nothing was installed."""

    code = "nothing_gained"


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A labelled document as it was read."""

    labelled: Labelled
    reading: "Reading"
    schema: FieldSchema

    @property
    def group(self) -> str:
        return group_of(self.labelled) or self.labelled.file


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What came of it."""

    lessons: int
    before: Summary
    """With the shipped models."""
    after: Summary
    """Cross-validated: each document read with what the others taught."""
    files: Mapping[str, Mapping[str, Any]]
    """The models, as they are stored."""

    @property
    def worse(self) -> str | None:
        """Why it should not be used; None if it may."""
        if self.after.micro < self.before.micro:
            return f"{percent(self.after.micro, 1)} of the values are right, {percent(self.before.micro, 1)} without it"
        if self.after.micro == self.before.micro and _error(self.after) > _error(self.before) + _NO_WORSE:
            return f"the confidence is off by {_error(self.after):.3f}, by {_error(self.before):.3f} without it"
        return None


def _error(summary: Summary) -> float:
    return summary.ece or 0.0


def learn(lessons: Sequence[Lesson]) -> Learned:
    """Fit everything on these documents; TooLittleToLearn if they are too few to tell whether it helps."""
    groups = {lesson.group for lesson in lessons}
    if len(lessons) < FEWEST_DOCUMENTS or len(groups) < FEWEST_SENDERS:
        raise TooLittleToLearn(
            f"Documents that can be learned from: {len(lessons)}, senders: {len(groups)}. At least {FEWEST_DOCUMENTS} "
            f"of {FEWEST_SENDERS} senders are needed: label or review more receipts, and invoices without XML."
        )
    shipped = Models()
    before = [_judged(lesson, shipped) for lesson in lessons]
    sure = [
        calibrated(found, required=each.schema.required, calibration=shipped.calibration)
        for each, found in zip(lessons, before, strict=True)
    ]
    rankers: dict[str, Mapping[str, Any]] = {}
    unseen = list(before)
    for name in LEARNED:
        places = [place for place, lesson in enumerate(lessons) if lesson.schema.name == name]
        if len({lessons[place].group for place in places}) >= 2:
            chosen = [lessons[place] for place in places]
            for place, found in zip(places, _unseen(chosen, shipped), strict=True):
                unseen[place] = found
            rankers[name] = _adapted(chosen, shipped).ranker(name).as_json()
    told = [
        examples_of(each.labelled, found, each.schema, group=each.group)
        for each, found in zip(lessons, unseen, strict=True)
    ]
    after = calibrated_apart(lessons, unseen, told, shipped.calibration)
    calibration = fit([example for part in told for example in part], shipped.calibration)
    return Learned(
        lessons=len(lessons),
        before=_summary(lessons, sure),
        after=_summary(lessons, after),
        files={**rankers, CALIBRATION: calibration.as_json()},
    )


def calibrated_apart(
    lessons: Sequence[Lesson],
    unseen: Sequence[Extraction],
    told: "Sequence[Sequence[Example]]",
    prior: Calibration | None = None,
    *,
    groups: Sequence[str] | None = None,
) -> list[Extraction]:
    """Each extraction with the confidence of a calibration that was fitted without its group."""
    fold = [fold_of(group) for group in groups or [lesson.group for lesson in lessons]]
    fitted = {
        number: fit([example for part, own in zip(told, fold, strict=True) if own != number for example in part], prior)
        for number in set(fold)
    }
    return [
        calibrated(found, required=lesson.schema.required, calibration=fitted[own])
        for lesson, found, own in zip(lessons, unseen, fold, strict=True)
    ]


def fold_of(group: str) -> int:
    """In which fold a group is; the same on every machine."""
    return crc32(group.encode()) % FOLDS


def _unseen(lessons: Sequence[Lesson], shipped: Models) -> list[Extraction]:
    """Each document as read by a model that the others taught."""
    found: dict[int, Extraction] = {}
    for number in range(FOLDS):
        inside = [place for place, lesson in enumerate(lessons) if fold_of(lesson.group) == number]
        rest = [lesson for place, lesson in enumerate(lessons) if place not in set(inside)]
        models = _adapted(rest, shipped) if inside and rest else shipped
        for place in inside:
            found[place] = _judged(lessons[place], models)
    return [found[place] for place in range(len(lessons))]


def _adapted(lessons: Sequence[Lesson], shipped: Models) -> Models:
    """The shipped models with what these documents teach."""
    from docmill.extraction.local.adapting import adapted

    name = lessons[0].schema.name
    return shipped.with_ranker(
        name, adapted(shipped.ranker(name), [(each.reading, labels_of(each), each.group) for each in lessons])
    )


def labels_of(lesson: Lesson) -> dict[str, str]:
    """The labels by the names of the schema, as a ranker learns from them: empty is "not there"."""
    found = {}
    for name, value in lesson.labelled.fields.items():
        field = lesson.schema.resolve(name)
        # What is labelled and cannot be seen teaches nothing about where to look.
        if field is not None and (value is None or lesson.labelled.sees(name)):
            found[field] = value or ""
    return found


def _judged(lesson: Lesson, models: Models) -> Extraction:
    """As the models read it, checked and not yet calibrated."""
    from docmill.extraction.extracting import read

    return check(read(replace(lesson.reading, invoice=None), lesson.schema, models), lesson.schema)


def _summary(lessons: Sequence[Lesson], found: Sequence[Extraction]) -> Summary:
    return summarise(
        [score_document(each.labelled, one, each.schema) for each, one in zip(lessons, found, strict=True)]
    )
