"""Programs told on purpose: what random ones may miss, for whoever must have seen it."""

from docmill.model.statuses import FailureAction, StepKind
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan, question_beside_work, receipt, single_step
from docmill.testing.sequences import Choice, Deed, Program

_CLAIM = Choice(Deed.CLAIM, 0, 1)

POISON = Program((single_step(),), (Choice(Deed.SUBMIT), *[_CLAIM, Choice(Deed.SWEEP)] * 3))

FAILURES = Program(
    (single_step(),),
    (
        Choice(Deed.SUBMIT),
        *[c for detail in (2, 3, 1) for c in (_CLAIM, _CLAIM, Choice(Deed.FAIL, 0, detail))],
    ),
)

ANSWERS = Program(
    (receipt(),),
    (
        Choice(Deed.SUBMIT),
        *[_CLAIM, Choice(Deed.JOIN)] * 8,
        _CLAIM,
        Choice(Deed.SUSPEND),
        Choice(Deed.ANSWER, 0, 1),
        *[_CLAIM, Choice(Deed.COMPLETE)] * 2,
        Choice(Deed.RERUN, 0, 1),
        Choice(Deed.CANCEL),
        Choice(Deed.CANCEL),
        Choice(Deed.RERUN, 0, 2),
    ),
)


def _questions(processor: str | None) -> Plan:
    return make_plan([Draft(key="ask", kind=StepKind.EXTERNAL, processor=processor, backoff=0.5)], name="questions")


def _asked(processor: str | None) -> Program:
    """Answered too early, then reopened, failed and answered for good."""
    ask = (_CLAIM, _CLAIM, Choice(Deed.SUSPEND))
    return Program(
        (_questions(processor),),
        (
            Choice(Deed.SUBMIT),
            _CLAIM,
            Choice(Deed.STALE, 0, 57),
            Choice(Deed.SUSPEND),
            Choice(Deed.ANSWER, 0, 2),
            *ask,
            Choice(Deed.ANSWER, 0, 0),
            *ask,
            Choice(Deed.ANSWER, 0, 3),
            Choice(Deed.STALE, 0, 57),
            Choice(Deed.RERUN, 0, 8),
        ),
    )


def _saga(compensate: bool) -> Program:
    """Cancelled in the middle and run again."""
    plan = make_plan([Draft(key="a", compensation="undo"), Draft(key="b", group=2)], compensate=compensate)
    return Program(
        (plan,), (Choice(Deed.SUBMIT), _CLAIM, Choice(Deed.JOIN), _CLAIM, Choice(Deed.CANCEL), Choice(Deed.RERUN, 1, 3))
    )


BATCHED = Program(
    (single_step(),),
    (
        Choice(Deed.SUBMIT, 0, 3),
        Choice(Deed.FREE),
        Choice(Deed.FREE),
        _CLAIM,
        Choice(Deed.DEFER, 0, 1),
        *[_CLAIM] * 3,
        Choice(Deed.SKIP),
        Choice(Deed.CANCEL),
        Choice(Deed.RERUN, 3, 1),
    ),
)

KEPT = Program(
    (single_step(),),
    (
        Choice(Deed.SUBMIT),
        _CLAIM,
        Choice(Deed.CHECKPOINT),
        *[Choice(Deed.COMPLETE), _CLAIM] * 2,
        Choice(Deed.RERUN, 0, 6),
        _CLAIM,
        Choice(Deed.CANCEL),
        Choice(Deed.RERUN, 0, 3),
    ),
)
"""Paid for, and run again: first with what was paid for, then without."""

FAILED_BESIDE_WAITS = Program(
    (question_beside_work(),),
    (Choice(Deed.SUBMIT), *[_CLAIM] * 3, *[Choice(Deed.SUSPEND, 2), Choice(Deed.SUSPEND, 1)], Choice(Deed.FAIL, 0, 1)),
)

NOTHING_ACHIEVED = Program(
    (
        make_plan(
            [
                Draft(key="a", on_failure=FailureAction.SKIP_DEPENDENTS),
                Draft(key="b", after=("a",)),
                Draft(key="c", after=("b",)),
            ]
        ),
    ),
    (Choice(Deed.SUBMIT), _CLAIM, Choice(Deed.FAIL, 0, 1)),
)
"""The first of a chain fails: all that depends on it is skipped at once, however far, and nothing was achieved."""

FATAL_BESIDE_RERUN = Program(
    (make_plan([Draft(key="a"), Draft(key="b")]),),
    (Choice(Deed.SUBMIT), Choice(Deed.CLAIM), Choice(Deed.FAIL, 0, 1), Choice(Deed.RERUN, 1, 3)),
)
"""One is run again; the other, which failed the job, must be as well."""

CANCELLED_BEFORE_ITS_TURN = Program((single_step(),), (Choice(Deed.SUBMIT, 0, 3), Choice(Deed.CANCEL)))

STORIES = (
    POISON,
    FAILURES,
    FAILED_BESIDE_WAITS,
    ANSWERS,
    _asked(None),
    _asked("save"),
    _saga(True),
    _saga(False),
    BATCHED,
    KEPT,
    NOTHING_ACHIEVED,
    FATAL_BESIDE_RERUN,
    CANCELLED_BEFORE_ITS_TURN,
)
