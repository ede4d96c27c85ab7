"""An installation with outside steps, for tests: claimed and sent out by hand, answered through the real service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from docmill.db.secrets import CALLBACK_TOKENS, installation_secret
from docmill.db.tables import callbacks as stored_callbacks
from docmill.engine.batch import StepRun
from docmill.engine.bell import open_bell
from docmill.engine.events import Suspended
from docmill.model.statuses import StepKind
from docmill.model.tokens import Tokens
from docmill.services.callbacks import CallbackAnswer, Callbacks
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World, lease

KEY = b"k" * 32
"""With which an executor signs."""


def asking(*keys: str, processor: str | None = None, max_attempts: int = 4, backoff: float = 0.0) -> Plan:
    """A plan of external steps in one group."""
    drafts = [
        Draft(key=key, kind=StepKind.EXTERNAL, processor=processor, max_attempts=max_attempts, backoff=backoff)
        for key in keys
    ]
    return make_plan(drafts, name=f"asking-{'-'.join(keys)}-{processor}-{max_attempts}-{backoff:g}")


def changed(plan: Plan, **changes: Any) -> Plan:
    """The plan with another first step."""
    name = f"{plan.name}-{'-'.join(changes)}"
    return replace(plan, name=name, steps=(replace(plan.steps[0], **changes), *plan.steps[1:]))


class Outside:
    """The world with callbacks."""

    def __init__(self, world: World, callbacks: Callbacks) -> None:
        self.world = world
        self.callbacks = callbacks
        self.tokens = Tokens(installation_secret(world.database, CALLBACK_TOKENS, now=datetime.now(UTC)))

    def send_out(self, *, within: float = 3600.0, limit: int = 100) -> list[StepRun]:
        """Claim what is ready and let it wait, as a dispatch does."""
        runs = list(self.world.claim(limit, queue="external"))
        for run in runs:
            assert self.suspend(run, within=within)
        return runs

    def suspend(self, run: StepRun, *, within: float = 3600.0) -> bool:
        deadline = datetime.now(UTC) + timedelta(seconds=within)
        return self.world.report(run.job.id, Suspended(**lease(run), deadline=deadline))[0]

    def one(self, plan: Plan | None = None) -> StepRun:
        """A job with one step that waits."""
        self.world.submit(plan or asking("ask"))
        (run,) = self.send_out()
        return run

    def token(self, run: StepRun) -> str:
        return self.tokens.make(*run.key)

    def payload(self, run: StepRun, **changes: object) -> dict[str, object]:
        """A good answer to this attempt, with changes."""
        return {
            "jobId": run.job.id,
            "stepKey": run.step.step_key,
            "status": "COMPLETED",
            "resultData": {"message": "forty-two"},
            "token": self.token(run),
            **changes,
        }

    def receive(self, run: StepRun, **changes: object) -> CallbackAnswer:
        return self.callbacks.receive(self.payload(run, **changes), now=datetime.now(UTC))

    def status(self, run: StepRun) -> str:
        return self.world.statuses(run.job.id)[run.step.step_key]

    def stored(self, job_id: str | None = None) -> list[Mapping[str, Any]]:
        """The stored callbacks, oldest first."""
        query = select(stored_callbacks).order_by(stored_callbacks.c.id)
        if job_id is not None:
            query = query.where(stored_callbacks.c.job_id == job_id)
        with self.world.looking() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def outcomes(self) -> list[str]:
        return [str(row["outcome"]) for row in self.stored()]


@contextmanager
def outside(world: World, keys: Mapping[str, bytes | None] | None = None) -> Iterator[Outside]:
    """The world with callbacks, closed afterwards."""
    bell = open_bell(world.database, world.run_dir)
    callbacks = Callbacks(world.database, bell, keys)
    try:
        yield Outside(world, callbacks)
    finally:
        callbacks.close()
        bell.close()
