"""Statuses of jobs and steps and the only legal ways between them, written down once.

CHECK constraints, API enums, UI types and the property tests all derive from these tables.
"""

from collections.abc import Mapping
from enum import StrEnum


class StepKind(StrEnum):
    """What executes a step."""

    AI = "ai"
    RULE = "rule"
    SYSTEM = "system"
    EXTERNAL = "external"
    HUMAN = "human"


class FailureAction(StrEnum):
    """What a failed step means for the rest of its job."""

    FAIL_JOB = "fail_job"
    SKIP_DEPENDENTS = "skip_dependents"
    CONTINUE = "continue"


class JobStatus(StrEnum):
    """Where a processing job stands."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    PARTIAL_SUCCESS = "PARTIAL_SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    finished: bool
    """Whether the job has ended; set below, a plain attribute because the engine asks a million times a second."""


class StepStatus(StrEnum):
    """Where a job step stands."""

    PENDING = "PENDING"
    READY = "READY"
    IN_PROGRESS = "IN_PROGRESS"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"

    settled: bool
    """Whether the step has come to its end; set below, as for jobs."""


class SkipReason(StrEnum):
    """Why a step was skipped; only `condition` satisfies the steps that depend on it."""

    CONDITION = "condition"
    DEPENDENCY_FAILED = "dependency_failed"
    JOB_FAILED = "job_failed"


FINISHED_JOBS = frozenset({JobStatus.COMPLETED, JobStatus.PARTIAL_SUCCESS, JobStatus.FAILED, JobStatus.CANCELLED})
SETTLED_STEPS = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.CANCELLED})

for _job in JobStatus:
    _job.finished = _job in FINISHED_JOBS
for _step in StepStatus:
    _step.settled = _step in SETTLED_STEPS

# Single transitions, as `decide` emits them; one batch may carry a job through several.
# A finished job returns to PENDING only by a manual retry, which begins a new run.
JOB_TRANSITIONS: Mapping[JobStatus, frozenset[JobStatus]] = {
    # Nothing waits, fails or completes before a first claim; only a cancel ends a job that nobody began.
    JobStatus.PENDING: frozenset({JobStatus.IN_PROGRESS, JobStatus.CANCELLED}),
    JobStatus.IN_PROGRESS: frozenset({JobStatus.WAITING, *FINISHED_JOBS}),
    JobStatus.WAITING: frozenset({JobStatus.IN_PROGRESS, *FINISHED_JOBS}),
    JobStatus.COMPLETED: frozenset({JobStatus.PENDING}),
    JobStatus.PARTIAL_SUCCESS: frozenset({JobStatus.PENDING}),
    JobStatus.FAILED: frozenset({JobStatus.PENDING}),
    JobStatus.CANCELLED: frozenset({JobStatus.PENDING}),
}

STEP_TRANSITIONS: Mapping[StepStatus, frozenset[StepStatus]] = {
    StepStatus.PENDING: frozenset({StepStatus.READY, StepStatus.SKIPPED, StepStatus.CANCELLED}),
    StepStatus.READY: frozenset({StepStatus.IN_PROGRESS, StepStatus.SKIPPED, StepStatus.CANCELLED}),
    # Back to READY: a retry, a crash, a drain, a refusal by breaker or bucket.
    StepStatus.IN_PROGRESS: frozenset({StepStatus.READY, StepStatus.WAITING, *SETTLED_STEPS}),
    StepStatus.WAITING: frozenset({StepStatus.READY, *SETTLED_STEPS}),
    # Settled steps move only by a manual retry, which begins a new run.
    StepStatus.COMPLETED: frozenset({StepStatus.PENDING}),
    StepStatus.FAILED: frozenset({StepStatus.PENDING}),
    StepStatus.SKIPPED: frozenset({StepStatus.PENDING}),
    StepStatus.CANCELLED: frozenset({StepStatus.PENDING}),
}
