"""The compiled form of a process template: what the engine plans with.

Steps are addressed by position, their index in `Plan.steps`; keys are for people. A plan is immutable and shared by all
jobs of one template version.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from docmill.model.statuses import FailureAction, StepKind

ALL_PREVIOUS = "all_previous_steps"
"""What a template writes in `depends_on` to wait for every step of an earlier group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAction:
    """How model settings change from attempt to attempt."""

    switch_models: tuple[str, ...] = ()
    raise_max_tokens_by: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorChoice:
    """One branch of a choice by result: the first whose condition holds names the processor."""

    when: str | None
    """Condition over `result`; None is the default branch."""
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForEach:
    """The step's function runs once for each item of a list."""

    items: str
    """Expression over entity, results and metadata that gives the list."""
    parallel: int = 10
    """So many at a time."""
    may_fail: bool = False
    """The step completes although items failed, once no attempt is left for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One template step, every reference resolved."""

    position: int
    step_key: str
    display_name: str
    kind: StepKind
    step_type: str
    pool: str
    execution_group: int
    order: int
    depends_on: tuple[int, ...] = ()
    """Positions of the steps this one depends on, `all_previous_steps` already expanded."""
    condition: str | None = None
    optional: bool = False
    timeout: float = 300.0
    """Seconds until the attempt is given up; the cancellation signal comes at nine tenths of it."""
    max_attempts: int = 4
    backoff: float = 10.0
    """Seconds; the delay before retry n (from 0) is backoff * 2**n plus uniform(0, half of it)."""
    max_crashes: int = 3
    on_failure: FailureAction = FailureAction.FAIL_JOB
    on_retry: RetryAction = field(default_factory=RetryAction)
    prompt: str | None = None
    model: Mapping[str, object] = field(default_factory=dict)
    output_schema: Mapping[str, object] | None = None
    processor: tuple[ProcessorChoice, ...] = ()
    """Empty: the step has no processor. One entry with `when=None`: a fixed one."""
    compensation: str | None = None
    recovery: str | None = None
    """Name of the recovery strategy; None: the one its step type has of itself."""
    input: Mapping[str, str] = field(default_factory=dict)
    """Name of the value in `ctx.input` -> expression over entity, results and metadata."""
    not_before: str | None = None
    """Expression for the earliest start (ISO 8601 text or an expression giving one)."""
    delay: float = 0.0
    """Seconds between becoming ready and being due."""
    answer_within: float | None = None
    """Seconds that the step may wait for an answer; None: what it asks for itself, or the engine's default."""
    for_each: ForEach | None = None
    executor: str | None = None
    """Whom an external step is sent to; where that is, only the settings know."""
    finish: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A template version ready to run. Steps are ordered by execution group, then `order`, then place in the file."""

    name: str
    processable_type: str
    task_type: str
    service_name: str | None
    steps: tuple[PlanStep, ...]
    compensate: bool = False
    """Run the compensation methods of completed steps, in reverse, when a job fails or is cancelled."""
    description: str = ""
    undoes: bool = False
    """Made by Docmill to undo what jobs of another plan did; see `templates.undo`."""

    @cached_property
    def finish(self) -> int:
        """Position of the finish step, always the last."""
        return len(self.steps) - 1

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Positions by execution group, groups in running order; the finish step is alone in the last."""
        groups: dict[int, list[int]] = {}
        for step in self.steps:
            groups.setdefault(step.execution_group, []).append(step.position)
        return tuple(tuple(groups[number]) for number in sorted(groups))

    @cached_property
    def dependents(self) -> tuple[tuple[int, ...], ...]:
        """For each position, the positions that depend on it directly."""
        dependents: list[list[int]] = [[] for _ in self.steps]
        for step in self.steps:
            for need in step.depends_on:
                dependents[need].append(step.position)
        return tuple(tuple(positions) for positions in dependents)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Step key -> position."""
        return {step.step_key: step.position for step in self.steps}

    def step(self, key: str) -> PlanStep:
        """The step with this key; KeyError if there is none."""
        return self.steps[self.positions[key]]
