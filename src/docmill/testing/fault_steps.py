"""The plug-in of the fault tests: steps and processors that tell the outside witness what they do.

`metadata` of a job steers its steps: `gate` holds the stand-in model's answer back (the nth question waits at the gate
`<gate>-<n>`), `parts` is the number of sub-checkpoints, `bad` makes the apply refuse, `lingers` holds the apply at a
gate.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, partial
from threading import Event, current_thread
from typing import Any

from docmill.engine import failpoints
from docmill.plugin import (
    Answer,
    ApplyContext,
    Database,
    FollowUp,
    ModelCall,
    PermanentError,
    RetryableError,
    StepContext,
    Wait,
    entity_loader,
    processor,
    provider,
    step,
)
from docmill.testing.waiting import until_true
from docmill.testing.witness import Witness

EFFECTS = "create table effects (effect_key text not null, token text not null)"
"""Without a unique index: what is applied twice must show."""
PROMPT_TOKENS, ANSWER_TOKENS = 100, 50
"""Of every call of the stand-in model."""
PRICES = '{"stand-in:model": {"input": "10", "output": "30"}}'
"""As the setting `ai.prices`: each call costs $0.0025."""


@cache
def witness() -> Witness:
    """The witness of this process, opened when a step first has something to tell."""
    return Witness.of_environment()


_hold_at = os.environ.get("DOCMILL_WITNESS_HOLD", "")


def _pass_by(name: str) -> None:
    """Tell that a point is passed, and wait there if the test wants it: until the gate of its name opens."""
    witness().note("passed", name, current_thread().name)
    while name == _hold_at and not witness().is_open(name):
        Event().wait(0.01)


if "DOCMILL_WITNESS_POINTS" in os.environ:
    failpoints.hook(_pass_by)

_kill_at = os.environ.get("DOCMILL_WITNESS_KILL", "")


def _kill_if(moment: str) -> None:
    """Die inside the call of the model, if the test wants it: a boundary outside Docmill."""
    if _kill_at == moment:
        os.kill(os.getpid(), signal.SIGKILL)


async def _gate(name: str) -> None:
    await until_true(lambda: witness().is_open(name))


@step("fault.ask", kind="ai")
async def ask(ctx: StepContext) -> dict[str, str]:
    """A paid call of the stand-in model."""
    prompt = f"{ctx.effect_key} {ctx.token} {ctx.metadata.get('gate', '')}"
    reply = await ctx.generate(prompt, model="stand-in:model", max_tokens=ANSWER_TOKENS)
    return {"token": reply.text}


@provider("stand-in")
async def stand_in(call: ModelCall) -> Answer:
    """The stand-in model: tells the witness, waits at the gate if there is one, answers with the attempt's token."""
    effect_key, token, gate = call.prompt.split(" ")
    witness().note("asked", effect_key, token)
    _kill_if("model.asking")
    if gate:
        await _gate(f"{gate}-{witness().count('asked', effect_key)}")
    else:
        await asyncio.sleep(0.002)
    witness().note("answered", effect_key, token)
    _kill_if("model.answering")
    return Answer(text=token, input_tokens=PROMPT_TOKENS, output_tokens=ANSWER_TOKENS)


@step("fault.free")
async def free(ctx: StepContext) -> dict[str, str]:
    """As `fault.ask`, but nothing is paid, so nothing is checkpointed before the apply."""
    witness().note("computing", ctx.effect_key, ctx.token)
    await _gate(f"{ctx.metadata['gate']}-{witness().count('computing', ctx.effect_key)}")
    witness().note("computed", ctx.effect_key)
    return {"token": ctx.token}


@step("fault.plain")
async def plain(ctx: StepContext) -> dict[str, str]:
    """Nothing but a result that names its attempt."""
    return {"token": ctx.token}


@step("fault.busy", kind="rule")
async def busy(ctx: StepContext) -> dict[str, str]:
    """Tells the witness when it begins and ends, so that it sees how many jobs are at it at once."""
    witness().note("busy", ctx.effect_key)
    await asyncio.sleep(0.003)
    witness().note("idle", ctx.effect_key)
    return {"token": ctx.token}


