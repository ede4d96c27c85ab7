"""Small plans for tests and benchmarks, and the short way to write more. Needs no Hypothesis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from docmill.model.statuses import FailureAction, StepKind
from docmill.templates.plan import Plan, PlanStep, ProcessorChoice, RetryAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan step as a test wants to write it: dependencies by key, everything else defaulted."""

    key: str
    group: int = 1
    after: tuple[str, ...] = ()
    kind: StepKind = StepKind.SYSTEM
    pool: str | None = None
    """None: named after the kind."""
    optional: bool = False
    on_failure: FailureAction = FailureAction.FAIL_JOB
    max_attempts: int = 4
    max_crashes: int = 3
    backoff: float = 10.0
    delay: float = 0.0
    condition: str | None = None
    on_retry: RetryAction = field(default_factory=RetryAction)
    model: Mapping[str, object] = field(default_factory=dict)
    step_type: str = "echo"
    processor: str | None = None
    compensation: str | None = None


def make_plan(
    drafts: Sequence[Draft], *, name: str = "sample", finish: Draft | None = None, compensate: bool = False
) -> Plan:
    """A plan of these steps, ordered by group, closed by a finish step that depends on all of them."""
    ordered = sorted(drafts, key=lambda draft: draft.group)
    last = max((draft.group for draft in drafts), default=0) + 1
    positions = {draft.key: position for position, draft in enumerate(ordered)}
    steps = [
        _step(draft, position, tuple(positions[key] for key in draft.after)) for position, draft in enumerate(ordered)
    ]
    closing = finish or Draft(key="finish", step_type="finish")
    steps.append(_step(closing, len(steps), tuple(range(len(steps))), group=last))
    return Plan(
        name=name,
        processable_type="document",
        task_type="sample",
        service_name=None,
        steps=tuple(steps),
        compensate=compensate,
    )


def _step(draft: Draft, position: int, depends_on: tuple[int, ...], group: int | None = None) -> PlanStep:
    return PlanStep(
        position=position,
        step_key=draft.key,
        display_name=draft.key.replace("_", " ").capitalize(),
        kind=draft.kind,
        step_type=draft.step_type,
        pool=draft.pool or draft.kind.value,
        execution_group=draft.group if group is None else group,
        order=position,
        depends_on=depends_on,
        condition=draft.condition,
        optional=draft.optional,
        max_attempts=draft.max_attempts,
        max_crashes=draft.max_crashes,
        backoff=draft.backoff,
        delay=draft.delay,
        on_failure=draft.on_failure,
        on_retry=draft.on_retry,
        model=draft.model,
        processor=() if draft.processor is None else (ProcessorChoice(when=None, method=draft.processor),),
        compensation=draft.compensation,
        finish=group is not None,
    )


def only_finish() -> Plan:
    """The smallest plan there is."""
    return make_plan([], name="only-finish")


def single_step() -> Plan:
    """One step and the finish."""
    return make_plan([Draft(key="a")], name="single-step")


def chain(length: int) -> Plan:
    """s0 → s1 → …, a group each, then the finish."""
    drafts = [Draft(key=f"s{n}", group=n + 1, after=(f"s{n - 1}",) if n else ()) for n in range(length)]
    return make_plan(drafts, name=f"chain-{length}")


def fan_out(width: int) -> Plan:
    """`width` independent steps in one group, joined by the finish."""
    return make_plan([Draft(key=f"s{n}") for n in range(width)], name=f"fan-out-{width}")


def diamond() -> Plan:
    """a → (b ∥ c) → d → finish."""
    drafts = [
        Draft(key="a", group=1),
        Draft(key="b", group=2, after=("a",)),
        Draft(key="c", group=2, after=("a",)),
        Draft(key="d", group=3, after=("b", "c")),
    ]
    return make_plan(drafts, name="diamond")


def six_steps() -> Plan:
    """a → b → c → (d ∥ e) → f, where f is the finish step: six steps in all."""
    drafts = [
        Draft(key="a", group=1),
        Draft(key="b", group=2, after=("a",)),
        Draft(key="c", group=3, after=("b",)),
        Draft(key="d", group=4, after=("c",)),
        Draft(key="e", group=4, after=("c",)),
    ]
    return make_plan(drafts, name="six-steps", finish=Draft(key="f", step_type="finish"))


def receipt() -> Plan:
    """The shape of the transaction import: OCR → classify → extract → optional steps → question → finish."""
    optional = Draft(key="", optional=True, on_failure=FailureAction.SKIP_DEPENDENTS)
    drafts = [
        Draft(key="ocr", group=1, kind=StepKind.RULE),
        Draft(key="classify", group=2, after=("ocr",), kind=StepKind.AI),
        Draft(key="extract", group=3, after=("classify",), kind=StepKind.AI),
        replace(optional, key="budget", group=4, after=("extract",), kind=StepKind.AI),
        replace(optional, key="vendor", group=4, after=("extract",), kind=StepKind.EXTERNAL),
        replace(optional, key="check_budget", group=5, after=("budget",), kind=StepKind.RULE),
        Draft(key="notify", group=5, after=("vendor",), on_failure=FailureAction.CONTINUE),
        Draft(key="approve", group=6, after=("notify",), kind=StepKind.HUMAN),
    ]
    return make_plan(drafts, name="receipt")


def question_beside_work() -> Plan:
    """A step, a question to a person and a call to an outside executor, all at once: for failures while others wait."""
    drafts = [
        Draft(key="work", max_attempts=1),
        Draft(key="ask", kind=StepKind.HUMAN),
        Draft(key="hub", kind=StepKind.EXTERNAL),
    ]
    return make_plan(drafts, name="question-beside-work")


SAMPLES = (
    only_finish(),
    single_step(),
    chain(3),
    fan_out(3),
    diamond(),
    six_steps(),
    receipt(),
    question_beside_work(),
)
"""One of each, to go through them all."""
