"""The two short transactions around a call: what must hold before it, and what is written after it.

Before: an answer from before, else budget, breaker, token bucket, in this order; whatever refuses undoes the rest by
its exception. Nothing of this holds while the model is asked: no transaction is open then.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from docmill.ai import breaker as breakers
from docmill.ai import budget as budgets
from docmill.ai import responses, rows
from docmill.ai.breaker import Health
from docmill.ai.bucket import LONGEST_WAIT, Bucket, Full, take
from docmill.ai.prices import Cost
from docmill.ai.responses import Claim, Kept
from docmill.ai.rules import Rules, Target
from docmill.model.ai import BreakerState, Caller, CallOutcome
from docmill.model.errors import Deferred
from docmill.model.ids import derived_id

_GRACE = 60.0
"""Seconds beyond the longest that a call can take until its process is given up for dead."""
_PROBE_GRACE = 5.0
"""The same for a probe, which everybody waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A call that was let in: recorded, its cost reserved, its token taken."""

    call_id: str
    caller: Caller
    target: Target
    created_at: datetime
    wait: float
    """Seconds until its token is good."""
    probe: datetime | None
    """Set if this call is the breaker's probe."""
    response: str | None = None
    """Set if its answer is to be kept: under which key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a call ended."""

    outcome: CallOutcome
    error_code: str | None
    input_tokens: int
    output_tokens: int
    cost: Cost
    duration: float
    health: Health
    cached_tokens: int = 0
    text: str | None = None
    """The answer, if it is good."""


def answered_before(
    connection: Connection, key: str, call_id: str, *, caller: Caller, target: Target, timeout: float, now: datetime
) -> Kept | Claim:
    """Look for an answer from before; found, it is recorded as a call that cost nothing. Else claim the asking."""
    until = now + timedelta(seconds=LONGEST_WAIT + timeout + _GRACE)
    found = responses.claim(connection, key, caller=caller, call_id=call_id, target=target, now=now, until=until)
    if isinstance(found, Kept):
        ending = Ending(
            outcome=CallOutcome.CACHED,
            error_code=None,
            input_tokens=0,
            output_tokens=0,
            cost=Cost(nanos=0, known=True),
            duration=0.0,
            health=Health.UNKNOWN,
        )
        # Under an id of its own: the one that was meant for the asking may yet be needed.
        record(connection, derived_id("cached", call_id), caller, target, ending, now=now)
    return found


def admit(
    connection: Connection,
    call_id: str,
    *,
    rules: Rules,
    caller: Caller,
    target: Target,
    most: Cost,
    timeout: float,
    now: datetime,
    response: str | None = None,
) -> Ticket:
    """Let a call in, or raise BudgetExceeded or Deferred. `most`: the most it can cost."""
    _settle_lost(connection, caller.org_id, now)
    _check_budgets(connection, rules, caller.org_id, most.nanos, now)
    probe = _pass_breaker(connection, rules, target, now=now, probe_for=_probe_for(timeout))
    wait = _take_token(connection, rules, target, now)
    ticket = Ticket(
        call_id=call_id, caller=caller, target=target, created_at=now, wait=wait, probe=probe, response=response
    )
    expires_at = now + timedelta(seconds=wait + timeout + _GRACE)
    rows.insert_call(connection, _call_values(ticket, reserved=most, expires_at=expires_at))
    return ticket


def recall(
    connection: Connection, call_id: str, caller: Caller, target: Target, *, timeout: float, response: str | None = None
) -> Ticket | None:
    """The ticket of a call that was let in already; None if it was not."""
    row = rows.find_call(connection, call_id)
    if row is None:
        return None
    wait = (row.expires_at - row.created_at).total_seconds() - timeout - _GRACE
    probe = row.created_at + timedelta(seconds=_probe_for(timeout))
    breaker = rows.read_breaker(connection, str(target), lock=False)
    return Ticket(
        call_id=call_id,
        caller=caller,
        target=target,
        created_at=row.created_at,
        wait=max(0.0, wait),
        probe=probe if breaker is not None and breaker.probe_until == probe else None,
        response=response,
    )


def settle(connection: Connection, ticket: Ticket, ending: Ending, *, rules: Rules, now: datetime) -> None:
    """Record how the call ended: its answer, its row, what was spent, and what it says about the provider."""
    if ticket.response is not None:
        if ending.text is not None and rules.cache_ttl is not None:
            responses.keep(
                connection, ticket.response, ending.text, call_id=ticket.call_id, now=now, ttl=rules.cache_ttl
            )
        else:
            responses.release(connection, ticket.response, call_id=ticket.call_id)
    counted = rows.lock_cost(connection, ticket.call_id)
    if counted is None:
        return
    rows.update_calls(connection, [ticket.call_id], _ending_values(ending))
    rows.add_spent(connection, ticket.caller.org_id, ticket.created_at, ending.cost.nanos - counted)
    _tell_breaker(connection, rules, ticket, ending.health, now)