@step("fault.flaky")
async def flaky(ctx: StepContext) -> dict[str, str]:
    """Fails with the model of the first attempt."""
    if ctx.model.get("model", "first") == "first":
        raise RetryableError("The stand-in is not in the mood.")
    return {"token": ctx.token}


@step("fault.parts")
async def parts(ctx: StepContext) -> dict[str, object]:
    """A long compute in parts, each stored once."""
    count = int(str(ctx.metadata.get("parts", 4)))
    if "gate" in ctx.metadata:
        witness().note("holding", ctx.effect_key)
        await _gate(str(ctx.metadata["gate"]))

    def part(number: int) -> int:
        witness().note("part", f"{ctx.effect_key}/{number}")
        return number

    for number in range(count):
        await ctx.once(f"part-{number}", partial(part, number))
        witness().note("kept", f"{ctx.effect_key}/{number}")
    return {"token": ctx.token, "parts": count}


@step("fault.follow")
async def follow(ctx: StepContext) -> dict[str, str]:
    """Submits another job when it completes."""
    ctx.follow_up(FollowUp(template="fault child", entity_type="thing", entity_id=ctx.entity_id))
    return {"token": ctx.token}


@step("fault.wait", kind="external", together=True)
async def wait(steps: Sequence[StepContext]) -> list[Wait]:
    """Waits for an answer that never comes."""
    return [Wait(within=timedelta(seconds=0.2)) for _ in steps]


@step("fault.hold", kind="external")
async def hold(ctx: StepContext) -> Wait:
    """Waits for an answer that the test gives, with the token that the witness is told."""
    witness().note("waiting", ctx.effect_key, ctx.token)
    return Wait(within=timedelta(hours=1))


@entity_loader("thing")
def load(db: Database, entity_id: str) -> dict[str, object]:
    """Things have nothing to them."""
    return {"id": entity_id}


@step("fault.poison")
async def poison(ctx: StepContext) -> None:
    """Takes its worker down."""
    witness().note("poisoned", ctx.effect_key)
    os.kill(os.getpid(), signal.SIGKILL)


@step("fault.held", kind="rule")
async def held(ctx: StepContext) -> dict[str, str]:
    """Runs until its gate opens, or until it is asked to wind up and its job says that it listens."""
    witness().note("holding", ctx.effect_key)
    gate, listens = str(ctx.metadata["gate"]), ctx.metadata.get("listens")
    await until_true(lambda: witness().is_open(gate) or (ctx.stopping and listens))
    witness().note("held", ctx.effect_key)
    return {"token": ctx.token}


@step("fault.cpu")
async def cpu(ctx: StepContext) -> dict[str, object]:
    """CPU work in a child that behaves as the job's metadata says."""
    manner = str(ctx.metadata.get("manner", "well"))
    value = await ctx.cpu(child, manner, timeout=1.0 if manner == "slow" else 60.0)
    return {"token": ctx.token, "value": value}


def child(manner: str) -> int:
    """What runs in the child."""
    if manner == "greedy":
        return len(bytearray(4 << 30))
    if manner == "dying":
        os.kill(os.getpid(), signal.SIGKILL)
    while manner in ("slow", "busy"):
        pass
    return 42


@step("fault.hopeless")
async def hopeless(ctx: StepContext) -> None:
    """Fails for good."""
    raise PermanentError("The stand-in has no hope.")


@processor("fault", "record")
def record(ctx: ApplyContext, result: dict[str, Any]) -> None:
    """A plain insert: a second apply makes a second row."""
    witness().note("applying", ctx.effect_key, str(result["token"]))
    ctx.db.execute(
        "insert into effects (effect_key, token) values (:key, :token)",
        {"key": ctx.effect_key, "token": result["token"]},
    )
    while ctx.metadata.get("lingers") and not witness().is_open(str(ctx.metadata["lingers"])):
        Event().wait(0.01)
    if ctx.metadata.get("bad"):
        raise PermanentError("The stand-in refuses this result.")


