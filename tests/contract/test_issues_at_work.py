"""Issues with a real worker: raised by steps and processors, answered by people, applied exactly once."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from docmill.db.tables import jobs as jobs_table
from docmill.model.issues import IssueAction, IssueSeverity
from docmill.services.retrying import Retry
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.waiting import until
from docmill.testing.world import World
from tests.contract.questioning import Mill, child_template, computed, working


@pytest.fixture
def mill(world: World) -> Iterator[Mill]:
    mill = Mill(world)
    yield mill
    mill.close()


def test_a_corrected_value_reaches_the_next_step_and_is_applied_exactly_once(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: validate\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        (issue,) = mill.open_issues(job_id)
        assert (issue.code, issue.details, issue.step_key) == ("total_mismatch", {"sum": 110}, "check")
        assert (issue.severity, issue.blocking, issue.corrects) == (IssueSeverity.ERROR, True, True)
        assert mill.saved() == []
        mill.issues.resolve(issue.id, {"total": 110}, by="ann")
        mill.reaches(job_id, "COMPLETED")
    assert mill.saved() == [110]
    assert mill.result(job_id, "after") == {"seen": 110}
    assert computed[job_id] == 1
    assert mill.open_issues(job_id) == []


def test_without_a_processor_the_answer_completes_the_step_and_submits_what_it_wanted(world: World, mill: Mill) -> None:
    child = compile_template(
        "name: child\nprocessable_type: document\nsteps:\n  - {step_key: finish, type: FinishProcessing}\n",
        catalogue=Catalogue.permissive(),
        source="child",
    )
    world.template(child.plan)
    job_id = mill.submit("type: validate paid")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, {"total": 110})
        mill.reaches(job_id, "COMPLETED")
        with world.looking() as connection:
            children = select(jobs_table.c.entity_id).where(jobs_table.c.parent_job_id == job_id)
            assert list(connection.execute(children).scalars()) == [f"{job_id}-child"]
    assert mill.result(job_id) == {"total": 110, "lines": 2}


def children(world: World, job_id: str) -> list[str]:
    with world.looking() as connection:
        query = select(jobs_table.c.entity_id).where(jobs_table.c.parent_job_id == job_id)
        return list(connection.execute(query).scalars())


def test_who_is_asked_about_an_item_can_have_it_done_again_and_the_others_stay_done(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: read pages\nfor_each: \"['p1', 'p2', 'p3']\"")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, action="retry")
        mill.reaches(job_id, "COMPLETED")
    assert computed[job_id] == 4


def test_follow_ups_are_those_of_the_compute_whose_result_was_answered(world: World, mill: Mill) -> None:
    child_template(world)
    job_id = mill.submit("type: undecided")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, action="retry")
        until(lambda: computed[job_id] == 2, 30.0, what="the second compute")
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id)
        mill.reaches(job_id, "COMPLETED")
        assert children(world, job_id) == [f"{job_id}-2"]


def test_follow_ups_of_a_result_that_is_applied_only_in_a_later_run_are_submitted_then_and_once(
    world: World, mill: Mill
) -> None:
    child_template(world)
    job_id = mill.submit("type: validate paid\nprocessor_method: mended")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id)
        mill.reaches(job_id, "FAILED")
        assert children(world, job_id) == []
        mill.jobs.retry(job_id)
        mill.reaches(job_id, "COMPLETED")
        assert children(world, job_id) == [f"{job_id}-child"]
        until(lambda: not mill.jobs.active("document", f"{job_id}-child"), 30.0, what="the follow-up to end")
        mill.jobs.retry(job_id, Retry(everything=True))
        until(
            lambda: world.job(job_id).run == 3 and world.job(job_id).status == "COMPLETED", 30.0, what="the third run"
        )
        assert children(world, job_id) == [f"{job_id}-child"]
    assert computed[job_id] == 1


def test_an_issue_that_does_not_block_does_not_stop_the_job(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark")
    with working(world):
        mill.reaches(job_id, "COMPLETED")
    (issue,) = mill.open_issues(job_id)
    assert (issue.code, issue.severity, issue.blocking) == ("blurred", IssueSeverity.WARNING, False)


def test_several_blocking_issues_are_all_answered_before_the_step_goes_on(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: two questions\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        worst, other = mill.open_issues(job_id)
        assert (worst.code, other.code) == ("vendor_unknown", "total_mismatch")
        mill.issues.resolve(worst.id, {"vendor": "ACME"})
        assert world.job(job_id).status == "WAITING"
        mill.issues.resolve(other.id, {"total": 7})
        mill.reaches(job_id, "COMPLETED")
    assert mill.result(job_id) == {"total": 7, "vendor": "ACME"}
    assert mill.saved() == [7]


def test_a_broken_rule_of_a_template_opens_an_issue_that_blocks_and_its_answer_flows_back(
    world: World, mill: Mill
) -> None:
    rules = "odd: '1 > 2', odd_message: \"'One is less.'\", even: 'true'"
    asked = "open_issues: \"'critical'\", blocking: 'true'"
    job_id = mill.submit(f"type: rule.check\ninput: {{{rules}, {asked}}}")
    with working(world):
        mill.reaches(job_id, "WAITING")
        (issue,) = mill.open_issues(job_id)
        assert (issue.code, issue.title, issue.severity) == ("odd", "One is less.", IssueSeverity.CRITICAL)
        assert (issue.blocking, issue.step_key) == (True, "check")
        mill.issues.resolve(issue.id, {"total": 110})
        mill.reaches(job_id, "COMPLETED")
    assert mill.result(job_id, "after") == {"seen": 110}


def test_a_broken_rule_that_does_not_block_opens_an_issue_and_one_that_opens_none_only_reports(
    world: World, mill: Mill
) -> None:
    told = mill.submit("type: rule.check\ninput: {odd: '1 > 2', open_issues: 'true'}")
    silent = mill.submit("type: rule.check\ninput: {odd: '1 > 2'}")
    with working(world):
        mill.reaches(told, "COMPLETED")
        mill.reaches(silent, "COMPLETED")
    (issue,) = mill.open_issues(told)
    assert (issue.code, issue.severity, issue.blocking) == ("odd", IssueSeverity.ERROR, False)
    assert mill.open_issues(silent) == []


def test_a_step_that_runs_again_knows_what_was_said(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: validate\nprocessor_method: save")
    with working(world):
        mill.reaches(job_id, "WAITING")
        mill.issues.resolve(mill.open_issues(job_id)[0].id, {"hint": 3}, action=IssueAction.RETRY)
        mill.reaches(job_id, "COMPLETED")
    assert mill.result(job_id) == {
        "total": 100,
        "lines": 2,
        "resolutions": [["total_mismatch", "retry", {"hint": 3}]],
    }
    assert (computed[job_id], mill.saved()) == (2, [100])


def test_a_human_task_asks_for_what_its_schema_says(world: World, mill: Mill) -> None:
    job_id = mill.submit(
        """type: human.task
