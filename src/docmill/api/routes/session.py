"""Signing in and out, for people with a browser: the session is a cookie that no script can read.

By password, or by the word of an identity provider (`oidc.issuer`), to which the browser is sent and from which it
comes back; what it must bring back waits in another cookie meanwhile.
"""

import base64
import binascii
from dataclasses import asdict, astuple
from datetime import datetime
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse

from docmill.api.access import COOKIE, Guarded, Installation, public
from docmill.api.shapes import Text, Wire
from docmill.bootstrap import App
from docmill.bootstrap.clock import this_moment
from docmill.model.errors import NotFound
from docmill.people.oidc import Handshake, IdentityProvider, IdentityRefused
from docmill.services.sessions import SignedIn

routes = APIRouter(prefix="/session", tags=["session"], route_class=Guarded)

_HANDSHAKE = "docmill_handshake"
_MINUTES = 10
"""That somebody has to sign in with the provider."""
Password = Annotated[str, Field(min_length=1, max_length=1000)]


class SignIn(Wire):
    """Who wants in."""

    email: Annotated[Text, Field(min_length=3, max_length=320)]
    password: Password
    organisation: Annotated[Text, Field(min_length=1, max_length=200)] | None = None


class Acceptance(Wire):
    """A way in, and the password that is chosen (or proven) with it."""

    token: Annotated[Text, Field(min_length=1, max_length=500)]
    password: Password
    name: Annotated[Text, Field(min_length=1, max_length=200)] | None = None


class SessionOut(BaseModel):
    """Who is signed in now."""

    organisation: str
    principal: str
    name: str
    role: str
    expires_at: datetime


def _begun(request: Request, response: Response, signed_in: SignedIn) -> SessionOut:
    left = signed_in.expires_at - this_moment()
    response.set_cookie(
        COOKIE,
        signed_in.token,
        max_age=int(left.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=_secure(request),
        path="/",
    )
    who = signed_in.principal
    return SessionOut(
        organisation=who.org_id,
        principal=who.id,
        name=who.name,
        role=who.role.value,
        expires_at=signed_in.expires_at,
    )


def _public_url(request: Request) -> str | None:
    app: App = request.app.state.docmill
    return app.settings.api.public_url


def _secure(request: Request) -> bool:
    """Whether the browser speaks TLS to whoever stands before us."""
    return request.url.scheme == "https" or (_public_url(request) or "").startswith("https:")


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None


@routes.post("")
@public
def sign_in(body: SignIn, request: Request, response: Response, app: Installation) -> SessionOut:
    """Begin a session; the one that the browser had until now ends."""
    signed_in = app.sessions.sign_in(
        body.email,
        body.password,
        organisation=body.organisation,
        address=_address(request),
        previous=request.cookies.get(COOKIE),
    )
    return _begun(request, response, signed_in)


@routes.post("/accept")
@public
def accept(body: Acceptance, request: Request, response: Response, app: Installation) -> SessionOut:
    """Use an invitation: join the organisation, and be signed in."""
    signed_in = app.sessions.accept(body.token, body.password, name=body.name, address=_address(request))
    return _begun(request, response, signed_in)


@routes.delete("", status_code=204)
@public
def sign_out(request: Request, response: Response, app: Installation) -> None:
    """End the session; one that has ended is no mistake."""
    token = request.cookies.get(COOKIE)
    if token is not None:
        app.sessions.sign_out(token)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


@routes.get("/oidc", status_code=303, response_class=RedirectResponse)
@public
def begin_oidc(request: Request, app: Installation) -> RedirectResponse:
    """Send the browser to the identity provider."""
    place, handshake = _provider(app).begin(_return(request))
    answer = RedirectResponse(place, status_code=303)
    answer.set_cookie(
        _HANDSHAKE,
        base64.urlsafe_b64encode(orjson.dumps(asdict(handshake))).decode(),
        max_age=60 * _MINUTES,
        httponly=True,
        # The browser comes back by a link on the provider's page.
        samesite="lax",
        secure=_secure(request),
        path=request.url.path,
    )
    return answer


@routes.get("/oidc/return")
@public
def finish_oidc(
    request: Request,
    response: Response,
    app: Installation,
    code: Annotated[str, Query(min_length=1, max_length=4096)],
    state: Annotated[str, Query(min_length=1, max_length=4096)],
) -> SessionOut:
    """Where the provider sends the browser back to: begin a session for the member it vouches for."""
    provider = _provider(app)
    identity = provider.finish(code, state, _handshake(request), _return(request))
    response.delete_cookie(_HANDSHAKE, path=request.url.path.removesuffix("/return"), httponly=True, samesite="lax")
    return _begun(request, response, app.sessions.enter(identity.email, previous=request.cookies.get(COOKIE)))


def _provider(app: App) -> IdentityProvider:
    if app.identity_provider is None:
        raise NotFound("There is no identity provider here (`oidc.issuer`). Sign in by password.")
    return app.identity_provider


def _return(request: Request) -> str:
    public = _public_url(request)
    own = request.url_for("finish_oidc")
    return str(own) if public is None else public + own.path


def _handshake(request: Request) -> Handshake:
    try:
        found = Handshake(**orjson.loads(base64.urlsafe_b64decode(request.cookies.get(_HANDSHAKE, ""))))
        if not all(isinstance(part, str) for part in astuple(found)):
            raise TypeError("a handshake is made of texts")
        return found
    except (ValueError, TypeError, binascii.Error) as error:
        raise IdentityRefused("This browser has begun no sign-in, or too long ago. Sign in again.") from error
