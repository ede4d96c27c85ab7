"""Hypothesis strategies: random valid plans, and random programs over them. The fixed plans are in `samples`."""

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from docmill.model.statuses import FailureAction, StepKind
from docmill.templates.plan import Plan
from docmill.testing.samples import SAMPLES, Draft, make_plan
from docmill.testing.sequences import WEIGHTS, Choice, Deed, Program

# Hypothesis shrinks towards the front: a claim that finds nothing is the dullest deed there is.
_DEEDS = tuple(
    sorted((deed for deed, weight in WEIGHTS.items() for _ in range(weight)), key=lambda d: d is not Deed.CLAIM)
)

# In a grim program hardly anything succeeds: jobs in which nothing was achieved are rare otherwise.
_GRIM = tuple(Deed.FAIL if deed in (Deed.COMPLETE, Deed.JOIN, Deed.RERUN) else deed for deed in _DEEDS)

_ACTIONS = st.sampled_from(
    # Failures that do not end the job lead further; fail_job, the default, is still drawn often.
    [FailureAction.FAIL_JOB, FailureAction.SKIP_DEPENDENTS, FailureAction.SKIP_DEPENDENTS, FailureAction.CONTINUE]
)


def profile(examples: int, *, shrink: bool = True) -> settings:
    """Settings of every model test: the same examples each time, no time limit per example (slow is not wrong).

    `DOCMILL_MODEL_SCALE=20` runs twenty times as many, and other ones each time: for nightly runs and after a change.
    """
    scale = int(os.environ.get("DOCMILL_MODEL_SCALE", "1"))
    phases = (Phase.explicit, Phase.generate, Phase.shrink) if shrink else (Phase.explicit, Phase.generate)
    return settings(
        max_examples=examples * scale,
        deadline=None,
        derandomize=scale == 1,
        database=None,
        phases=phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@st.composite
def plans(draw: st.DrawFn, max_steps: int = 6) -> Plan:
    """A valid plan: groups in order, dependencies on earlier groups or inside the group, no cycle, finish step last."""
    count = draw(st.integers(0, max_steps))
    groups = sorted(draw(st.lists(st.integers(1, 3), min_size=count, max_size=count)))
    # Dependencies follow a hidden order inside each group rather than the file's, so some point at a later position.
    rank = draw(st.permutations(range(count)))
    drafts: list[Draft] = []
    for n in range(count):
        allowed = [m for m in range(count) if groups[m] < groups[n] or (groups[m] == groups[n] and rank[m] < rank[n])]
        after = draw(st.lists(st.sampled_from(allowed), unique=True, max_size=3)) if allowed else []
        drafts.append(_draft(draw, n, groups[n], tuple(f"s{m}" for m in after)))
    finish = Draft(key="finish", max_attempts=draw(st.integers(1, 2)), on_failure=draw(_ACTIONS))
    return make_plan(drafts, name="drawn", finish=finish, compensate=draw(st.booleans()))


def _draft(draw: st.DrawFn, number: int, group: int, after: tuple[str, ...]) -> Draft:
    action = draw(_ACTIONS)
    return Draft(
        key=f"s{number}",
        group=group,
        after=after,
        kind=draw(st.sampled_from(StepKind)),
        on_failure=action,
        optional=action is not FailureAction.FAIL_JOB and draw(st.booleans()),
        max_attempts=draw(st.integers(1, 3)),
        max_crashes=draw(st.integers(1, 3)),
        # Powers of two (and jitter in 64ths) keep every delay exact, so due times compare equal to the microsecond.
        backoff=draw(st.sampled_from([0.5, 8.0])),
        delay=draw(st.sampled_from([0.0, 0.0, 0.0, 16.0])),
        processor=draw(st.sampled_from([None, None, "save"])),
        compensation=draw(st.sampled_from([None, "undo"])),
    )


def choices(*, grim: bool = False) -> st.SearchStrategy[Choice]:
    """One thing to do."""
    return st.builds(Choice, st.sampled_from(_GRIM if grim else _DEEDS), st.integers(0, 63), st.integers(0, 63))


@st.composite
def programs(draw: st.DrawFn, max_choices: int = 60) -> Program:
    """One to three plans, drawn or from the samples, and what happens to jobs of them."""
    chosen = draw(st.lists(plans() | st.sampled_from(SAMPLES), min_size=1, max_size=3))
    grim = draw(st.sampled_from([False, False, True]))
    deeds = draw(st.lists(choices(grim=grim), min_size=max_choices // 3, max_size=max_choices))
    return Program(tuple(chosen), (Choice(Deed.SUBMIT), *deeds))
