"""`decide` and the oracle agree after every operation of random programs, and everything that can happen did happen."""

from collections import Counter
from functools import cache
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from docmill.engine.decide import decide
from docmill.engine.events import (
    Cancelled,
    Checkpointed,
    Claimed,
    Completed,
    Crashed,
    Deferred,
    Event,
    Failed,
    Released,
    Rerun,
    Skipped,
    Submitted,
    Suspended,
)
from docmill.engine.state import JobState, new_state
from docmill.model.statuses import JOB_TRANSITIONS, STEP_TRANSITIONS, FailureAction, StepKind
from docmill.templates.plan import Plan
from docmill.testing.driver import Driver
from docmill.testing.kinds import KINDS
from docmill.testing.oracle import START, Oracle
from docmill.testing.plans import plans, profile, programs
from docmill.testing.play import Play
from docmill.testing.pure import PureSystem
from docmill.testing.samples import Draft, make_plan, question_beside_work, single_step
from docmill.testing.sequences import Program

LEGAL_STEP = {(before, after) for before, afters in STEP_TRANSITIONS.items() for after in afters}
LEGAL_JOB = {(before, after) for before, afters in JOB_TRANSITIONS.items() for after in afters}


class Campaign(NamedTuple):
    """What all programs together did."""

    done: Counter[str]
    step_transitions: Counter[tuple[str, str]]
    job_transitions: Counter[tuple[str, str]]


@cache
def campaign() -> Campaign:
    """The same few hundred programs for every test of this module, run once; the driver raises at a mismatch."""
    total = Campaign(Counter(), Counter(), Counter())

    @given(programs())
    @profile(500)
    def run(program: Program) -> None:
        system = PureSystem()
        driver = Driver(system)
        driver.run(program)
        total.done.update(driver.done)
        for transition in system.transitions():
            seen = total.job_transitions if transition.position is None else total.step_transitions
            seen[transition.before, transition.after] += 1

    run()
    return total


def test_decide_agrees_with_the_oracle_and_every_job_ends() -> None:
    assert campaign().done["claim"] > 1000


def test_every_kind_of_operation_succeeded_at_least_once() -> None:
    assert KINDS - set(campaign().done) == set()


def cancelled_before_it_began() -> Play:
    play = Play(single_step())
    play.cancel()
    return play


def finish_answered_from_outside(action: FailureAction) -> Play:
    """Only a finish step that waits takes a job from WAITING straight to a good end."""
    plan = make_plan([Draft(key="a"), Draft(key="b", on_failure=action)], finish=Draft(key="f", kind=StepKind.EXTERNAL))
    play = Play(plan)
    play.run("a")
    if action is FailureAction.CONTINUE:
        play.break_("b")
    else:
        play.run("b")
    play.claim("f")
    play.suspend("f")
    play.complete("f")
    play.rerun("a")
    return play


def question_withdrawn() -> Play:
    play = Play(question_beside_work())
    play.claim("work", "ask", "hub")
    play.suspend("ask")
    play.suspend("hub")
    play.fail("work", permanent=True)
    play.fail("hub", permanent=True)
    return play


def test_every_transition_is_legal_and_every_legal_transition_is_reached() -> None:
    """Random programs reach nearly all; the rare ones have a story each, so that no seed decides."""
    stories = [
        cancelled_before_it_began(),
        finish_answered_from_outside(FailureAction.FAIL_JOB),
        finish_answered_from_outside(FailureAction.CONTINUE),
        question_withdrawn(),
    ]
    told = [transition for story in stories for transition in story.transitions]
    steps = {(t.before, t.after) for t in told if t.position is not None}
    jobs = {(t.before, t.after) for t in told if t.position is None}
    assert set(campaign().step_transitions) | steps == LEGAL_STEP
    assert set(campaign().job_transitions) | jobs == LEGAL_JOB


def raw_events(plan: Plan) -> st.SearchStrategy[Event]:
    """Any event at any moment: nobody asks whether it makes sense."""
    position = st.integers(0, plan.finish)
    epoch = st.integers(0, 3)
    truth = st.booleans()
    seconds = st.sampled_from([0.0, 2.0])
    return st.one_of(
        st.builds(Claimed, position=position, worker=st.sampled_from(["ann", "bob"])),
        st.builds(Claimed, position=position, worker=st.just("cyd")),
        st.builds(Completed, position=position, epoch=epoch, paid=truth),
        st.builds(Checkpointed, position=position, epoch=epoch, result=st.just("1")),
        st.builds(
            Failed, position=position, epoch=epoch, error=st.just("1"), permanent=truth, retry_after=st.none() | seconds
        ),
        st.builds(Skipped, position=st.integers(0, max(0, plan.finish - 1)), epoch=epoch),
        st.builds(Deferred, position=position, epoch=epoch, until=st.just(START)),
        st.builds(Suspended, position=position, epoch=epoch, deadline=st.none()),
        st.builds(Crashed, position=position, epoch=epoch),
        st.builds(Released, position=position, epoch=epoch),
        st.builds(Rerun, positions=st.frozensets(position, max_size=2), keep_checkpoints=truth),
        st.just(Submitted()),
        st.sampled_from([Submitted(), Cancelled()]),
    )


@given(st.data(), plans(max_steps=3))
@profile(150)
def test_they_agree_even_on_events_that_make_no_sense(data: st.DataObject, plan: Plan) -> None:
    """Also before the job was submitted: the oracle's job starts as bare as `new_state`."""
    oracle = Oracle()
    oracle.create("job", plan)
    state = new_state(len(plan.steps))
    for event in data.draw(st.lists(raw_events(plan), max_size=30)):
        decision = decide(plan, state, [event], oracle.now)
        assert decision.accepted == (oracle.offer("job", event),), event
        state = decision.state
        assert state == oracle.snapshot("job"), event
        assert {(t.before, t.after) for t in decision.transitions if t.position is None} <= LEGAL_JOB
        assert {(t.before, t.after) for t in decision.transitions if t.position is not None} <= LEGAL_STEP


@given(programs(), st.lists(st.booleans(), min_size=1, max_size=50))
@profile(60)
def test_any_partition_of_the_same_events_into_batches_gives_the_same_state(program: Program, cuts: list[bool]) -> None:
    """The events each job was given, one `now` after another, cut anew at random and all at once."""
    system = PureSystem()
    Driver(system).run(program)
    for job_id, plan in system.plans.items():
        given_at = [(batch.now, event) for batch in system.log[job_id] for event in batch.events]
        accepted = tuple(answer for batch in system.log[job_id] for answer in batch.decision.accepted)
        transitions = tuple(t for batch in system.log[job_id] for t in batch.decision.transitions)
        for partition in (cuts, [False], [True]):
            state: JobState = new_state(len(plan.steps))
            batch: list[Event] = []
            got_accepted: tuple[bool, ...] = ()
            got_transitions: tuple[object, ...] = ()
            for index, (now, event) in enumerate(given_at):
                batch.append(event)
                last = index + 1 == len(given_at) or given_at[index + 1][0] != now
                if last or partition[index % len(partition)]:
                    decision = decide(plan, state, batch, now)
                    state, batch = decision.state, []
                    got_accepted += decision.accepted
                    got_transitions += decision.transitions
            assert (state, got_accepted, got_transitions) == (system.states[job_id], accepted, transitions)
