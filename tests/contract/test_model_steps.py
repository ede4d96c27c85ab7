"""Steps that ask models, through a whole worker: the model and tokens that each attempt gets, and what is kept."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select

import docmill.ai.local
import docmill.steps.finish
import docmill.steps.generate
from docmill.ai.budget import Budget, Span
from docmill.ai.gateway import Gateway
from docmill.ai.rules import Rules
from docmill.db.tables import ai_calls
from docmill.engine.lease import LeaseSettings
from docmill.engine.worker import Worker, WorkerSettings
from docmill.model.ai import Answer, FinishReason
from docmill.model.ai_errors import ModelRateLimited, ModelTimeout, ModelUnavailable
from docmill.plugin import Database, Registry, StepContext, entity_loader, step
from docmill.prompts.store import Prompts, resolve
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.scripted import Line, Script, Scripted
from docmill.testing.waiting import until
from docmill.testing.world import World

CUT = Answer(text='{"total": 1', input_tokens=10, output_tokens=8000, finish=FinishReason.LENGTH)
WHOLE = Answer(text='{"total": 12}', input_tokens=10, output_tokens=5)
PROMPT = "what is the total of 7?"
SCHEMA = "{type: object, required: [total], properties: {total: {type: number}}}"


@step("tests.unschooled", kind="ai")
async def unschooled(ctx: StepContext) -> dict[str, object]:
    """Knows nothing of its schema until its third attempt."""
    return {"total": 1 if ctx.attempt == 3 else "one"}


@entity_loader("document")
def load(db: Database, entity_id: str) -> dict[str, object]:
    """What prompts may name."""
    return {"number": 7}


@contextmanager
def serving(world: World, script: Script, **rules: Any) -> Iterator[Scripted]:
    """A worker with a scripted model, which answers for all bare names."""
    model = Scripted(script)
    registry = Registry()
    for module in (docmill.steps.finish, docmill.steps.generate, docmill.ai.local):
        registry.add_module(module)
    for spec in (*unschooled.__dict__["__docmill__"], *load.__dict__["__docmill__"]):
        registry.add(spec)
    registry.add(model.provider())
    rules = {"provider": "scripted", "rate": 1e6, "burst": 1000, **rules}
    gateway = Gateway(world.database, registry.providers, Rules(**rules))
    lease = LeaseSettings(duration=60.0, heartbeat=0.2, sweep=0.1)
    settings = WorkerSettings(run_dir=world.run_dir, lease=lease, drain_seconds=5.0)
    Prompts(world.database).put("total", "what is the total of {!entity.number}?")
    worker = Worker(world.database, registry, settings, resolve, models=gateway)
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            yield model
        finally:
            if not end.done():
                worker.stop()
            end.result(60)
            gateway.close()


def template(step_type: str = "ai.generate", **settings: str) -> str:
    """A template of one step that asks, and tries again at once."""
    more = "".join(f"    {key}: {value}\n" for key, value in settings.items())
    return f"""
