"""The shipped transaction import runs from end to end, with stand-ins for the models and for its ledger."""

import re
import sys
from collections.abc import Mapping
from types import ModuleType

import pytest
from sqlalchemy import text

from docmill.plugin import ApplyContext, StepContext, processor, step
from docmill.templates.shipped import shipped_text
from docmill.testing.world import World
from tests.contract.stories import run_job

# Models and prompts have tests of their own: here only the shape of the template counts.
TEMPLATE = re.sub(r" +prompt: \w+\n", "", shipped_text("transaction-import").replace("ai.generate", "stand.in"))
METHODS = re.findall(r"processor_method: (\w+)", TEMPLATE)

ANSWER: dict[str, object] = {"document_type": "receipt", "vendor": "ACME", "net": 80.0, "tax": 20.0, "total": 100.0}


@step("stand.in", kind="ai", output="data")
async def stand_in(ctx: StepContext) -> dict[str, object]:
    """Answers as a model would, with what the test put into the job."""
    changes = ctx.metadata.get("changes", {})
    assert isinstance(changes, Mapping)
    return {"message": "read", "data": {**ANSWER, **changes}}


def write(ctx: ApplyContext, result: object) -> None:
    """Notes which step was applied."""
    ctx.db.execute("insert into applied (step_key) values (:key)", {"key": ctx.step_key})


def ledger() -> ModuleType:
    """A plug-in with a processor for each method the template names."""
    module = ModuleType("ledger")
    for method in METHODS:
        setattr(module, method, processor("transaction", method)(write))
    return module


@pytest.mark.parametrize(
    ("changes", "passed", "vendor"),
    [({}, True, "COMPLETED"), ({"total": 120.0}, False, "COMPLETED"), ({"vendor": None, "net": None}, True, "SKIPPED")],
    ids=["good", "wrong total", "no vendor"],
)
def test_the_transaction_import_runs_to_its_end(
    world: World, changes: dict[str, object], passed: bool, vendor: str
) -> None:
    with world.database.write() as connection:
        connection.execute(text("create table applied (step_key text)"))
    ended = run_job(world, TEMPLATE, sys.modules[__name__], ledger(), metadata={"changes": changes})
    assert (ended.status, ended.steps["vendor_matching"]) == ("COMPLETED", vendor)
    checks = ended.results["total_check"]
    assert isinstance(checks, dict)
    assert checks["passed"] is passed
    with world.looking() as connection:
        applied = list(connection.execute(text("select step_key from applied")).scalars())
    wanted = {"ocr", "document_parsing", "data_extraction", "budget_linking", "justification_analysis"}
    assert set(applied[:-1]) == wanted | ({"vendor_matching"} if vendor == "COMPLETED" else set())
    assert applied[-1] == "finish_processing"
    assert len(applied) == len(set(applied)), "each is applied once"
