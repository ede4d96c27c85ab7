"""Who asks, and whether they may: decided before a byte of the body is read.

Every endpoint says what it needs, `@allowed(Permission.JOBS_READ)`, or that it is open to all, `@public`; one that says
neither does not start.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeVar

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Message, Receive

from docmill.api.limiting import Limiter
from docmill.api.problems import Unauthenticated
from docmill.bootstrap import App
from docmill.bootstrap.organisation import Organisation
from docmill.model.errors import InvalidInput
from docmill.model.people import Permission, Principal
from docmill.services.batches import Batches
from docmill.services.issues import Issues
from docmill.services.jobs import Jobs

F = TypeVar("F", bound=Callable[..., Any])
_NEEDS = "__docmill_needs__"
_BIG = "__docmill_big__"
_ROOMY = "__docmill_roomy__"
_STRANGERS = 64 << 10
"""Bytes that somebody may send of whom nothing is known."""
KNOWN: Literal["known"] = "known"
COOKIE = "docmill_session"
SPOKEN = "docmill.token."
"""Before the token, in the name of a protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a request shows of who sends it."""

    bearer: str | None
    session: str | None
    """The session of the web app, by its cookie."""
    address: str
    """Where it comes from."""


class Authenticator(Protocol):
    """Whoever knows people by what they show. May ask a database."""

    def __call__(self, shown: Shown) -> Principal:
        """Who this is; Unauthenticated for nobody."""


def allowed(permission: Permission) -> Callable[[F], F]:
    """The endpoint needs this permission."""

    def mark(endpoint: F) -> F:
        setattr(endpoint, _NEEDS, permission)
        return endpoint

    return mark


def known(endpoint: F) -> F:
    """The endpoint is for everybody who is somebody here, whatever they may do."""
    setattr(endpoint, _NEEDS, KNOWN)
    return endpoint


def public(endpoint: F) -> F:
    """The endpoint is open to all: it checks by other means, or tells nothing. It reads little: see `roomy`."""
    setattr(endpoint, _NEEDS, None)
    return endpoint


def roomy(endpoint: F) -> F:
    """The endpoint is open to all, and what it is sent may be as large as what members send."""
    setattr(endpoint, _ROOMY, True)
    return endpoint


def streamed(endpoint: F) -> F:
    """The endpoint reads its body itself, piece by piece, and counts."""
    setattr(endpoint, _BIG, True)
    return endpoint


def needs(endpoint: Callable[..., Any]) -> Permission | Literal["known"] | None:
    """What an endpoint needs; KNOWN: to be somebody; None: nothing."""
    if not hasattr(endpoint, _NEEDS):
        raise TypeError(f"{endpoint.__qualname__} says neither what permission it needs nor that it is public.")
    found: Permission | Literal["known"] | None = getattr(endpoint, _NEEDS)
    return found


def shown_by(connection: HTTPConnection) -> Shown:
    """What a request or a WebSocket shows."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else None
    if bearer is None and connection.scope["type"] == "websocket":
        # Browsers cannot set headers of a WebSocket, but may name protocols.
        named = connection.scope.get("subprotocols", ())
        bearer = next((each.removeprefix(SPOKEN) for each in named if each.startswith(SPOKEN)), None)
    address = connection.client.host if connection.client else ""
    return Shown(bearer=bearer or None, session=connection.cookies.get(COOKIE), address=address)


async def authenticated(connection: HTTPConnection) -> Principal:
    """Who asks; Unauthenticated for nobody."""
    principal: Principal = await run_in_threadpool(connection.app.state.authenticator, shown_by(connection))
    return principal


async def admit(connection: HTTPConnection, permission: Permission | Literal["known"]) -> Principal:
    """Who asks, if they may; Unauthenticated, Forbidden or TooManyRequests if not.

    Failures count against the address, and only who fails hears of it: behind a proxy everybody has the same one, and
    a secret that opens something was not guessed.
    """
    limiter: Limiter = connection.app.state.limiter
    address = connection.client.host if connection.client else ""
    try:
        principal = await authenticated(connection)
    except Unauthenticated:
        limiter.check_failures(address)
        limiter.failed(address)
        raise
    limiter.take(f"{principal.org_id}/{principal.kind}/{principal.id}")
    if permission != KNOWN:
        principal.require(permission)
    connection.state.principal = principal
    return principal


def _limited(receive: Receive, most: int) -> Receive:
    """A body of at most so many bytes, counted as they come: what a header says is not believed."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > most:
                raise too_large(most)
        return message

    return counted


def too_large(most: int) -> HTTPException:
    """The answer to a body beyond the limit."""
    return HTTPException(413, f"The body is larger than {most:,} bytes; send less at once.", {"Connection": "close"})


def _query_names(dependant: Any) -> set[str]:
    """Of all parameters that a route and what it depends on take from the query."""
    names = {parameter.alias for parameter in dependant.query_params}
    return names.union(*map(_query_names, dependant.dependencies))


def only(known: set[str], request: HTTPConnection) -> None:
    """A misspelt parameter is told, instead of being overlooked. Links and other people's answers bring their own."""
    for name in request.query_params:
        if name not in known:
            there = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise InvalidInput(f"This path knows no parameter {name[:80]!r}; {there}.", field=f"query.{name[:80]}")


class Guarded(APIRoute):
    """A route that knows who asks before it reads what they send."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        permission = needs(self.endpoint)
        big = hasattr(self.endpoint, _BIG)
        strangers = permission is None and not hasattr(self.endpoint, _ROOMY)
        known = _query_names(self.dependant)

        async def guarded(request: Request) -> Response:
            if permission is not None:
                await admit(request, permission)
                only(known, request)
            if not big:
                most: int = request.app.state.max_body
                if strangers:
                    most = min(most, _STRANGERS)
                declared = request.headers.get("content-length", "0")
                if declared.isdigit() and int(declared[:20]) > most:
                    raise too_large(most)
                request = Request(request.scope, _limited(request.receive, most))
            return await handle(request)

        return guarded


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that was admitted: who acts, and the services of their organisation."""

    app: App
    principal: Principal
    org: Organisation

    @property
    def jobs(self) -> Jobs:
        """The jobs that whoever asks may see: all, or where the settings say so their own."""
        return self.app.jobs_for(self.principal)

    @property
    def batches(self) -> Batches:
        """Likewise."""
        me = self.app.sees_as(self.principal)
        if me is None:
            return self.org.batches.by(self.principal)
        seen = Batches(self.app.database, self.app.bell, self.org.id, self.app.stores, seen_by=me)
        return seen.by(self.principal)

    @property
    def issues(self) -> Issues:
        """Likewise: those that concern whoever asks."""
        me = self.app.sees_as(self.principal)
        if me is None:
            return self.org.issues.by(self.principal)
        return Issues(self.app.database, self.app.bell, self.org.id, self.app.stores, seen_by=me).by(self.principal)


async def _call(request: Request) -> Call:
    app: App = request.app.state.docmill
    principal: Principal = request.state.principal
    return Call(app=app, principal=principal, org=app.for_org(principal.org_id))


async def _installation(request: Request) -> App:
    app: App = request.app.state.docmill
    return app


Acting = Annotated[Call, Depends(_call)]
Installation = Annotated[App, Depends(_installation)]
