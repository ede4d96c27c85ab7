"""`rule.check` in a job: its rules see the entity as it is, and a broken one fails the job if the template says so."""

import sys
from collections.abc import Mapping

import pytest

from docmill.plugin import Database, entity_loader
from docmill.testing.world import World
from tests.contract.stories import run_job

TEMPLATE = """\
name: checked
processable_type: receipt
steps:
  - step_key: totals
    type: rule.check
    input:
      adds_up: round(entity.net + entity.tax, 2) == entity.total
      adds_up_message: "'Net and tax make ' + text(entity.net + entity.tax) + '.'"
      has_vendor: exists(entity.vendor)
      must_hold: metadata.strict
  - {step_key: ask, type: rule.check, depends_on: [totals], condition: not results.totals.passed, input: {asked: true}}
  - {step_key: finish, type: FinishProcessing}
"""
CHECKS = [
    {"name": "adds_up", "passed": False, "message": "Net and tax make 9."},
    {"name": "has_vendor", "passed": True, "message": None},
]


@entity_loader("receipt")
def load_receipt(db: Database, entity_id: str) -> Mapping[str, object]:
    """A receipt that does not add up."""
    return {"net": 7, "tax": 2, "total": 10, "vendor": "ACME"}


@pytest.mark.parametrize("strict", [False, True], ids=["reports", "fails"])
def test_a_broken_rule_is_reported_or_fails_the_job_as_the_template_says(world: World, strict: bool) -> None:
    ended = run_job(world, TEMPLATE, sys.modules[__name__], metadata={"strict": strict})
    if strict:
        error = world.steps(ended.job_id)["totals"].error
        assert (ended.status, ended.steps["ask"]) == ("FAILED", "SKIPPED")
        assert (error["code"], error["attempt"]) == ("check_failed", 1)
        assert error["message"] == "1 of 2 checks do not hold: Net and tax make 9."
    else:
        assert (ended.status, ended.steps["ask"]) == ("COMPLETED", "COMPLETED")
        assert ended.results["totals"] == {"passed": False, "checks": CHECKS}
