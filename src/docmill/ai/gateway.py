"""The one way to a model: `generate(request) -> reply`."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from typing import Any, TypeVar

from sqlalchemy import Connection

from docmill.ai.admission import Ending, Ticket, admit, answered_before, recall, record, settle
from docmill.ai.answers import accept
from docmill.ai.breaker import Health
from docmill.ai.clock import Clock, database_clock
from docmill.ai.prices import Cost, PriceList, most_input_tokens
from docmill.ai.responses import Claim, Kept, fingerprint
from docmill.ai.rules import Rules, Target
from docmill.db.database import Database, is_transient
from docmill.model.ai import Answer, Caller, CallOutcome, ModelCall, Reply, Request
from docmill.model.ai_errors import ModelRateLimited, ModelTimeout, ModelUnavailable, ModelUnknown
from docmill.model.errors import DatabaseUnavailable, Deferred, DocmillError
from docmill.model.ids import new_id
from docmill.plugin import Provider

T = TypeVar("T")
log = logging.getLogger("docmill.ai")

_THREADS = 4
_TWIN_LOOK = 0.25
"""Seconds between looks for the answer that another is asking for."""
_LONGEST_TWIN_WAIT = 10.0
"""Seconds of such looks; then the step is put off and its place given to others."""
_TWIN_DELAY = 5.0
_NO_COST = Cost(nanos=0, known=True)
_ILL = (ModelRateLimited, ModelTimeout, ModelUnavailable)


def _wanted() -> None:
    """Always."""


def _pass(name: str) -> None:
    """No failpoints."""


class Gateway:
    """Asks models for everybody in this process; what all processes share is in the database."""

    def __init__(
        self,
        database: Database,
        providers: Mapping[str, Provider],
        rules: Rules,
        *,
        clock: Clock = database_clock,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        failpoint: Callable[[str], None] = _pass,
    ) -> None:
        self._database = database
        self._providers = providers
        self._rules = rules
        self._prices = PriceList(rules.prices)
        self._clock = clock
        self._wait = wait
        self.failpoint = failpoint
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="docmill-ai")
        self._closing = Event()
        self._background: set[asyncio.Task[None]] = set()

    async def generate(
        self, request: Request, caller: Caller | None = None, still_wanted: Callable[[], None] = _wanted
    ) -> Reply:
        """Ask; the reply was checked and its cost is recorded. Whatever fails is an error with a code of its own.

        `still_wanted` raises if, after all the waiting, whoever asks has no use for the answer any more.
        """
        caller = caller or Caller()
        target = self._rules.resolve(request.model)
        provider = self._provider(target)
        call = self._call(request, target)
        # No limits, no ticket: what is free and close at hand is only recorded.
        ticket = await self._let_in(call, caller, target, cache=request.cache) if provider.limited else None
        if isinstance(ticket, Kept):
            return _from_before(ticket.text, call, target)
        started = time.monotonic()
        asked = False
        answer: Answer | None = None
        error: BaseException | None = None
        data: object = None
        try:
            if ticket is not None and ticket.wait > 0:
                await self._wait(ticket.wait)
            still_wanted()
            started, asked = time.monotonic(), True
            answer = await self._ask(provider, call, target)
            data = accept(answer, call.output_schema, model=str(target), max_tokens=call.max_tokens)
        except BaseException as raised:
            # Cancellation too: whatever ends a call, its row must say so and its reservation go.
            error = raised
        cost = _NO_COST if ticket is None or answer is None else self._cost(ticket, answer)
        health = _health(answer, error) if asked else Health.UNKNOWN
        ending = _ending(answer, error, cost, time.monotonic() - started, health)
        if ticket is not None:
            await self._settle(ticket, ending)
        else:
            call_id = new_id()
            await self._write(
                caller.org_id,
                lambda connection: record(connection, call_id, caller, target, ending, now=self._clock(connection)),
            )
        if error is not None:
            raise error
        assert answer is not None
        return Reply(
            text=answer.text,
            data=data,
            provider=target.provider,
            model=target.model,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cost_nanos=cost.nanos,
            finish=answer.finish,
        )

    async def _let_in(self, call: ModelCall, caller: Caller, target: Target, *, cache: bool | None) -> Ticket | Kept:
        """A ticket, or the answer from before; while somebody asks the very same, wait for what comes of it."""
        wanted = self._rules.cache if cache is None else cache
        key = fingerprint(caller.org_id, target, call) if wanted and self._rules.cache_ttl is not None else None
        waited = 0.0
        while (admitted := await self._admit(call, caller, target, key)) is None:
            if waited >= _LONGEST_TWIN_WAIT:
                raise Deferred(f"{target} is being asked the very same for another step.", delay=_TWIN_DELAY)
            await self._wait(_TWIN_LOOK)
            waited += _TWIN_LOOK
        return admitted

    def close(self) -> None:
        """End; records under way are written first, unless the database is away."""
        self._closing.set()
        self._threads.shutdown()

    def _provider(self, target: Target) -> Provider:
        found = self._providers.get(target.provider)
        if found is None:
            known = ", ".join(sorted(self._providers))
            raise ModelUnknown(
                f"There is no model provider {target.provider!r}; this installation has {known}. Correct the name of "
                "the model, or install the plug-in that has the provider.",
                provider=target.provider,
            )
        return found

    def _call(self, request: Request, target: Target) -> ModelCall:
        rules = self._rules
        return ModelCall(
            model=target.model,
            prompt=request.prompt,
            instructions=request.instructions,
            attachments=request.attachments,
            output_schema=request.output_schema,
            max_tokens=rules.max_tokens if request.max_tokens is None else request.max_tokens,
            temperature=request.temperature,
            timeout=rules.timeout if request.timeout is None else request.timeout,
            options={**request.options, **rules.of(target.provider).options},
        )

    async def _ask(self, provider: Provider, call: ModelCall, target: Target) -> Answer:
        self.failpoint("model.asked")
        try:
            async with asyncio.timeout(call.timeout):
                answer = await provider.function(call)
        except TimeoutError as error:
            raise ModelTimeout(
                f"{target} did not answer within {call.timeout:g} s. Raise timeout in model_config or ai.timeout if "
                "it often needs longer."
            ) from error
        self.failpoint("model.answered")
        return answer

    async def _admit(self, call: ModelCall, caller: Caller, target: Target, key: str | None) -> Ticket | Kept | None:
        """None: another is asking the same. `key`: of the answer, if it may come from before and is to be kept."""
        most_input = most_input_tokens(call)
        if not self._prices.loaded:
            # Its first use takes a good part of a second, which no transaction should stay open for.
            await asyncio.get_running_loop().run_in_executor(self._threads, self._prices.load)

        call_id = new_id()
        attempts = count()

        def work(connection: Connection) -> Ticket | Kept | None:
            now = self._clock(connection)
            # The transaction before this one may have been committed although its answer was lost.
            again = next(attempts) > 0
            known = recall(connection, call_id, caller, target, timeout=call.timeout, response=key) if again else None
            if known is not None:
                return known
            if key is not None:
                found = answered_before(
                    connection, key, call_id, caller=caller, target=target, timeout=call.timeout, now=now
                )
                if found is not Claim.OURS:
                    return found if isinstance(found, Kept) else None
            most = self._prices.cost(
                target.provider, target.model, input_tokens=most_input, output_tokens=call.max_tokens, at=now
            )
            return admit(
                connection,
                call_id,
                rules=self._rules,
                caller=caller,
                target=target,
                most=most,
                timeout=call.timeout,
                now=now,
                response=key,
            )

        admitting = asyncio.ensure_future(self._in_database(caller.org_id, work))
        try:
            return await asyncio.shield(admitting)
        except asyncio.CancelledError:
            # The transaction goes on in its thread: what it lets in must be let out again.
            self._keep(self._give_back(admitting))
            raise

    async def _give_back(self, admitting: "asyncio.Future[Ticket | Kept | None]") -> None:
        try:
            ticket = await admitting
        except DocmillError:
            return
        if not isinstance(ticket, Ticket):
            return
        await self._settle(ticket, _ending(None, asyncio.CancelledError(), _NO_COST, 0.0, Health.UNKNOWN))

    async def _settle(self, ticket: Ticket, ending: Ending) -> None:
        await self._write(
            ticket.caller.org_id,
            lambda connection: settle(connection, ticket, ending, rules=self._rules, now=self._clock(connection)),
        )

    async def _write(self, org_id: str, work: Callable[[Connection], None]) -> None:
        """Write how a call ended, even if whoever asked is cancelled meanwhile."""
        await asyncio.shield(self._keep(self._in_database(org_id, work)))

    def _keep(self, work: "Coroutine[Any, Any, None]") -> "asyncio.Task[None]":
        """A task that is not forgotten before its end."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _cost(self, ticket: Ticket, answer: Answer) -> Cost:
        return self._prices.cost(
            ticket.target.provider,
            ticket.target.model,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cached_tokens=answer.cached_tokens,
            at=ticket.created_at,
        )

    async def _in_database(self, org_id: str, work: Callable[[Connection], T]) -> T:
        """One short write transaction on a thread, waiting for a database that is away: that costs no attempt."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._persist, org_id, work)

    def _persist(self, org_id: str, work: Callable[[Connection], T]) -> T:
        pause = 0.02
        while True:
            try:
                with self._database.scoped(org_id).write() as connection:
                    return work(connection)
            except Exception as error:
                transient = isinstance(error, DatabaseUnavailable) or is_transient(error)
                if not transient or self._closing.wait(pause):
                    raise
                log.warning("model gateway: trying again after: %s", error)
                pause = min(1.0, 2 * pause)


def _ending(answer: Answer | None, error: BaseException | None, cost: Cost, duration: float, health: Health) -> Ending:
    return Ending(
        outcome=CallOutcome.ANSWERED if error is None else CallOutcome.FAILED,
        error_code=_code(error),
        input_tokens=answer.input_tokens if answer else 0,
        output_tokens=answer.output_tokens if answer else 0,
        cost=cost,
        duration=duration,
        health=health,
        cached_tokens=answer.cached_tokens if answer else 0,
        text=answer.text if answer and error is None else None,
    )


def _from_before(text: str, call: ModelCall, target: Target) -> Reply:
    answer = Answer(text=text, input_tokens=0, output_tokens=0)
    return Reply(
        text=text,
        data=accept(answer, call.output_schema, model=str(target), max_tokens=call.max_tokens),
        provider=target.provider,
        model=target.model,
        input_tokens=0,
        output_tokens=0,
        cost_nanos=0,
        finish=answer.finish,
        cached=True,
    )


def _code(error: BaseException | None) -> str | None:
    if error is None:
        return None
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return error.code if isinstance(error, DocmillError) else "exception"


def _health(answer: Answer | None, error: BaseException | None) -> Health:
    """An answer is an answer, be it useless; so is a refusal of the key or the model."""
    if isinstance(error, _ILL):
        return Health.ILL
    return Health.WELL if answer is not None or isinstance(error, DocmillError) else Health.UNKNOWN
