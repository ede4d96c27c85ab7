"""Issues that steps raise: kept with the result they are about, opened with the report on it, asked again if need be.

An issue that blocks is put anew each time its step begins to wait, so it is named after the epoch of the wait. One that
does not is opened once for each compute, however often its result is applied, so it is named after the compute's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from docmill.engine.batch import StepRun
from docmill.engine.context import to_json
from docmill.engine.events import Suspended
from docmill.engine.issues import RAISED, NewIssue
from docmill.model.errors import PermanentError
from docmill.model.ids import following_id
from docmill.model.issues import IssueSeverity
from docmill.plugin import Issue
from docmill.templates.output import schema_fault

ANSWER_WITHIN = 30 * 24 * 3600.0
"""Seconds that a step waits for an answer unless it or its template says otherwise: every wait has an end."""

_FIELDS = tuple(field.name for field in fields(Issue))


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """What one compute raised."""

    epoch: int
    """Of that compute; its result may be reported on under a later one."""
    issues: tuple[Issue, ...]

    @property
    def blocks(self) -> bool:
        """Whether a person must be asked before the step can go on."""
        return any(issue.blocking for issue in self.issues)

    def opened(self, run: StepRun, *, corrects: bool) -> tuple[NewIssue, ...]:
        """To open with a report of this run. `corrects`: answers correct the step's result, and are not all of it."""
        return tuple(
            replace(
                _new_issue(run, issue, run.state.epoch if issue.blocking else self.epoch, index),
                corrects=corrects and issue.blocking,
            )
            for index, issue in enumerate(self.issues)
        )

    def to_part(self) -> str:
        """As it is stored beside the result."""
        return to_json([{name: getattr(issue, name) for name in _FIELDS} for issue in self.issues], "the issues")

    @property
    def part_name(self) -> str:
        """One for each compute: what is stored as a part stays as it was written first."""
        return f"{RAISED}{self.epoch}"


def raised_now(run: StepRun, issues: Iterable[Issue]) -> Raised:
    """By the compute of this run; PermanentError when an issue cannot be stored."""
    return Raised(epoch=run.state.epoch, issues=tuple(_plain(issue) for issue in issues))


def raised_from_parts(parts: Mapping[str, Any], run: StepRun) -> Raised:
    """As it was raised by the newest compute that left a word, which is the one whose result is stored."""
    epochs = [int(name.removeprefix(RAISED)) for name in parts if name.startswith(RAISED)]
    if not epochs:
        return Raised(epoch=run.state.epoch, issues=())
    stored = parts[f"{RAISED}{max(epochs)}"]
    return Raised(epoch=max(epochs), issues=tuple(Issue(**issue) for issue in stored))


def raised_by_processor(run: StepRun, issues: Sequence[Issue]) -> tuple[NewIssue, ...]:
    """To open with the completion."""
    return tuple(_new_issue(run, _plain(issue), run.state.epoch, "apply", n) for n, issue in enumerate(issues))


def suspension(
    run: StepRun, *, now: datetime, within: timedelta | float | None, result: str | None, paid: bool = False
) -> Suspended:
    """The step begins to wait."""
    if not isinstance(within, timedelta):
        within = timedelta(seconds=within if within is not None else run.step.answer_within or ANSWER_WITHIN)
    return Suspended(position=run.step.position, epoch=run.state.epoch, deadline=now + within, result=result, paid=paid)


def _plain(issue: Issue) -> Issue:
    """The issue as JSON gives it back: what cannot be stored fails the step that raised it, and not a whole batch."""
    stored = to_json({name: getattr(issue, name) for name in _FIELDS}, f"the issue {issue.code!r}")
    plain = Issue(**orjson.loads(stored))
    if plain.answer_schema is not None:
        # Now, and not when somebody answers: nobody could.
        fault = schema_fault(plain.answer_schema)
        if fault is not None:
            raise PermanentError(f"Issue {issue.code!r}: its answer_schema is no JSON Schema: {fault}.")
    return plain


def _new_issue(run: StepRun, issue: Issue, *place: str | int) -> NewIssue:
    return NewIssue(
        id=following_id(run.job.id, "issue", run.step.position, *place),
        code=issue.code,
        title=issue.title,
        severity=IssueSeverity(issue.severity),
        blocking=issue.blocking,
        details=issue.details,
        answer_schema=issue.answer_schema,
        assigned_to=issue.assigned_to,
    )
