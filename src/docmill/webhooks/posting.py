"""One POST to one place: no redirect followed, no proxy asked, no answer longer or later than allowed.

Blocking; callers on an event loop use a thread. A place that the administrator names may be on the own network; one
that somebody else names must be `public`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from threading import Event, Timer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from docmill.model.errors import InvalidInput, RetryableError
from docmill.webhooks.addresses import connect

if TYPE_CHECKING:
    from http.client import HTTPConnection

MOST_READ = 64 * 1024
"""Bytes of an answer that are looked at; nobody needs more to learn that a message was taken."""


class Unreachable(RetryableError):
    """Nobody answered, or not in time."""

    code = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the other side said."""

    status: int
    retry_after: str | None
    body: bytes

    def retry_seconds(self, now: datetime) -> float | None:
        """Retry-After as seconds from now: a number or a date; None if there is none that can be read."""
        if self.retry_after is None:
            return None
        if self.retry_after.isascii() and self.retry_after.isdigit():
            return float(self.retry_after[:9])
        try:
            return max(0.0, (parsedate_to_datetime(self.retry_after) - now).total_seconds())
        except (TypeError, ValueError):
            return None


def checked_url(url: str) -> str:
    """The URL, if it is one to post to."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # A colon with nothing behind it: somebody forgot the port, or a variable was empty.
        sound = sound and not parts.netloc.endswith(":")
    except ValueError:
        sound = False
    if not sound or not url.isascii() or any(character <= " " for character in url):
        raise InvalidInput(f"{url!r} is no address to post to; write http:// or https:// and a host.", field="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "An address to post to holds no user name or password: it would end up in logs.", field="url"
        )
    return url


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float, public: bool = False) -> Reply:
    """Post the body and wait for the answer, `timeout` seconds at most in all; Unreachable if there is none.

    `public`: only to the outside world; AddressRefused for our own network.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(checked_url(url))
    assert parts.hostname is not None
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=timeout)
    # The time-out of a socket begins anew with every byte: one that drips would hold us for ever.
    late = Event()
    watchdog = Timer(timeout, _hang_up, [connection, late])
    watchdog.daemon = True
    watchdog.start()
    try:
        if public:
            _open(connection, parts.hostname, secure=parts.scheme == "https", timeout=timeout)
            if late.is_set():
                # There was nothing to hang up yet.
                raise TimeoutError("timed out")
        target = parts.path or "/"
        connection.request("POST", f"{target}?{parts.query}" if parts.query else target, body, dict(headers))
        response = connection.getresponse()
        reply = Reply(
            status=response.status, retry_after=response.getheader("retry-after"), body=response.read(MOST_READ)
        )
        if late.is_set():
            # What was cut off looks like a short answer.
            raise TimeoutError("timed out")
        return reply
    except (OSError, HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise Unreachable(f"{parts.scheme}://{parts.netloc} did not answer: {reason[:200]}.") from error
    finally:
        watchdog.cancel()
        connection.close()


def _open(connection: "HTTPConnection", host: str, *, secure: bool, timeout: float) -> None:
    """Connect to an address that was judged; left to itself the connection would look the name up a second time."""
    sock = connect(host, connection.port, timeout=timeout, public=True)
    connection.sock = sock
    if secure:
        from ssl import create_default_context

        connection.sock = create_default_context().wrap_socket(sock, server_hostname=host)


def _hang_up(connection: "HTTPConnection", late: Event) -> None:
    from contextlib import suppress
    from socket import SHUT_RDWR

    late.set()
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(SHUT_RDWR)