name: asking
processable_type: document
steps:
  - step_key: ask
    type: {step_type}
    kind: ai
    backoff: 0.001
    prompt: total
{more}  - {{step_key: finish, type: FinishProcessing}}
"""


def submitted(world: World, source: str) -> str:
    plan = compile_template(source, catalogue=Catalogue.permissive(), source="asking").plan
    return world.submit(plan)


def finished(world: World, job_id: str) -> str:
    """How the job ended."""
    until(lambda: world.job(job_id).finished_at is not None, 60.0, what="the job to end")
    return str(world.job(job_id).status)


def calls(world: World) -> Sequence[Any]:
    with world.looking() as connection:
        return connection.execute(select(ai_calls).order_by(ai_calls.c.id)).all()


ORIGINAL = "gemini-1.5-pro"
# Model and max_tokens of each attempt, as the specification of retries tabulates them, row by row.
TABLES: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "Model Switching": (
        "{switch_models: [claude-3-opus, gpt-4-turbo]}",
        [
            (ORIGINAL, 8000),
            ("claude-3-opus", 8000),
            ("gpt-4-turbo", 8000),
            (ORIGINAL, 8000),
            ("claude-3-opus", 8000),
            ("gpt-4-turbo", 8000),
        ],
    ),
    "Max Tokens Adjustment": (
        "{raise_max_tokens_by: 2000}",
        [(ORIGINAL, 8000), (ORIGINAL, 10000), (ORIGINAL, 12000), (ORIGINAL, 14000), (ORIGINAL, 16000)],
    ),
    "Combined Configuration": (
        "{switch_models: [claude-3-opus], raise_max_tokens_by: 2000}",
        [
            (ORIGINAL, 8000),
            ("claude-3-opus", 10000),
            (ORIGINAL, 12000),
            ("claude-3-opus", 14000),
        ],
    ),
}
ROWS = [
    pytest.param(action, expected[: row + 1], id=f"{name}, {f'retry {row}' if row else 'initial attempt'}")
    for name, (action, expected) in TABLES.items()
    for row in range(len(expected))
]


@pytest.mark.parametrize(("action", "expected"), ROWS)
def test_each_attempt_has_the_model_and_the_tokens_of_its_row(
    world: World, action: str, expected: list[tuple[str, int]]
) -> None:
    source = template(
        model_config=f"{{model: {ORIGINAL}, max_tokens: 8000}}",
        max_attempts=str(len(expected)),
        on_retry_action=action,
        output_schema=SCHEMA,
    )
    answers = iter([CUT] * (len(expected) - 1) + [WHOLE])
    with serving(world, lambda call: next(answers)) as model:
        job_id = submitted(world, source)
        assert finished(world, job_id) == "COMPLETED"
    assert [(call.model, call.max_tokens) for call in model.calls] == expected
    rows = calls(world)
    assert [(row.attempt, row.model) for row in rows] == [(n, name) for n, (name, _) in enumerate(expected, 1)]
    assert [row.error_code for row in rows] == ["output_truncated"] * (len(expected) - 1) + [None]
    # The truncated answers were paid for as well.
    assert all(row.cost_nanos > 0 for row in rows)


def test_the_result_of_asking_has_the_text_the_data_and_what_it_took(world: World) -> None:
    source = template(model_config="{model: gpt-4-turbo, max_tokens: 100, temperature: 0}", output_schema=SCHEMA)
    with serving(world, {"gpt-4-turbo": [WHOLE]}) as model:
        job_id = submitted(world, source)
        assert finished(world, job_id) == "COMPLETED"
    assert world.steps(job_id)["ask"].result == {
        "message": '{"total": 12}',
        "data": {"total": 12},
        "model": "scripted:gpt-4-turbo",
        "tokens": {"input": 10, "output": 5},
        "cost": pytest.approx(0.00025),
    }
    (call,) = model.calls
    assert (call.prompt, call.temperature) == (PROMPT, 0.0)
    (row,) = calls(world)
    assert (row.job_id, row.step_key, row.position, row.attempt) == (job_id, "ask", 0, 1)
    assert row.prompt_id == Prompts(world.database).get("total").id


def test_the_local_model_needs_nothing(world: World) -> None:
    with serving(world, {}):
        job_id = submitted(world, template(model_config="{model: 'local:echo'}"))
        assert finished(world, job_id) == "COMPLETED"
    result = world.steps(job_id)["ask"].result
    assert (result["message"], result["data"], result["cost"]) == (PROMPT, None, 0.0)
    assert [(row.provider, row.cost_nanos, row.outcome) for row in calls(world)] == [("local", 0, "answered")]


BAD: dict[str, Line] = {
    "truncated": CUT,
    "truncated but parses": Answer(text='{"total": 1}', input_tokens=1, output_tokens=1, finish=FinishReason.LENGTH),
    "malformed": "{total: 12",
    "against its schema": {"total": "twelve"},
    "refused": Answer(text="no", input_tokens=1, output_tokens=1, finish=FinishReason.REFUSED),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_never_kept(world: World, name: str) -> None:
    source = template(model_config="{model: m}", output_schema=SCHEMA, max_attempts="2")
    with serving(world, {"m": [BAD[name]]}) as model:
        job_id = submitted(world, source)
        assert finished(world, job_id) == "FAILED"
    found = world.steps(job_id)["ask"]
    assert found.result is None
    assert not found.checkpointed
    assert found.error["code"].startswith("output_")
    assert len(model.calls) == len(calls(world)) == 2


def test_an_output_against_the_schema_of_any_step_fails_the_attempt_and_names_place_and_rule(world: World) -> None:
    source = template("tests.unschooled", output_schema=SCHEMA, max_attempts="2")
    with serving(world, {}):
        failing = submitted(world, source)
        assert finished(world, failing) == "FAILED"
        completing = submitted(world, source.replace("max_attempts: 2", "max_attempts: 3"))
        assert finished(world, completing) == "COMPLETED"
    error = world.steps(failing)["ask"].error
    assert error["code"] == "output_invalid"
    assert "$.total" in error["message"]
    assert "properties/total/type" in error["message"]
    assert world.steps(completing)["ask"].result == {"total": 1}


def due_after(world: World, job_id: str) -> float:
    found = world.steps(job_id)["ask"]
    seconds: float = (found.due_at - world.job(job_id).created_at).total_seconds()
    return seconds


def waiting(world: World, job_id: str, ready: Callable[[Any], bool]) -> None:
    def looked() -> bool:
        found = world.steps(job_id).get("ask")
        return found is not None and found.status == "READY" and ready(found)

    until(looked, 60.0, what="the step to wait")


def test_a_429_is_an_attempt_and_its_retry_after_is_honoured(world: World) -> None:
    with serving(world, {"m": [ModelRateLimited("Slow down.", retry_after=3600.0)]}) as model:
        job_id = submitted(world, template(model_config="{model: m}"))
        waiting(world, job_id, lambda found: found.failures == 1)
        assert 3590 < due_after(world, job_id) < 3700
        assert len(model.calls) == 1


@pytest.mark.parametrize("error", [ModelTimeout("No answer."), ModelRateLimited("Slow down.")], ids=["timeout", "429"])
def test_a_model_that_times_out_or_is_busy_is_asked_again_after_the_backoff(world: World, error: Exception) -> None:
    with serving(world, {"m": [error]}) as model:
        job_id = submitted(world, template(model_config="{model: m}").replace("backoff: 0.001", "backoff: 1000"))
        waiting(world, job_id, lambda found: found.failures == 1)
        assert 1000 <= due_after(world, job_id) < 1600
        assert len(model.calls) == 1


def test_a_refusal_by_the_breaker_uses_no_attempt(world: World) -> None:
    with serving(world, {"m": [ModelUnavailable("503")]}) as model:
        job_id = submitted(world, template(model_config="{model: m}", max_attempts="9"))
        waiting(world, job_id, lambda found: found.failures == 6 and found.due_at > world.job(job_id).created_at)
        until(lambda: due_after(world, job_id) > 30, 60.0, what="the refusal")
        assert world.steps(job_id)["ask"].failures == 6
        assert len(model.calls) == 6


def test_a_spent_budget_fails_the_step_at_once_and_says_how_to_go_on(world: World) -> None:
    budget = Budget(span=Span.MONTH, limit=1)
    with serving(world, {"gpt-4-turbo": [WHOLE]}, budgets=(budget,)) as model:
        job_id = submitted(world, template(model_config="{model: gpt-4-turbo}"))
        assert finished(world, job_id) == "FAILED"
    error = world.steps(job_id)["ask"].error
    assert error["code"] == "budget_exceeded"
    assert "ai.budget_month" in error["message"]
    assert model.calls == []


@pytest.mark.parametrize(
    ("settings", "word"),
    [("{max_tokens: many}", "max_tokens"), ("{model: 7}", "model"), ("{timeout: 0}", "timeout")],
)
def test_model_settings_that_cannot_be_right_fail_the_step_for_good(world: World, settings: str, word: str) -> None:
    with serving(world, {"*": [WHOLE]}) as model:
        job_id = submitted(world, template(model_config=settings))
        assert finished(world, job_id) == "FAILED"
    error = world.steps(job_id)["ask"].error
    assert (error["code"], error["attempt"]) == ("permanent", 1)
    assert word in error["message"]
    assert model.calls == []
