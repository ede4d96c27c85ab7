"""Steps that run once for each item of a list, such as the documents of a job: side by side, each result kept.

What an item came to is stored as a part of the step as soon as it is known, so that a kill, a failed attempt or a retry
repeats only the items that are not done.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from docmill.engine.batch import StepRun
from docmill.engine.context import Context, to_json
from docmill.engine.failure import error_json
from docmill.engine.follow_ups import follow_ups_from_part, follow_ups_to_part
from docmill.engine.issues import ASKING_ITEM, ITEM
from docmill.engine.raised import raised_now
from docmill.model import errors
from docmill.model.ids import derived_id
from docmill.plugin import FollowUp, Issue, Wait
from docmill.templates import conditions
from docmill.templates.plan import ForEach

TOTAL = "docmill.items/"
"""How the name of the part begins that tells how many items there are."""
_FAILED = "docmill.item_failed/"
MOST_ITEMS = 10_000
_LONGEST_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One element of the list, with the key that it is known by from attempt to attempt."""

    key: str
    index: int
    value: object
    part: str
    """Named after key and content: an item that changed is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    error: BaseException
    stored: Mapping[str, object]

    @property
    def permanent(self) -> bool:
        return isinstance(self.error, errors.PermanentError)


_Done = dict[str, Any]
_Outcome = _Done | _Failure | None
"""The stored part of an item; why it failed; None: there was no time to begin it."""


class ItemContext:
    """`StepContext` of one item: that of the step, with parts, effects and follow-ups of its own."""

    def __init__(self, whole: Context, item: Item) -> None:
        self._whole = whole
        self.item = item.value
        self.item_key = item.key
        self.item_index = item.index
        self.follow_ups: list[FollowUp] = []
        self.issues: list[Issue] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    @property
    def effect_key(self) -> str:
        return f"{self._whole.effect_key}/{self.item_key}"

    @property
    def token(self) -> str:
        return derived_id(self._whole.token, self.item_key)

    async def once(self, name: str, compute: Callable[[], Any]) -> Any:
        return await self._whole.once(f"docmill.within/{self.item_key}/{name}", compute)

    def follow_up(self, job: FollowUp) -> None:
        self.follow_ups.append(job)

    def issue(self, issue: Issue) -> None:
        self.issues.append(issue)


def items_of(value: object, for_each: ForEach) -> list[Item]:
    """The items of a list, each with a key of its own; PermanentError for what is no list."""
    if not isinstance(value, list | tuple):
        raise errors.PermanentError(f"for_each: {for_each.items} gives {type(value).__name__}, not a list.")
    if len(value) > MOST_ITEMS:
        raise errors.PermanentError(f"for_each: {len(value):,} items are too many; {MOST_ITEMS:,} are allowed.")
    seen: dict[str, int] = {}
    found = []
    for index, element in enumerate(value):
        key = _key(element, index)
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key}#{seen[key]}"
        content = hashlib.sha256(to_json(element, "an item").encode()).hexdigest()[:16]
        found.append(Item(key=key, index=index, value=element, part=f"{key}/{content}"))
    return found


def _key(element: object, index: int) -> str:
    """Text and numbers stand for themselves, mappings for their `key` or `id`, anything else for its place."""
    named = element.get("key", element.get("id")) if isinstance(element, Mapping) else element
    key = str(named) if isinstance(named, str | int | float) and str(named) else str(index)
    return key if len(key) <= _LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()


async def run_items(
    run: StepRun,
    context: Context,
    for_each: ForEach,
    names: Mapping[str, object],
    call: Callable[[ItemContext, object], Awaitable[Any]],
) -> dict[str, object]:
    """Run the step's function for each item; the result tells of every one, in order."""
    items = items_of(conditions.parse(for_each.items).evaluate(names), for_each)
    whole = _Items(run, context, call)
    await whole.prepare(len(items))
    outcomes = await whole.run(items, for_each.parallel)
    failed = [(item, outcome) for item, outcome in zip(items, outcomes, strict=True) if isinstance(outcome, _Failure)]
    if None in outcomes and (whole.progress or not failed):
        raise errors.Deferred("There was no time for the other items; they follow.", delay=0)
    if failed:
        await _raise_or_keep(run, context, for_each, failed, len(items))
    done = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    for part in done:
        context.follow_ups += follow_ups_from_part(part.get("follow_ups"))
        context.issues += [Issue(**issue) for issue in part.get("issues", ())]
    return {
        "items": [_told(item, outcome) for item, outcome in zip(items, outcomes, strict=True)],
        "completed": len(done),
        "failed": len(failed),
    }


