"""What a resolution does to the step that waits, and what becomes of issues whose wait is over."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from docmill.engine import failpoints
from docmill.engine.batch import Batch, Report
from docmill.engine.events import Cancelled, Completed, Failed, Suspended
from docmill.engine.issues import NewIssue
from docmill.model.errors import DatabaseUnavailable, NotFound
from docmill.model.ids import new_id
from docmill.model.issues import IssueAction, IssueStatus
from docmill.model.statuses import StepKind
from docmill.services.issues import Issues
from docmill.services.resolving import (
    AlreadyResolved,
    AnswerUnused,
    IssueWithdrawn,
    merged,
)
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World, lease
from tests.contract.asking import ask, blocking, plan, step
from tests.contract.bells import CountingBell


def test_a_resolution_corrects_the_result_and_the_job_goes_on(world: World, issues: Issues, bell: CountingBell) -> None:
    issue = blocking()
    run = ask(world, issue)
    assert world.job(run.job.id).status == "WAITING"
    view = issues.resolve(issue.id, {"total": 110}, by="ann", note="as printed")
    assert (view.status, view.action, view.data) == (IssueStatus.RESOLVED, IssueAction.CONTINUE, {"total": 110})
    assert (view.resolved_by, view.note) == ("ann", "as printed")
    assert view.resolved_at is not None
    assert (step(world, run).status, step(world, run).result) == ("COMPLETED", {"total": 110, "tax": 2})
    assert bell.heard == {"system"}, "whoever runs the finish step hears of it"
    world.run_to_end()
    assert world.job(run.job.id).status == "COMPLETED"


def test_an_answer_to_a_step_with_a_processor_is_still_to_be_applied(
    world: World, issues: Issues, bell: CountingBell
) -> None:
    issue = blocking()
    run = ask(world, issue, of=plan(processor="save"))
    issues.resolve(issue.id, {"total": 110})
    found = step(world, run)
    assert (found.status, found.checkpointed, found.result) == ("READY", True, {"total": 110, "tax": 2})
    assert bell.heard == {"rule"}


def test_without_data_the_result_is_accepted_as_it_is(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    issues.resolve(issue.id)
    assert step(world, run).result == {"total": 1, "tax": 2}


def test_the_answer_to_a_plain_question_is_the_whole_result(world: World, issues: Issues) -> None:
    issue = blocking(corrects=False)
    run = ask(world, issue, result='{"note": "what was remembered while waiting"}')
    issues.resolve(issue.id, {"approved": True})
    assert step(world, run).result == {"approved": True}


@pytest.mark.parametrize(
    ("result", "answers", "expected"),
    [
        ({"a": 1, "b": {"c": 2}}, [{"b": {"d": 3}}], {"a": 1, "b": {"d": 3}}),
        ({"a": 1}, [{"a": 2}, None, {"a": 3}], {"a": 3}),
        ([1, 2], [{"a": 1}], {"a": 1}),
        ({"a": 1}, [7], 7),
        (None, [None], None),
        ("kept", [None], "kept"),
        (None, [False], False),
    ],
)
def test_answers_are_laid_over_the_result(result: object, answers: list[object], expected: object) -> None:
    assert merged(result, answers) == expected


def test_a_step_goes_on_when_the_last_of_its_issues_is_resolved(world: World, issues: Issues) -> None:
    first, second, remark = blocking(1), blocking(2), NewIssue(id=new_id(), code="remark", title="By the way")
    run = ask(world, first, second, remark)
    issues.resolve(second.id, {"tax": 20, "total": 120})
    assert step(world, run).status == "WAITING"
    issues.resolve(first.id, {"total": 110})
    assert step(world, run).result == {"total": 110, "tax": 20}, "who comes last wins"
    assert issues.get(remark.id).status is IssueStatus.OPEN, "what does not block is looked at whenever"


def test_retry_runs_the_step_again_and_uses_no_attempt(world: World, issues: Issues) -> None:
    first, second = blocking(1), blocking(2)
    run = ask(world, first, second)
    issues.resolve(first.id, action=IssueAction.RETRY)
    assert (step(world, run).status, step(world, run).failures, step(world, run).checkpointed) == ("READY", 0, False)
    assert issues.get(second.id).status is IssueStatus.WITHDRAWN
    again = world.claim_one(queue="rule")
    assert (again.state.epoch, again.state.checkpointed) == (2, False)


def test_fail_fails_the_step_for_good_and_says_who_rejected_it(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    issues.resolve(issue.id, action=IssueAction.FAIL, by="ann", note="not our invoice")
    assert step(world, run).error == {
        "code": "issue_rejected",
        "message": "Rejected by ann: not our invoice",
        "attempt": 1,
    }
    assert (step(world, run).status, world.job(run.job.id).status) == ("FAILED", "FAILED")


def test_two_who_resolve_the_last_two_issues_at_once_do_not_both_leave_it_to_the_other(
    world: World, issues: Issues
) -> None:
    for _ in range(10):
        first, second = blocking(1), blocking(2)
        run = ask(world, first, second)
        barrier = Barrier(2)

        def resolve(issue: NewIssue, key: str, barrier: Barrier = barrier) -> None:
            barrier.wait(30)
            issues.resolve(issue.id, {key: 9})

        with ThreadPoolExecutor(2) as people:
            for done in [people.submit(resolve, first, "total"), people.submit(resolve, second, "tax")]:
                done.result(30)
        assert step(world, run).result == {"total": 9, "tax": 9}


@pytest.mark.parametrize("ending", ["cancel", "deadline", "other step"])
def test_an_issue_whose_job_no_longer_waits_is_withdrawn(world: World, issues: Issues, ending: str) -> None:
    issue = blocking()
    beside = make_plan([Draft(key="check", kind=StepKind.RULE, max_attempts=1), Draft(key="other")])
    run = ask(world, issue, of=beside)
    if ending == "cancel":
        world.report(run.job.id, Cancelled())
    elif ending == "deadline":
        world.report(run.job.id, Failed(**lease(run), error='{"code":"deadline_passed"}'))
    else:
        other = world.claim_one()
        world.report(run.job.id, Failed(**lease(other), error="{}", permanent=True))
    status = "CANCELLED" if ending == "cancel" else "FAILED"
    with pytest.raises(IssueWithdrawn, match=f"is {status} and no longer waits"):
        issues.resolve(issue.id, {"total": 1})
    assert world.job(run.job.id).status == status


def test_a_question_that_comes_after_the_job_failed_is_never_open(world: World, issues: Issues) -> None:
    issue = blocking()
    job_id = world.submit(make_plan([Draft(key="check", kind=StepKind.RULE), Draft(key="other")]))
    run, other = world.claim_one(queue="rule"), world.claim_one()
    world.report(job_id, Failed(**lease(other), error="{}", permanent=True))
    late = Report(job_id=job_id, event=Suspended(**lease(run), deadline=None), issues=(issue,))
    assert world.commit(Batch(reports=[late])).accepted == (True,)
    assert issues.get(issue.id).status is IssueStatus.WITHDRAWN


def test_an_answer_from_elsewhere_withdraws_what_is_still_open(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    world.report(run.job.id, Completed(**lease(run), result='{"total": 5}'))
    with pytest.raises(IssueWithdrawn):
        issues.resolve(issue.id)
    assert step(world, run).result == {"total": 5}


def test_an_open_issue_of_another_wait_is_no_answer_to_this_one(world: World, issues: Issues) -> None:
    """Nothing leaves such a row behind; if something did, it must not answer what it was not asked."""
    run = ask(world, blocking())
    stray = blocking()
    world.commit(Batch(reports=[Report(job_id=run.job.id, event=Suspended(**lease(run), deadline=None))]))
    world.report(run.job.id, Cancelled())
    late = Report(job_id=run.job.id, event=Completed(position=1, epoch=9), issues=(stray,))
    assert world.commit(Batch(reports=[late])).accepted == (False,)
    with pytest.raises(NotFound):
        issues.resolve(stray.id)


def test_an_issue_that_does_not_block_is_resolved_without_data(world: World, issues: Issues) -> None:
    remark = NewIssue(id=new_id(), code="remark", title="By the way")
    run = ask(world, blocking(), remark)
    for wrong in ({"data": {"a": 1}}, {"action": IssueAction.RETRY}, {"action": IssueAction.FAIL}):
        with pytest.raises(AnswerUnused, match="does not block"):
            issues.resolve(remark.id, **wrong)
    assert issues.resolve(remark.id, note="seen").status is IssueStatus.RESOLVED
    assert step(world, run).status == "WAITING"
    with pytest.raises(AlreadyResolved):
        issues.resolve(remark.id)


def test_a_resolution_whose_commit_was_done_but_never_confirmed_is_not_refused(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    lost: list[str] = []

    def lose(point: str) -> None:
        if point == "resolve.stored" and not lost:
            lost.append(point)
            raise DatabaseUnavailable("The answer was lost.")

    failpoints.hook(lose)
    try:
        assert issues.resolve(issue.id, {"total": 7, "lines": (3, 4)}, by="ann").status is IssueStatus.RESOLVED
    finally:
        failpoints.hook(None)
    assert lost
    assert step(world, run).result == {"total": 7, "tax": 2, "lines": [3, 4]}
