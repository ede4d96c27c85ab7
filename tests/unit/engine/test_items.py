"""Batch Processing: process multiple documents in single job, side by side, each result kept."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from docmill.engine.batch import StepRun
from docmill.engine.context import Context, Services
from docmill.engine.items import MOST_ITEMS, ItemContext, items_of, run_items
from docmill.engine.sql.rows import JobHead
from docmill.engine.state import StepState
from docmill.model import errors
from docmill.model.statuses import StepStatus
from docmill.model.tokens import Tokens
from docmill.plugin import FollowUp, Issue, Wait
from docmill.templates.plan import ForEach
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, make_plan

Call = Callable[[ItemContext, object], Awaitable[Any]]
DOCUMENTS = ["document:1", "document:2", "document:3"]


class Store:
    """Stands in for the worker: keeps parts from attempt to attempt."""

    def __init__(self) -> None:
        self.kept: dict[str, object] = {}

    async def load_parts(self, run: StepRun) -> dict[str, object]:
        return dict(self.kept)

    async def store_part(self, run: StepRun, name: str, value: str) -> None:
        self.kept.setdefault(name, orjson.loads(value))

    def check_lease(self, run: StepRun) -> None: ...

    @property
    def done(self) -> int:
        return sum(name.startswith("docmill.item/") for name in self.kept)


def run_of(*, failures: int = 0) -> StepRun:
    plan = make_plan([Draft(key="a")])
    head = JobHead("job", "org", "template", "document", "d1", 0, "", {}, None, None, START)
    return StepRun(head, 1, plan, plan.steps[0], StepState(StepStatus.IN_PROGRESS, 1, failures), "system", False)


def attempt(
    call: Call,
    store: Store | None = None,
    *,
    documents: object = DOCUMENTS,
    failures: int = 0,
    parallel: int = 10,
    may_fail: bool = False,
    stopping: Callable[[Context], object] = lambda context: None,
) -> tuple[dict[str, object], Context]:
    """One attempt of the step."""
    run = run_of(failures=failures)
    context = Context(run, cast(Services, store or Store()), Tokens(b"secret"))
    stopping(context)
    for_each = ForEach(items="metadata.documents", parallel=parallel, may_fail=may_fail)
    names: Mapping[str, object] = {"entity": None, "results": {}, "metadata": {"documents": documents}}
    return asyncio.run(run_items(run, context, for_each, names, call)), context


async def read(ctx: ItemContext, item: object) -> object:
    return {"read": item, "key": ctx.item_key, "index": ctx.item_index}


def refusing(
    *keys: str, error: type[errors.DocmillError] = errors.RetryableError, calls: list[str] | None = None
) -> Call:
    async def call(ctx: ItemContext, item: object) -> object:
        if calls is not None:
            calls.append(ctx.item_key)
        if ctx.item_key in keys:
            raise error(f"{item} is blank.")
        return "read"

    return call


def test_every_item_has_its_place_in_the_result() -> None:
    result, _ = attempt(read, documents=["a", {"id": 7}, {"key": "k", "id": 8}, [1]])
    assert (result["completed"], result["failed"]) == (4, 0)
    items = cast(list[dict[str, Any]], result["items"])
    assert [(item["key"], item["status"]) for item in items] == [(key, "completed") for key in ("a", "7", "k", "3")]
    assert items[1]["result"] == {"read": {"id": 7}, "key": "7", "index": 1}


def test_an_empty_list_is_done_at_once() -> None:
    assert attempt(read, documents=[])[0] == {"items": [], "completed": 0, "failed": 0}


def test_a_failed_attempt_keeps_what_was_done_and_the_next_repeats_only_the_rest() -> None:
    store, calls = Store(), cast(list[str], [])
    with pytest.raises(errors.RetryableError, match=r"1 of 3 items failed: document:2: document:2 is blank\."):
        attempt(refusing("document:2", calls=calls), store)
    assert store.done == 2
    calls.clear()
    result, _ = attempt(refusing(calls=calls), store, failures=1)
    assert calls == ["document:2"]
    assert result["completed"] == 3


def test_what_cannot_be_mended_fails_the_step_at_once_and_keeps_the_rest() -> None:
    store = Store()
    with pytest.raises(errors.PermanentError, match="1 of 3 items failed"):
        attempt(refusing("document:1", error=errors.PermanentError), store)
    assert store.done == 2


def test_items_that_may_fail_are_tried_as_often_as_the_template_says() -> None:
    store = Store()
    with pytest.raises(errors.RetryableError):
        attempt(refusing("document:2"), store, may_fail=True)
    result, _ = attempt(refusing("document:2"), store, may_fail=True, failures=3)
    assert (result["completed"], result["failed"]) == (2, 1)
    assert cast(list[object], result["items"])[1] == {
        "key": "document:2",
        "status": "failed",
        "error": {"code": "retryable", "message": "document:2 is blank."},
    }


def test_a_lasting_failure_is_not_found_out_twice() -> None:
    store, calls = Store(), cast(list[str], [])

    async def mixed(ctx: ItemContext, item: object) -> object:
        calls.append(ctx.item_key)
        if ctx.item_key == "document:1":
            raise errors.PermanentError("Unreadable.")
        raise errors.RetryableError("Busy.", retry_after=5)

    with pytest.raises(errors.RetryableError) as caught:
        attempt(mixed, store, may_fail=True)
    assert caught.value.retry_after == 5
    calls.clear()
    attempt(mixed, store, may_fail=True, failures=3)
    assert sorted(calls) == ["document:2", "document:3"]


def test_a_refusal_by_a_limit_uses_no_attempt() -> None:
    async def limited(ctx: ItemContext, item: object) -> object:
        if ctx.item_index:
            raise errors.Deferred("The bucket is empty.", delay=float(ctx.item_index))
        return 1

    store = Store()
    with pytest.raises(errors.Deferred) as caught:
        attempt(limited, store)
    assert (caught.value.delay, store.done) == (2.0, 1)


def test_no_more_than_so_many_run_at_once() -> None:
    running = most = 0

    async def counting(ctx: ItemContext, item: object) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1

    attempt(counting, documents=list(range(20)), parallel=4)
    assert most == 4


def test_when_time_runs_out_the_rest_follows_without_using_an_attempt() -> None:
    """So that a list of any length is done, slice by slice."""
    store = Store()

    async def slow(ctx: ItemContext, item: object) -> object:
        ctx._whole.stopping = True
        return item

    with pytest.raises(errors.Deferred) as caught:
        attempt(slow, store, parallel=1)
    assert (caught.value.delay, store.done) == (0, 1)


def test_a_lost_lease_ends_all_of_them() -> None:
    started: list[str] = []

    async def lost(ctx: ItemContext, item: object) -> object:
        started.append(ctx.item_key)
        if ctx.item_index == 0:
            raise errors.LeaseLost("Taken over.")
        await asyncio.Event().wait()
        return None

    with pytest.raises(errors.LeaseLost):
        attempt(lost)
    assert len(started) == 3


@pytest.mark.parametrize("raised", [SystemExit(3), asyncio.CancelledError(), ZeroDivisionError()])
def test_whatever_an_item_raises_is_its_own_failure(raised: BaseException) -> None:
    async def odd(ctx: ItemContext, item: object) -> object:
        if ctx.item_index == 1:
            raise raised
        return 1

    store = Store()
    with pytest.raises(errors.RetryableError, match="1 of 3 items failed"):
        attempt(odd, store)
    assert store.done == 2


def test_items_have_effects_tokens_parts_and_follow_ups_of_their_own() -> None:
    keys: dict[str, tuple[str, str, object]] = {}

    async def own(ctx: ItemContext, item: object) -> object:
        keys[ctx.item_key] = (ctx.effect_key, ctx.token, await ctx.once("page", lambda: ctx.item_key))
        ctx.follow_up(FollowUp(template="t", entity_type="document", entity_id=ctx.item_key))
        return 1

    store = Store()
    with pytest.raises(errors.RetryableError):
        attempt(refusing("document:3"), store)
    store.kept = {name: part for name, part in store.kept.items() if not name.startswith("docmill.item/document:1")}
    _, context = attempt(own, store, failures=1)
    assert keys.keys() == {"document:1", "document:3"}
    assert keys["document:1"][0] == "job/a/1/document:1"
    assert len({token for _, token, _ in keys.values()}) == 2
    assert [page for _, _, page in keys.values()] == ["document:1", "document:3"]
    assert [job.entity_id for job in context.follow_ups] == ["document:1", "document:3"]
    repeated = attempt(own, store, failures=2)[1]
    assert repeated.follow_ups == context.follow_ups, "those of stored items are wanted again"


def test_equal_keys_are_told_apart_and_a_changed_item_is_another_one() -> None:
    for_each = ForEach(items="x")
    first = items_of(["a", "a", {"id": "a", "n": 1}], for_each)
    assert [item.key for item in first] == ["a", "a#2", "a#3"]
    changed = items_of(["a", "a", {"id": "a", "n": 2}], for_each)
    assert [old.part == new.part for old, new in zip(first, changed, strict=True)] == [True, True, False]


@pytest.mark.parametrize("value", [None, "abc", 7, {"a": 1}, [0] * (MOST_ITEMS + 1)], ids=type)
def test_what_is_no_list_or_too_long_a_one_is_refused_for_good(value: object) -> None:
    with pytest.raises(errors.PermanentError, match="for_each"):
        items_of(value, ForEach(items="metadata.documents"))


def test_an_item_cannot_wait() -> None:
    async def asking(ctx: ItemContext, item: object) -> object:
        return Wait(within=5)

    with pytest.raises(errors.PermanentError, match="cannot wait"):
        attempt(asking)


def test_the_run_and_the_parts_of_another_run_are_kept_apart() -> None:
    """A lasting failure is known for its own run only: a manual retry tries again."""
    store = Store()

    async def half(ctx: ItemContext, item: object) -> object:
        raise errors.PermanentError("No.") if ctx.item_index else errors.RetryableError("Busy.")

    with pytest.raises(errors.RetryableError):
        attempt(half, store, may_fail=True)
    run = replace(run_of(), run=2)
    context = Context(run, cast(Services, store), Tokens(b"secret"))
    names = {"entity": None, "results": {}, "metadata": {"documents": DOCUMENTS}}
    result = asyncio.run(run_items(run, context, ForEach(items="metadata.documents"), names, read))
    assert result["completed"] == 3


def test_what_an_item_raised_is_not_lost_when_another_item_fails() -> None:
    store = Store()
    computed: list[object] = []

    async def doubtful(ctx: ItemContext, item: object) -> object:
        computed.append(item)
        ctx.issue(Issue(code="doubt", title=f"Is {item} right?", blocking=item == "document:1"))
        if item == "document:3" and computed.count(item) == 1:
            raise errors.RetryableError("Not now.")
        return item

    with pytest.raises(errors.RetryableError):
        attempt(doubtful, store)
    _, context = attempt(doubtful, store, failures=1)
    assert computed == [*DOCUMENTS, "document:3"]
    assert [(issue.title, issue.blocking) for issue in context.issues] == [
        ("Is document:1 right?", True),
        ("Is document:2 right?", False),
        ("Is document:3 right?", False),
    ]


def test_an_issue_that_cannot_be_stored_fails_its_item_alone() -> None:
    async def odd(ctx: ItemContext, item: object) -> object:
        if item == "document:2":
            ctx.issue(Issue(code="odd", title="Odd", details={"thing": object()}))
        return item

    result, context = attempt(odd, may_fail=True)
    assert (result["completed"], result["failed"]) == (2, 1)
    assert context.issues == []
