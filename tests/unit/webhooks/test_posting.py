"""A post follows no redirect, reads no endless answer, and comes back in time whatever the other side does."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from threading import Event, Thread
from time import monotonic

import pytest

from docmill.model.errors import InvalidInput
from docmill.webhooks.posting import MOST_READ, Reply, Unreachable, checked_url, post

NOW = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)


@contextmanager
def server(behave: Callable[[socket.socket, bytes], None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that does as told with each connection, after reading what has come."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        requests: list[bytes] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(65536))
                    try:
                        behave(connection, requests[-1])
                    except OSError:
                        continue

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/path?q=1", requests
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10.0)


def answering(text: bytes) -> Callable[[socket.socket, bytes], None]:
    return lambda connection, request: connection.sendall(text)


def test_the_body_arrives_as_it_was_given_with_its_headers() -> None:
    with server(answering(b"HTTP/1.1 202 Accepted\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nok")) as (url, seen):
        reply = post(url, b"the body", {"webhook-id": "m"}, timeout=5.0)
    assert reply == Reply(status=202, retry_after="7", body=b"ok")
    assert seen[0].startswith(b"POST /path?q=1 HTTP/1.1")
    assert b"webhook-id: m" in seen[0]


def test_a_redirect_is_not_followed() -> None:
    with server(answering(b"HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")) as (url, seen):
        assert post(url, b"", {}, timeout=5.0).status == 307
    assert len(seen) == 1


def test_an_endless_answer_is_cut() -> None:
    def endless(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with server(endless) as (url, _):
        assert len(post(url, b"", {}, timeout=5.0).body) == MOST_READ


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nx: "])
def test_an_answer_that_drips_is_given_up_in_time(beginning: bytes) -> None:
    done = Event()

    def drip(connection: socket.socket, request: bytes) -> None:
        connection.sendall(beginning)
        while beginning and not done.wait(0.02):
            connection.sendall(b"x")
        done.wait(10.0)

    with server(drip) as (url, _):
        begun = monotonic()
        with pytest.raises(Unreachable):
            post(url, b"", {}, timeout=0.3)
        assert monotonic() - begun < 5.0
        done.set()


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 999999 Odd\r\n\r\n"])
def test_an_answer_that_is_none_is_worth_another_attempt(answer: bytes) -> None:
    with server(answering(answer)) as (url, _), pytest.raises(Unreachable):
        post(url, b"", {}, timeout=5.0)


def test_nobody_there_is_worth_another_attempt() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable):
        post(f"http://127.0.0.1:{port}/", b"", {}, timeout=5.0)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hub",
        "ftp://hub/",
        "file:///etc/passwd",
        "http://",
        "http://user:secret@hub/",
        "http://user@hub/",
        "http://hub:port/",
        "http://hub:99999/",
        "http://hub:",
        "http://[::1]:/path",
        "http://hub/a b",
        "http://hub/\r\nx: y",
        "http://[::1",
        "http://höb/",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        checked_url(url)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("Sat, 31 Jan 2026 08:01:00 GMT", 60.0),
        ("Sat, 31 Jan 2026 07:00:00 GMT", 0.0),
        ("Sat, 31 Jan 2026 08:01:00", None),
        ("soon", None),
        ("-5", None),
        ("٣", None),
        ("9" * 500, 999_999_999.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert Reply(status=429, retry_after=header, body=b"").retry_seconds(NOW) == seconds
