"""Signing in and out, for people with a browser: the session is a cookie that no script can read."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from docmill.api.access import COOKIE, Guarded, Installation, public
from docmill.api.shapes import Text, Wire
from docmill.services.sessions import SignedIn

routes = APIRouter(prefix="/session", tags=["session"], route_class=Guarded)

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
    left = signed_in.expires_at - datetime.now(UTC)
    response.set_cookie(
        COOKIE,
        signed_in.token,
        max_age=int(left.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
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
