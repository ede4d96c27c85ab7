"""Callbacks of outside executors: checked, stored, then acted on. In any order, as often as they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Connection, Row, select

from docmill.db.database import Database
from docmill.db.secrets import CALLBACK_TOKENS, installation_secret
from docmill.db.tables import callbacks, job_steps, jobs, templates
from docmill.engine.batch import Batch
from docmill.engine.bell import Bell
from docmill.engine.failpoints import failpoint
from docmill.engine.sql.statements import INSERT_CALLBACK
from docmill.engine.store import PlanSource, Store
from docmill.engine.store_pool import StorePool
from docmill.model.callbacks import CallbackOutcome, CallbackStatus
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG, canonical_id, new_id
from docmill.model.statuses import StepKind, StepStatus
from docmill.model.tokens import Attempt, TokenMalformed, Tokens
from docmill.services.callback_payload import CallbackPayload, read_payload
from docmill.templates.document import plan_from_document
from docmill.templates.output import check_output
from docmill.templates.plan import Plan, PlanStep
from docmill.webhooks.signatures import ID, verify

COMPLETED = "Step already completed"
_MESSAGES = {
    CallbackOutcome.RECEIVED: "Stored; it is applied as soon as the step waits for it",
    CallbackOutcome.APPLIED: "Applied",
    CallbackOutcome.NOTED: "Noted",
    CallbackOutcome.DUPLICATE: "Step already answered",
    CallbackOutcome.LATE: "The attempt that this token answers is over; whatever came of it, the step has gone on",
    CallbackOutcome.UNKNOWN: "There is no such step any more",
    CallbackOutcome.REFUSED: "Refused",
}
_GOOD = {CallbackOutcome.RECEIVED, CallbackOutcome.APPLIED, CallbackOutcome.NOTED, CallbackOutcome.DUPLICATE}
_SKIPPED = {CallbackOutcome.DUPLICATE, CallbackOutcome.LATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackAnswer:
    """What the executor is told."""

    success: bool
    skipped: bool
    outcome: CallbackOutcome
    message: str
    code: str | None = None
    """Why it was not taken: `token_spent`, `token_foreign`, `token_malformed`, `unknown_job`, `unknown_step`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackView:
    """One stored callback."""

    id: str
    message_id: str | None
    step_key: str | None
    status: str | None
    outcome: CallbackOutcome
    received_at: datetime
    settled_at: datetime | None
    payload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What a callback speaks of, as far as it exists, and what it is worth before the job is looked at."""

    org_id: str = DEFAULT_ORG
    job_id: str | None = None
    step: PlanStep | None = None
    epoch: int | None = None
    outcome: CallbackOutcome = CallbackOutcome.RECEIVED
    code: str | None = None
    message: str = ""


class Callbacks:
    """Where answers come in, whoever they are from; `keys` are the executors' signing keys, by name."""

    def __init__(
        self,
        database: Database,
        bell: Bell,
        keys: Mapping[str, bytes | None] | None = None,
        stores: StorePool | None = None,
    ) -> None:
        # Who calls is known by its job and its token, not by an organisation.
        self._database = database.as_engine()
        self._bell = bell
        self._keys = keys or {}
        self._stores = (stores or StorePool(database, PlanSource())).standing_as(self._database)
        self._plans: dict[str, Plan] = {}
        self._tokens: Tokens | None = None

    def receive(
        self,
        body: bytes | Mapping[str, object],
        *,
        now: datetime,
        headers: Mapping[str, str] | None = None,
        executor: str | None = None,
    ) -> CallbackAnswer:
        """Take one callback in. Raises CallbackInvalid for nonsense and SignatureInvalid for what is not signed as its
        executor must; nothing is stored then. All else is stored, and the answer says what became of it.

        `body` is the bytes as they came, for that is what was signed; a mapping comes from our own process and needs no
        signature. `executor` names the sender where the step does not.
        """
        payload = read_payload(body)
        target = self._target(payload, now)
        given = {name.lower(): value for name, value in (headers or {}).items()}
        self._check_signature(body, given, (target.step and target.step.executor) or executor, now)
        callback_id = new_id()
        self._store(callback_id, payload, target, given.get(ID), now)
        failpoint("callback.stored")
        if target.outcome is not CallbackOutcome.RECEIVED:
            return _answer(target.outcome, target.message, target.code)
        assert target.job_id is not None
        assert target.step is not None
        batch = Batch(answer=[(target.job_id, target.step.position)])
        outcome = self._stores.commit(batch)
        failpoint("callback.answered")
        self._bell.ring(outcome.left_ready)
        # Not among those settled here: left for the step to wait, or settled by somebody else since it was stored.
        settled = outcome.callbacks.get(callback_id) or self._outcome(callback_id)
        code = "token_spent" if settled is CallbackOutcome.LATE else None
        completed = settled is CallbackOutcome.DUPLICATE and self._completed(target.job_id, target.step.position)
        return _answer(settled, COMPLETED if completed else "", code)

    def list(
        self, job_id: str, *, org_id: str = DEFAULT_ORG, after: str | None = None, limit: int | None = None
    ) -> Sequence[CallbackView]:
        """What came for a job of this organisation, oldest first: all, or so many behind the one with this id."""
        found = canonical_id(job_id)
        if found is None:
            return []
        query = select(callbacks).where(callbacks.c.job_id == found, callbacks.c.org_id == org_id)
        if after is not None:
            query = query.where(callbacks.c.id > canonical_id(after))
        query = query.order_by(callbacks.c.id).limit(limit)
        with self._database.read() as connection:
            return [_view(row) for row in connection.execute(query)]

    def close(self) -> None:
        """Let go of the connections."""
        self._stores.close()

    def _target(self, payload: CallbackPayload, now: datetime) -> _Target:
        """Existence first, then the token: what is not there is unknown, whatever comes with it."""
        found = self._find(canonical_id(payload.job_id), payload.step_key)
        if found.outcome is not CallbackOutcome.RECEIVED:
            return found
        step, job_id = found.step, found.job_id
        assert step is not None
        assert job_id is not None
        refused = replace(found, outcome=CallbackOutcome.REFUSED)
        if step.kind is not StepKind.EXTERNAL:
            return replace(refused, code="not_external", message=f"{step.step_key} is not answered by callback")
        try:
            attempt = self._read_token(payload.token, now)
        except TokenMalformed as error:
            return replace(refused, code=error.code, message=error.message)
        if (attempt.job_id, attempt.position) != (job_id, step.position):
            return replace(refused, code="token_foreign", message="The token is that of another step or job")
        known = replace(found, epoch=attempt.epoch)
        if payload.status is not CallbackStatus.IN_PROGRESS:
            return known
        if self._completed(job_id, step.position):
            return replace(known, outcome=CallbackOutcome.DUPLICATE, message=COMPLETED)
        return replace(known, outcome=CallbackOutcome.NOTED)

    def _find(self, job_id: str | None, step_key: str) -> _Target:
        unknown = _Target(
            outcome=CallbackOutcome.UNKNOWN, code="unknown_job", message="There is no such job; check jobId"
        )
        if job_id is None:
            return unknown
        with self._database.read() as connection:
            row = connection.execute(select(jobs.c.org_id, jobs.c.template_id).where(jobs.c.id == job_id)).first()
            if row is None:
                return replace(unknown, job_id=job_id)
            plan = self._plan(connection, row.template_id)
        if step_key not in plan.positions:
            message = "The job has no such step; check stepKey"
            return replace(unknown, org_id=row.org_id, job_id=job_id, code="unknown_step", message=message)
        return _Target(org_id=row.org_id, job_id=job_id, step=plan.step(step_key))

    def _plan(self, connection: Connection, template_id: str) -> Plan:
        """Kept for good: a template version never changes."""
        plan = self._plans.get(template_id)
        if plan is None:
            query = select(templates.c.definition).where(templates.c.id == template_id)
            plan = self._plans[template_id] = plan_from_document(connection.execute(query).scalar_one())
        return plan

    def _read_token(self, token: object, now: datetime) -> Attempt:
        if self._tokens is None:
            self._tokens = Tokens(installation_secret(self._database, CALLBACK_TOKENS, now=now))
        return self._tokens.read(token)

    def _check_signature(
        self, body: bytes | Mapping[str, object], headers: Mapping[str, str], executor: str | None, now: datetime
    ) -> None:
        key = self._keys.get(executor or "")
        if key is not None and isinstance(body, bytes):
            verify(key, headers, body, now=now)

    def _store(
        self, callback_id: str, payload: CallbackPayload, target: _Target, message_id: str | None, now: datetime
    ) -> None:
        settled = target.outcome is not CallbackOutcome.RECEIVED
        believed = target.epoch is not None
        row = {
            "id": callback_id,
            "org_id": target.org_id,
            "message_id": message_id and message_id[:256].replace("\0", ""),
            "job_id": target.job_id,
            "position": target.step.position if target.step else None,
            "epoch": target.epoch,
            "payload": payload.stored(_fault(payload, target.step)) if believed else payload.stored_head(),
            "outcome": target.outcome.value,
            "now": now,
            "settled_at": now if settled else None,
        }

        def work(store: Store) -> None:
            with store.session.write():
                store.sql.run_each(INSERT_CALLBACK, [row])

        self._stores.work(work)

    def _outcome(self, callback_id: str) -> CallbackOutcome:
        with self._database.read() as connection:
            query = select(callbacks.c.outcome).where(callbacks.c.id == callback_id)
            return CallbackOutcome(connection.execute(query).scalar_one())

    def _completed(self, job_id: str, position: int) -> bool:
        query = select(job_steps.c.status).where(job_steps.c.job_id == job_id, job_steps.c.position == position)
        with self._database.read() as connection:
            return connection.execute(query).scalar_one_or_none() == StepStatus.COMPLETED


def _fault(payload: CallbackPayload, step: PlanStep | None) -> dict[str, object] | None:
    """Why a result is as good as a failure: looked for here, outside of any lock."""
    if step is None or step.output_schema is None or payload.status is not CallbackStatus.COMPLETED:
        return None
    try:
        check_output(step.output_schema, payload.result, f"The answer to {step.step_key}")
    except DocmillError as error:
        return {"code": error.code, "message": error.message}
    return None


def _answer(outcome: CallbackOutcome, message: str = "", code: str | None = None) -> CallbackAnswer:
    return CallbackAnswer(
        success=outcome in _GOOD,
        skipped=outcome in _SKIPPED,
        outcome=outcome,
        message=message or _MESSAGES[outcome],
        code=code,
    )


def _view(row: Row[Any]) -> CallbackView:
    payload = row.payload if isinstance(row.payload, dict) else orjson.loads(row.payload)
    return CallbackView(
        id=row.id,
        message_id=row.message_id,
        step_key=payload.get("stepKey"),
        status=payload.get("status"),
        outcome=CallbackOutcome(row.outcome),
        received_at=row.received_at,
        settled_at=row.settled_at,
        payload=payload,
    )
