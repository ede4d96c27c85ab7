"""Real clients behind the gateway: bad answers are failures, budgets stop, breakers open, good answers are kept."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from docmill.ai.budget import Budget, Span
from docmill.ai.gateway import Gateway
from docmill.ai.providers.access import Kind
from docmill.ai.providers.asking import provider_of
from docmill.ai.rules import Rules
from docmill.db.database import Database
from docmill.db.tables import ai_breakers, ai_calls
from docmill.model.ai import Attachment, Reply, Request
from docmill.model.ai_errors import (
    BudgetExceeded,
    ModelTimeout,
    ModelUnavailable,
    OutputInvalid,
    OutputRefused,
    OutputTruncated,
)
from docmill.model.errors import Deferred, DocmillError
from docmill.testing.providers import Fails, Fault, Hangs, ProviderServer, Reaction, Refuses, Says, Truncates
from docmill.testing.world import migrate

MODELS = {
    Kind.GOOGLE: "google:gemini-2.5-flash",
    Kind.OPENAI: "openai:gpt-5-mini",
    Kind.OPENAI_CHAT: "openai-chat:gpt-4o",
    Kind.ANTHROPIC: "anthropic:claude-sonnet-5",
    Kind.COMPATIBLE: "compatible:house-model",
}
REQUEST = Request(
    prompt="total?",
    attachments=(Attachment(data=b"%PDF-1.7", media_type="application/pdf"),),
    output_schema={"type": "object", "required": ["total"], "properties": {"total": {"type": "string"}}},
    max_tokens=200,
)
GOOD = Says({"total": "12"}, input_tokens=100, output_tokens=10)


class Server(ProviderServer):
    """The stand-ins, and one loop with the clients that ask them: making a client takes longer than a question."""

    def __init__(self) -> None:
        super().__init__(lambda asked: GOOD)
        self.loop = asyncio.Runner()
        self.providers = {str(kind): provider_of(self.access(kind)) for kind in Kind}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running, running.loop:
        yield running


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "docmill.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def database(tmp_path: Path, migrated: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{shutil.copy(migrated, tmp_path / 'docmill.db')}")
    yield opened
    opened.close()


class Desk:
    """A gateway with every provider."""

    def __init__(self, database: Database, server: Server, **rules: Any) -> None:
        self.now = datetime(2026, 11, 15, 12, tzinfo=UTC)
        self._database = database
        self._server = server
        rules = {"rate": 1e6, "burst": 1000, **rules}
        self.gateway = Gateway(database, server.providers, Rules(**rules), clock=lambda connection: self.now)

    def ask(self, kind: Kind, reaction: Reaction, **changes: Any) -> Reply:
        self._server.script = lambda asked: reaction
        self._server.asked.clear()
        return self._server.loop.run(self.gateway.generate(replace(REQUEST, model=MODELS[kind], **changes)))

    def rows(self, table: Any) -> list[Any]:
        with self._database.read() as connection:
            return list(connection.execute(select(table)).all())


@pytest.fixture
def desk(database: Database, server: Server) -> Iterator[Desk]:
    made = Desk(database, server)
    yield made
    made.gateway.close()


BAD: dict[str, tuple[Reaction, type[DocmillError]]] = {
    "truncated": (Truncates(), OutputTruncated),
    "malformed": (Says('{"total": "12"', output_tokens=9), OutputInvalid),
    "prose": (Says("The total is twelve.", output_tokens=9), OutputInvalid),
    "against the schema": (Says({"sum": "12"}, output_tokens=9), OutputInvalid),
    "refused": (Refuses(), OutputRefused),
}


@pytest.mark.parametrize("kind", Kind, ids=str)
def test_a_bad_answer_is_a_failure_and_paid_for_all_the_same(desk: Desk, kind: Kind) -> None:
    for reaction, error in BAD.values():
        with pytest.raises(error):
            desk.ask(kind, reaction)
    calls = desk.rows(ai_calls)
    assert [call.outcome for call in calls] == ["failed"] * len(BAD)
    assert {call.error_code for call in calls} == {"output_truncated", "output_invalid", "output_refused"}
    # The provider is well, whatever its model says.
    assert desk.rows(ai_breakers) == []
    assert all(call.output_tokens > 0 for call in calls if call.error_code != "output_refused")
    assert all(call.cost_nanos > 0 for call in calls) == (kind is not Kind.COMPATIBLE)


@pytest.mark.parametrize("kind", [Kind.GOOGLE, Kind.OPENAI, Kind.ANTHROPIC], ids=str)
def test_a_budget_stops_before_anybody_is_asked(database: Database, server: Server, kind: Kind) -> None:
    desk = Desk(database, server, budgets=(Budget(span=Span.DAY, limit=1000),))
    with pytest.raises(BudgetExceeded):
        desk.ask(kind, GOOD)
    desk.gateway.close()
    assert server.asked == []


@pytest.mark.parametrize("kind", Kind, ids=str)
def test_a_breaker_opens_for_one_model_and_a_probe_closes_it(database: Database, server: Server, kind: Kind) -> None:
    desk = Desk(database, server, failure_threshold=2, recovery_seconds=30.0)
    desk.ask(kind, GOOD)
    with pytest.raises(ModelUnavailable):
        desk.ask(kind, Fails(Fault.OVERLOADED))
    with pytest.raises(ModelUnavailable):
        desk.ask(kind, Fails(Fault.UNAVAILABLE))
    with pytest.raises(ModelTimeout):
        desk.ask(kind, Hangs(), timeout=0.1)
    with pytest.raises(Deferred):
        desk.ask(kind, GOOD)
    assert server.asked == []
    other = next(one for one in Kind if one is not kind)
    assert desk.ask(other, GOOD).data == {"total": "12"}
    desk.now += timedelta(seconds=31)
    assert desk.ask(kind, GOOD).data == {"total": "12"}
    assert [row.state for row in desk.rows(ai_breakers)] == ["closed"]
    desk.gateway.close()


def test_the_same_document_is_read_once_by_each_model(desk: Desk, server: Server) -> None:
    for kind in (Kind.GOOGLE, Kind.ANTHROPIC):
        first = desk.ask(kind, GOOD, cache=True)
        again = desk.ask(kind, Fails(Fault.UNAVAILABLE), cache=True)
        assert (first.cached, again.cached, again.data) == (False, True, {"total": "12"})
        assert server.asked == []
    assert sorted(call.outcome for call in desk.rows(ai_calls)) == ["answered", "answered", "cached", "cached"]


def test_a_key_stays_out_of_what_is_recorded(desk: Desk, server: Server) -> None:
    with pytest.raises(DocmillError):
        desk.ask(Kind.OPENAI, Fails(Fault.KEY))
    assert server.key not in str(desk.rows(ai_calls))
