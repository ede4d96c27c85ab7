"""Steps and processors of the benchmark: an ordinary plug-in, loaded by the workers through the setting `plugins`."""

from functools import cache

import orjson

from bench import flow
from bench.meter import Meter
from bench.settings import Settings
from docmill.plugin import ApplyContext, StepContext, processor, step

CREATE_TABLE = """
create table bench_results (
  entity_id text not null, step_key text not null, result text not null, primary key (entity_id, step_key))"""

_UPSERT = """
insert into bench_results (entity_id, step_key, result) values (:entity_id, :step_key, :result)
on conflict (entity_id, step_key) do update set result = excluded.result"""


@cache
def _settings() -> Settings:
    return Settings.from_environment()


@cache
def _meter() -> Meter:
    return Meter(_settings().event_log, trace=_settings().trace)


@step("bench.step", kind="rule")
async def run_step(ctx: StepContext) -> flow.Outcome:
    """One of the steps a to e."""
    return await flow.run_step_async(_meter(), int(ctx.entity_id), ctx.step_key, _settings().wait_s)


@step("bench.model", kind="ai")
async def ask_model(ctx: StepContext) -> flow.Outcome:
    """Step c of W3 and W5: as a model call it belongs to the pool of such calls, and waits."""
    return await flow.run_step_async(_meter(), int(ctx.entity_id), ctx.step_key, _settings().wait_s)


@step("bench.noop", kind="rule")
async def run_noop(ctx: StepContext) -> dict[str, object]:
    """The task of W1."""
    _meter().noop(int(ctx.entity_id))
    return {}


@step("bench.probe", kind="rule")
async def run_probe(ctx: StepContext) -> dict[str, object]:
    """The task of W4."""
    _meter().probed(float(str(ctx.metadata["sent_at"])))
    return {}


@processor("bench", "store")
def store(ctx: ApplyContext, result: object) -> None:
    """One upsert for each step, in the transaction that completes it."""
    ctx.db.execute(
        _UPSERT,
        {"entity_id": ctx.entity_id, "step_key": ctx.step_key, "result": orjson.dumps(result).decode()},
    )
