"""What cannot be answered, or not any more, or not like this: every refusal of an issue by its name."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from docmill.db.tables import issues as table
from docmill.engine.events import Cancelled
from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.ids import new_id
from docmill.model.issues import IssueAction, IssueStatus
from docmill.services.issues import Issues
from docmill.services.resolving import (
    AlreadyResolved,
    AnswerInvalid,
    AnswerUnused,
    NotWaiting,
)
from docmill.testing.world import OTHER_ORG, World
from tests.contract.asking import ask, blocking, plan, step
from tests.contract.bells import CountingBell

TOTAL = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


def test_data_that_does_not_fit_is_refused_with_place_and_rule(world: World, issues: Issues) -> None:
    issue = blocking(answer_schema=TOTAL)
    run = ask(world, issue)
    for data, place in [({"total": "many"}, r"\$\.total: .*properties/total/type"), ({}, "required"), (None, "null")]:
        with pytest.raises(AnswerInvalid, match=place):
            issues.resolve(issue.id, data)
    assert step(world, run).status == "WAITING"
    assert issues.get(issue.id).status is IssueStatus.OPEN
    issues.resolve(issue.id, {"total": 3})
    assert step(world, run).status == "COMPLETED"


def test_a_result_that_would_not_fit_its_output_schema_is_refused(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue, of=plan(schema=TOTAL), result='{"total": null}')
    with pytest.raises(AnswerInvalid, match=r"the result of check does not fit: \$\.total"):
        issues.resolve(issue.id, {"tax": 1})
    assert issues.get(issue.id).status is IssueStatus.OPEN
    issues.resolve(issue.id, {"total": 4})
    assert step(world, run).result == {"total": 4}


def test_an_issue_is_resolved_once(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    issues.resolve(issue.id, {"total": 1}, by="ann")
    with pytest.raises(AlreadyResolved, match=r"resolved by ann at \d{4}-"):
        issues.resolve(issue.id, {"total": 2}, by="bob")
    assert step(world, run).result == {"total": 1, "tax": 2}


def test_of_two_who_resolve_at_the_same_moment_one_is_told_so(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    barrier = Barrier(2)

    def resolve(total: int) -> str:
        barrier.wait(30)
        try:
            issues.resolve(issue.id, {"total": total}, by=str(total))
        except Conflict as error:
            return error.code
        return str(total)

    with ThreadPoolExecutor(2) as people:
        answers = sorted(people.map(resolve, [1, 2]))
    winner, loser = answers
    assert loser == "already_resolved"
    assert step(world, run).result["total"] == int(winner)


def test_data_beside_a_failure_has_no_use(world: World, issues: Issues) -> None:
    issue = blocking()
    ask(world, issue)
    with pytest.raises(AnswerUnused, match="say why in the note"):
        issues.resolve(issue.id, {"total": 1}, action=IssueAction.FAIL)


@pytest.mark.parametrize("issue_id", [new_id(), "nonsense", ""], ids=["unknown", "word", "empty"])
def test_an_unknown_issue_is_not_found_whatever_is_asked(issues: Issues, issue_id: str) -> None:
    asks: list[Callable[[str], object]] = [issues.get, issues.resolve, issues.unassign]
    asks += [lambda id_: issues.assign(id_, "ann"), lambda id_: issues.list(after=id_)]
    for ask_for in asks:
        with pytest.raises(NotFound, match="issues list"):
            ask_for(issue_id)


def test_the_issue_of_another_organisation_is_not_found(world: World, bell: CountingBell, issues: Issues) -> None:
    issue = blocking()
    ask(world, issue)
    theirs = Issues(world.database, bell, OTHER_ORG)
    assert theirs.list() == []
    with pytest.raises(NotFound):
        theirs.resolve(issue.id)
    assert issues.get(issue.id.upper()).id == issue.id


@pytest.mark.parametrize("data", [{"a": "\0"}, {"a": object()}, "\ud800"], ids=["nul", "object", "surrogate"])
def test_data_that_no_database_could_keep_is_refused(world: World, issues: Issues, data: object) -> None:
    issue = blocking()
    ask(world, issue)
    with pytest.raises(InvalidInput, match="resolution"):
        issues.resolve(issue.id, data)


def test_a_wait_that_is_over_without_a_trace_is_named(world: World, issues: Issues) -> None:
    """The epoch is the fence for people too: an issue left open by hand answers nothing."""
    issue = blocking()
    run = ask(world, issue)
    world.report(run.job.id, Cancelled())
    with world.database.write() as connection:
        connection.execute(table.update().where(table.c.id == issue.id).values(status="open"))
    with pytest.raises(NotWaiting, match="no longer waits"):
        issues.resolve(issue.id)
    assert issues.get(issue.id).status is IssueStatus.OPEN
