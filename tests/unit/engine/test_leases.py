"""Fences, crashes and drains: who may still write, and what a dead worker costs."""

from docmill.engine.decide import decide
from docmill.engine.events import Claimed, Completed, Crashed
from docmill.model.statuses import FailureAction, JobStatus, StepStatus
from docmill.testing.oracle import START
from docmill.testing.play import Play
from docmill.testing.samples import Draft, fan_out, make_plan, single_step


def test_a_step_can_be_claimed_once() -> None:
    play = Play(single_step())
    assert play.claim("a", worker="ann")
    assert not play.claim("a", worker="bob")
    assert play.step("a").worker == "ann"


def test_the_third_crash_fails_the_step_as_worker_died() -> None:
    play = Play(single_step())
    for crashes in (1, 2):
        play.claim("a")
        assert play.crash("a")
        assert play.step("a").status is StepStatus.READY
        assert play.step("a").crashes == crashes
        assert play.due_in("a") == 0
    play.claim("a")
    play.crash("a")
    assert play.step("a").status is StepStatus.FAILED
    assert (0, "IN_PROGRESS", "FAILED", "worker_died") in play.transitions
    assert play.job() is JobStatus.FAILED


def test_a_poison_step_obeys_its_failure_action() -> None:
    play = Play(make_plan([Draft(key="a", max_crashes=1, on_failure=FailureAction.SKIP_DEPENDENTS), Draft(key="b")]))
    play.claim("a")
    play.crash("a")
    play.run("b", "finish")
    assert play.job() is JobStatus.PARTIAL_SUCCESS


def test_a_crash_uses_no_attempt() -> None:
    play = Play(make_plan([Draft(key="a", max_attempts=1)]))
    play.claim("a")
    play.crash("a")
    assert play.step("a").failures == 0
    play.run("a", "finish")
    assert play.job() is JobStatus.COMPLETED


def test_a_drain_uses_neither_attempt_nor_crash() -> None:
    play = Play(make_plan([Draft(key="a", max_attempts=1, max_crashes=1)]))
    for _ in range(5):
        play.claim("a")
        assert play.release("a")
        assert play.due_in("a") == 0
    assert (play.step("a").failures, play.step("a").crashes) == (0, 0)
    play.run("a", "finish")
    assert play.job() is JobStatus.COMPLETED


def test_a_worker_declared_dead_can_change_nothing_even_before_the_next_claim() -> None:
    play = Play(single_step())
    play.claim("a")
    old = play.step("a").epoch
    play.crash("a")
    before = play.state
    assert not play.complete("a", epoch=old)
    assert not play.fail("a", epoch=old)
    assert play.state == before


def test_a_worker_that_lost_its_lease_cannot_overwrite_its_successor() -> None:
    play = Play(single_step())
    play.claim("a", worker="ann")
    old = play.step("a").epoch
    play.crash("a")
    play.claim("a", worker="bob")
    before = play.state
    assert not play.complete("a", epoch=old)
    assert play.state == before
    assert play.complete("a")


def test_the_sweeper_cannot_undo_a_step_that_finished_in_time() -> None:
    play = Play(single_step())
    play.claim("a")
    held = play.step("a").epoch
    play.complete("a")
    assert not play.give(Crashed(position=0, epoch=held))
    assert play.step("a").status is StepStatus.COMPLETED


def test_a_step_given_back_cannot_be_reported_by_its_former_holder() -> None:
    for give_back in (Play.release, Play.fail):
        play = Play(single_step())
        play.claim("a")
        give_back(play, "a")
        assert not play.complete("a")
        assert play.step("a").status is StepStatus.READY


def test_the_same_completion_twice_is_no_news_and_no_loss() -> None:
    play = Play(single_step())
    play.claim("a")
    play.complete("a")
    before = play.state
    assert play.complete("a")
    assert play.state == before


def test_a_crash_keeps_the_checkpoint() -> None:
    play = Play(single_step())
    play.claim("a")
    assert play.checkpoint("a")
    play.crash("a")
    assert play.step("a").checkpointed


def test_two_siblings_finishing_in_one_batch_join_once() -> None:
    play = Play(fan_out(2))
    play.claim("s0", "s1")
    decision = decide(play.plan, play.state, [Completed(position=0, epoch=1), Completed(position=1, epoch=1)], START)
    assert decision.accepted == (True, True)
    assert [t for t in decision.transitions if t.position == play.plan.finish] == [(2, "PENDING", "READY", None)]


def test_a_step_may_be_claimed_in_the_batch_that_completed_its_predecessor() -> None:
    play = Play(single_step())
    play.claim("a")
    decision = decide(play.plan, play.state, [Completed(position=0, epoch=1), Claimed(position=1, worker="ann")], START)
    assert decision.accepted == (True, True)
    assert decision.state.steps[1].status is StepStatus.IN_PROGRESS


def test_a_waiting_step_belongs_to_no_worker_and_cannot_crash() -> None:
    play = Play(single_step())
    play.claim("a")
    play.suspend("a", deadline=START)
    assert play.job() is JobStatus.WAITING
    assert play.step("a").worker is None
    assert not play.crash("a")
    assert not play.release("a")
    assert not play.checkpoint("a")
    assert play.suspend("a")
    assert play.step("a").deadline == START


def test_an_answer_completes_a_waiting_step_once_and_repeats_are_harmless() -> None:
    play = Play(single_step())
    play.claim("a")
    play.suspend("a")
    assert play.complete("a")
    before = play.state
    assert play.complete("a")
    assert play.state == before


def test_a_failed_answer_is_retried_and_the_old_token_no_longer_opens() -> None:
    play = Play(single_step())
    play.claim("a")
    play.suspend("a")
    old = play.step("a").epoch
    play.fail("a", retry_after=0)
    assert play.step("a").status is StepStatus.READY
    play.claim("a")
    play.suspend("a")
    assert not play.complete("a", epoch=old)
    assert play.complete("a")


def test_a_job_waits_only_while_nothing_else_can_run() -> None:
    play = Play(fan_out(2))
    play.claim("s0")
    play.suspend("s0")
    assert play.job() is JobStatus.IN_PROGRESS
    play.run("s1")
    assert play.job() is JobStatus.WAITING
    play.complete("s0")
    assert play.job() is JobStatus.IN_PROGRESS