answer_within: 2d
input: {title: "'Enter the total of ' + metadata.name", severity: "'critical'", assigned_to: "'ann'", page: 3}
output_schema: {type: object, properties: {total: {type: number}}, required: [total]}
processor_method: save"""
    )
    with working(world):
        mill.reaches(job_id, "WAITING")
        (issue,) = mill.open_issues(job_id)
        granted = world.steps(job_id)["check"].deadline_at - issue.created_at
        assert abs(granted.total_seconds() - 2 * 86400) < 60
        assert (issue.code, issue.assigned_to, issue.details) == ("task", "ann", {"page": 3})
        assert (issue.severity, issue.corrects) == (IssueSeverity.CRITICAL, False)
        assert issue.title.startswith("Check"), "no title came of the expression: the step's key and what it is about"
        mill.issues.resolve(issue.id, {"total": 12})
        mill.reaches(job_id, "COMPLETED")
    assert (mill.result(job_id), mill.saved()) == ({"total": 12}, [12])


def test_a_processor_opens_an_issue_with_what_it_writes(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark\nprocessor_method: save and remark")
    with working(world):
        mill.reaches(job_id, "COMPLETED")
    assert [issue.code for issue in mill.open_issues(job_id)] == ["blurred", "saved_twice"]
    assert mill.saved() == [100]


def test_a_processor_cannot_wait_for_a_person(world: World, mill: Mill) -> None:
    job_id = mill.submit("type: remark\nprocessor_method: block")
    with working(world):
        mill.reaches(job_id, "FAILED")
    error = world.steps(job_id)["check"].error
    assert error["code"] == "permanent"
    assert "a processor cannot wait for a person" in error["message"]
    assert mill.saved() == []