@processor("fault", "undo")
def undo(ctx: ApplyContext, result: dict[str, Any]) -> None:
    """The opposite of `record`, which leaves a row of its own: one for every time."""
    record(ctx, result)


CHILD = """
name: fault child
processable_type: thing
service_name: fault
steps:
  - {step_key: only, type: fault.plain, processor_method: record, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""

EVERYTHING = """
name: fault everything
processable_type: thing
service_name: fault
steps:
  - {step_key: ask, type: fault.ask, group: 1, processor_method: record, max_crashes: 100}
  - {step_key: parts, type: fault.parts, group: 1, max_crashes: 100}
  - step_key: flaky
    type: fault.flaky
    group: 1
    backoff: 0.02
    max_crashes: 100
    model_config: {model: first}
    on_retry_action: {switch_models: [second]}
  - {step_key: wait, type: fault.wait, group: 1, optional: true, max_attempts: 1, max_crashes: 100}
  - {step_key: join, type: fault.plain, group: 2, processor_method: record, max_crashes: 100}
  - {step_key: ask_again, type: fault.ask, group: 2, delay: 0.02, max_crashes: 100}
  - {step_key: follow, type: fault.follow, group: 3, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""
"""Fan-out, fan-in, paid steps with and without processor, sub-checkpoints, a retry, a timer, a wait, a follow-up."""

SAGA = """
name: fault saga
processable_type: thing
service_name: fault
compensate: true
steps:
  - {step_key: paid, type: fault.ask, group: 1, processor_method: record, compensation_method: undo, max_crashes: 100}
  - {step_key: plain, type: fault.plain, group: 1, processor_method: record, max_crashes: 100}
  - {step_key: more, type: fault.plain, group: 2, processor_method: record, compensation_method: undo, max_crashes: 100}
  - {step_key: broken, type: fault.hopeless, group: 3, compensation_method: undo, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""
"""Comes to a bad end, whereupon what was done is undone."""


BUSY = """
name: fault busy
processable_type: thing
service_name: fault
steps:
  - {step_key: only, type: fault.busy, processor_method: record, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""
"""For batches: what the witness sees of it lies between the moment the job was let in and its end."""


QUESTION = """
name: fault question
processable_type: thing
service_name: fault
steps:
  - {step_key: ask, type: human.task, input: {title: "'Well?'"}, max_crashes: 100}
  - {step_key: after, type: fault.plain, group: 2, processor_method: record, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""
"""Waits for a person."""


def single(name: str, step_type: str, **settings: object) -> str:
    """A template of one step and the finish step."""
    more = "".join(f", {key}: {value}" for key, value in settings.items())
    return f"""
name: {name}
processable_type: thing
service_name: fault
steps:
  - {{step_key: only, type: {step_type}{more}}}
  - {{step_key: finish, type: FinishProcessing}}
"""


ANSWERED = """
name: fault answered
processable_type: thing
service_name: fault
steps:
  - {step_key: ask, type: fault.hold, group: 1, processor_method: record, backoff: 0.01, max_crashes: 100}
  - {step_key: other, type: fault.hold, group: 1, backoff: 0.01, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""
"""Two steps that are answered from outside, one of them with something to apply."""

SENT = """
name: fault sent
processable_type: thing
service_name: fault
steps:
  - {step_key: a, type: external.call, executor: hub, group: 1, processor_method: record, max_crashes: 100}
  - {step_key: b, type: external.call, executor: hub, group: 1, max_crashes: 100}
  - {step_key: c, type: external.call, executor: hub, group: 2, processor_method: record, max_crashes: 100}
  - {step_key: finish, type: FinishProcessing, max_crashes: 100}
"""
"""Two execution groups for a stand-in hub."""


def siblings(count: int) -> str:
    """Many siblings and a join: what two workers complete at the same moment."""
    steps = "".join(f"  - {{step_key: s{n}, type: fault.plain, group: 1}}\n" for n in range(count))
    return f"""
name: fault siblings
processable_type: thing
service_name: fault
steps:
{steps}  - {{step_key: join, type: fault.plain, group: 2, processor_method: record}}
  - {{step_key: finish, type: FinishProcessing}}
"""