def record(
    connection: Connection, call_id: str, caller: Caller, target: Target, ending: Ending, *, now: datetime
) -> None:
    """Record a call that no limit applied to, in one go."""
    ticket = Ticket(call_id=call_id, caller=caller, target=target, created_at=now, wait=0.0, probe=None)
    rows.insert_call(connection, _call_values(ticket, reserved=ending.cost, expires_at=now) | _ending_values(ending))


def _probe_for(timeout: float) -> float:
    return LONGEST_WAIT + timeout + _PROBE_GRACE


def _settle_lost(connection: Connection, org_id: str, now: datetime) -> None:
    """Reservations of dead processes become spending: they may have been paid, and nobody is left to say no."""
    for lost in rows.lock_lost_calls(connection, org_id, now):
        values = {"outcome": CallOutcome.LOST.value, "cost_nanos": lost.reserved}
        rows.update_calls(connection, [lost.id], values)
        rows.add_spent(connection, org_id, lost.created_at, lost.reserved)


def _check_budgets(connection: Connection, rules: Rules, org_id: str, most: int, now: datetime) -> None:
    if most == 0:
        return
    for budget in rules.budgets:
        spent = rows.lock_spent(connection, org_id, budgets.period(budget.span, now))
        reserved = rows.reserved_since(connection, org_id, budgets.begins(budget.span, now))
        budgets.check(budget, spent=spent, reserved=reserved, most=most, now=now)


def _pass_breaker(
    connection: Connection, rules: Rules, target: Target, *, now: datetime, probe_for: float
) -> datetime | None:
    name = str(target)
    seen = rows.read_breaker(connection, name, lock=False)
    if seen is None or seen.state is BreakerState.CLOSED:
        return None
    # Looked at again under the lock: of all who find it due, one becomes the probe.
    found = rows.lock_breaker(connection, name)
    decision = breakers.admit(found, now=now, probe_for=probe_for, open_seconds=rules.recovery_seconds)
    if isinstance(decision, breakers.Refused):
        raise Deferred(f"{name} failed too often; it is asked again when it has had time.", delay=decision.delay)
    rows.write_breaker(connection, name, decision.breaker)
    return decision.probe


def _take_token(connection: Connection, rules: Rules, target: Target, now: datetime) -> float:
    own = rules.of(target.provider)
    rate, burst = own.rate or rules.rate, own.burst or rules.burst
    bucket: Bucket = rows.lock_bucket(connection, target.provider, full=float(burst), now=now)
    taken = take(bucket, now=now, rate=rate, burst=burst)
    if isinstance(taken, Full):
        raise Deferred(f"{target.provider} is asked as often as ai.rate allows.", delay=taken.delay)
    rows.write_bucket(connection, target.provider, taken.bucket)
    return taken.wait


def _tell_breaker(connection: Connection, rules: Rules, ticket: Ticket, health: Health, now: datetime) -> None:
    name = str(ticket.target)
    if health is not Health.ILL:
        seen = rows.read_breaker(connection, name, lock=False)
        if seen is None or seen == breakers.Breaker():
            # The usual case: all was well and is well. Nobody needs to wait for anybody to learn it.
            return
    before = rows.lock_breaker(connection, name)
    after = breakers.report(before, health, now=now, probe=ticket.probe, threshold=rules.failure_threshold)
    if after != before:
        rows.write_breaker(connection, name, after)


def _call_values(ticket: Ticket, *, reserved: Cost, expires_at: datetime) -> dict[str, object]:
    caller = ticket.caller
    return {
        "id": ticket.call_id,
        "org_id": caller.org_id,
        "job_id": caller.job_id,
        "position": caller.position,
        "step_key": caller.step_key,
        "attempt": caller.attempt,
        "provider": ticket.target.provider,
        "model": ticket.target.model,
        "prompt_id": caller.prompt_id,
        "outcome": CallOutcome.ASKED.value,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_nanos": 0,
        "priced": reserved.known,
        "reserved_nanos": reserved.nanos,
        "expires_at": expires_at,
        "duration_ms": 0,
        "created_at": ticket.created_at,
    }


def _ending_values(ending: Ending) -> dict[str, object]:
    return {
        "outcome": ending.outcome.value,
        "error_code": ending.error_code,
        "input_tokens": ending.input_tokens,
        "output_tokens": ending.output_tokens,
        "cached_tokens": ending.cached_tokens,
        "cost_nanos": ending.cost.nanos,
        "duration_ms": round(1000 * ending.duration),
    }