class _Items:
    """The items of one attempt."""

    def __init__(self, run: StepRun, context: Context, call: Callable[[ItemContext, object], Awaitable[Any]]) -> None:
        self._run = run
        self._context = context
        self._call = call
        self._parts: Mapping[str, Any] = {}
        self.progress = 0
        """Items that this attempt has done."""

    async def prepare(self, total: int) -> None:
        """Read what earlier attempts have done, and leave word of how many items there are."""
        self._parts = dict(await self._context.parts())
        name = f"{TOTAL}{self._run.run}/{total}"
        if name not in self._parts:
            await self._context.store_part(name, str(total))

    async def run(self, items: Sequence[Item], parallel: int) -> list[_Outcome]:
        room = asyncio.Semaphore(parallel)
        tasks = [asyncio.create_task(self._one(item, room)) for item in items]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, item: Item, room: asyncio.Semaphore) -> _Outcome:
        stored = self._parts.get(ITEM + item.part, self._parts.get(ASKING_ITEM + item.part))
        if isinstance(stored, dict):
            return stored
        known = self._parts.get(_failed_part(self._run, item))
        if isinstance(known, dict):
            return _Failure(error=errors.PermanentError(str(known.get("message"))), stored=known)
        async with room:
            if self._context.stopping:
                return None
            try:
                self._context.check_lease()
                return await self._compute(item)
            except errors.LeaseLost:
                raise
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                return self._failure(errors.RetryableError("The item raised CancelledError by itself."))
            except (Exception, SystemExit) as error:
                return self._failure(error)

    async def _compute(self, item: Item) -> _Done:
        context = ItemContext(self._context, item)
        value = await self._call(context, item.value)
        if isinstance(value, Wait):
            raise errors.PermanentError("A step that runs for each item cannot wait for an answer.")
        result = to_json(value, f"the result of item {item.key}")
        # Stored with the result: the item is not computed again, so what it wants besides must be known by then.
        follow_ups = follow_ups_to_part(context.follow_ups)
        raised = raised_now(self._run, context.issues)
        part = f'{{"result":{result},"follow_ups":{follow_ups},"issues":{raised.to_part()}}}'
        await self._context.store_part((ASKING_ITEM if raised.blocks else ITEM) + item.part, part)
        self.progress += 1
        done: _Done = orjson.loads(part)
        return done

    def _failure(self, error: BaseException) -> _Failure:
        stored = orjson.loads(error_json(self._run, error))
        stored.pop("attempt")
        return _Failure(error=error, stored=stored)


async def _raise_or_keep(
    run: StepRun, context: Context, for_each: ForEach, failed: Sequence[tuple[Item, _Failure]], total: int
) -> None:
    """Fail the attempt for the sake of what failed, unless the step may complete without it."""
    refused = [failure.error for _, failure in failed if isinstance(failure.error, errors.Deferred)]
    if len(refused) == len(failed):
        raise errors.Deferred(str(refused[0]), delay=max(error.delay for error in refused))
    lasting = [(item, failure) for item, failure in failed if failure.permanent]
    message = _message(failed, total)
    if not for_each.may_fail and lasting:
        raise errors.PermanentError(message)
    if len(lasting) == len(failed):
        return
    if not for_each.may_fail or context.attempt < context.max_attempts:
        for item, failure in lasting:
            # Not to be found out once more by the next attempt.
            await context.store_part(_failed_part(run, item), orjson.dumps(failure.stored).decode())
        raise errors.RetryableError(message, retry_after=_longest_pause(failed))


def _failed_part(run: StepRun, item: Item) -> str:
    return f"{_FAILED}{run.run}/{item.part}"


def _longest_pause(failed: Sequence[tuple[Item, _Failure]]) -> float | None:
    pauses = [failure.error.retry_after for _, failure in failed if isinstance(failure.error, errors.RetryableError)]
    return max((pause for pause in pauses if isinstance(pause, int | float)), default=None)


def _message(failed: Sequence[tuple[Item, _Failure]], total: int) -> str:
    named = "; ".join(f"{item.key}: {failure.stored['message']}" for item, failure in failed[:5])
    return f"{len(failed)} of {total} items failed: {named}{'; …' if len(failed) > 5 else ''}"


def _told(item: Item, outcome: _Outcome) -> dict[str, object]:
    if isinstance(outcome, _Failure):
        return {"key": item.key, "status": "failed", "error": outcome.stored}
    assert outcome is not None
    return {"key": item.key, "status": "completed", "result": outcome["result"]}
