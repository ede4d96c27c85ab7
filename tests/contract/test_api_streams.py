"""Streams of events are bounded, and keep no request waiting."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import httpx
import orjson
import psycopg
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from docmill.model.people import Role
from docmill.testing.waiting import until
from docmill.testing.world import migrate
from tests.conftest import PostgresCopies
from tests.contract.served import Served, serving, somebody
from tests.contract.test_api_manners import API, problem

OWNER = {"Authorization": "Bearer owner"}
BOUNDS = {"rate": 100_000, "burst": 100_000}


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    """A server that keeps five streams, two of them for one organisation."""
    with serving(database_url, tmp_path / "home", api={**BOUNDS, "max_streams": 5}) as found:
        yield found


def listening(stack: ExitStack, served: Served, token: str = "owner") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return stack.enter_context(httpx.stream("GET", f"{served.address}{API}/events", headers=headers, timeout=60))


def refused(stack: ExitStack, served: Served, token: str) -> str:
    """Why there is no stream for them."""
    answer = listening(stack, served, token)
    assert answer.status_code == 429
    answer.read()
    return str(problem(answer, 429, "too_many_streams")["detail"])


def socket(served: Served) -> ClientConnection:
    return connect(served.address.replace("http://", "ws://") + f"{API}/events/socket", additional_headers=OWNER)


def test_one_organisation_takes_half_of_the_streams_and_the_server_keeps_no_more_than_all(served: Served) -> None:
    served.people.tokens["third"] = somebody("third", org_id="00000000-0000-7000-8000-0000000000ab")
    served.people.tokens["member"] = somebody("member", Role.VIEWER)
    with ExitStack() as stack:
        for token in ("owner", "member"):
            assert listening(stack, served, token).status_code == 200
        for token in ("owner", "member"):
            assert "of this organisation" in refused(stack, served, token)
        for token in ("stranger", "stranger", "third"):
            assert listening(stack, served, token).status_code == 200
        assert "5 streams of events are open" in refused(stack, served, "third")


def test_where_there_is_one_stream_anybody_may_have_it(database_url: str, tmp_path: Path) -> None:
    with serving(database_url, tmp_path / "home", api={**BOUNDS, "max_streams": 1}) as served, ExitStack() as stack:
        assert listening(stack, served).status_code == 200
        assert "1 streams of events are open" in refused(stack, served, "stranger")


def test_one_stream_too_many_is_refused_until_another_ends(served: Served) -> None:
    with ExitStack() as stack:
        assert listening(stack, served).status_code == 200
        with ExitStack() as shorter:
            shorter.enter_context(socket(served))
            answered = listening(shorter, served)
            assert (answered.status_code, answered.headers["retry-after"]) == (429, "5")
            with pytest.raises(InvalidStatus) as told:
                shorter.enter_context(socket(served))
            answer = told.value.response
            assert (answer.status_code, answer.headers["content-type"]) == (429, "application/problem+json")
            assert orjson.loads(answer.body or b"")["code"] == "too_many_streams"
            assert served.send("GET", f"{API}/documents").status_code == 200
        # What could not be opened takes no place either.
        problem(served.send("GET", f"{API}/events?after=nonsense"), 422, "invalid_input")

        def free() -> bool:
            with ExitStack() as again:
                return listening(again, served).status_code == 200

        until(free, 60, what="the place of who has gone")


def test_requests_are_answered_while_every_stream_waits_for_the_database(
    postgres_copy_of: PostgresCopies, tmp_path: Path
) -> None:
    url = postgres_copy_of("migrated", migrate)
    with serving(url, tmp_path / "home", api={**BOUNDS, "max_streams": 80}) as served, ExitStack() as stack:
        for _ in range(40):
            assert listening(stack, served).status_code == 200
        with psycopg.connect(url) as connection:
            connection.execute("lock table processing_job_events in access exclusive mode")
            # Every stream looks once a second or more often: all of them stand before the lock by then.
            begin = monotonic()
            while monotonic() < begin + 3:
                answer = httpx.get(f"{served.address}{API}/documents", headers=OWNER, timeout=20)
                assert answer.status_code == 200
