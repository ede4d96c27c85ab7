"""`rule.check`: rules written in a template hold or do not, and say so."""

import asyncio
from typing import Any, cast

import pytest

from docmill.plugin import PermanentError, StepContext
from docmill.steps.check import CheckFailed, check


def checked(**input: object) -> dict[str, Any]:
    return asyncio.run(check(cast(StepContext, None), input))


def test_each_rule_is_reported_in_the_order_of_the_template() -> None:
    assert checked(second=True, first=False) == {
        "passed": False,
        "checks": [
            {"name": "second", "passed": True, "message": None},
            {"name": "first", "passed": False, "message": "first does not hold."},
        ],
    }


def test_a_check_passes_when_all_its_rules_hold() -> None:
    assert checked(a=True, b=1, c="text")["passed"] is True


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_what_does_not_hold_in_a_condition_does_not_hold_here(value: object) -> None:
    assert checked(rule=value)["passed"] is False


def test_a_broken_rule_speaks_with_the_message_the_template_gives_it() -> None:
    assert checked(sum=False, sum_message="Net and tax make 9.")["checks"] == [
        {"name": "sum", "passed": False, "message": "Net and tax make 9."}
    ]
    assert checked(sum=True, sum_message="Net and tax make 9.")["checks"][0]["message"] is None
    assert checked(sum=False, sum_message=None)["checks"][0]["message"] == "sum does not hold."


def test_a_broken_rule_fails_the_step_where_rules_must_hold() -> None:
    with pytest.raises(CheckFailed, match=r"2 of 3 checks do not hold: Too much\. b does not hold\."):
        checked(a=False, a_message="Too much.", b=False, c=True, must_hold=True)
    assert checked(a=True, must_hold=True)["passed"] is True
    assert checked(a=False, must_hold=False)["passed"] is False


def test_a_step_without_rules_or_with_a_message_of_none_says_so() -> None:
    for input in ({}, {"must_hold": True}):
        with pytest.raises(PermanentError, match="no rules"):
            checked(**input)
    with pytest.raises(PermanentError, match="`totl_message` is the message of no rule; there is no `totl`"):
        checked(total=True, totl_message="x")


def test_to_wait_for_issues_that_nobody_opens_is_refused() -> None:
    with pytest.raises(PermanentError, match="`blocking` without `open_issues`"):
        checked(total=True, blocking=True)
