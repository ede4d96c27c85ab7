"""API keys: made, shown once, listed by their first letters, revoked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.shapes import Id, Text, Wire, only_id
from docmill.model.people import Permission, Role
from docmill.services.keys import ApiKey

routes = APIRouter(prefix="/keys", tags=["keys"], route_class=Guarded)


class NewKey(Wire):
    """A key that may do what its role may, or the part of it in `scopes`."""

    name: Annotated[Text, Field(min_length=1, max_length=200)]
    standing: Annotated[Role, Field(strict=False, description="The role of the key.")] = Role.SERVICE
    scopes: Annotated[list[Annotated[Text, Field(max_length=100)]], Field(min_length=1, max_length=100)] | None = None
    expires_in: Annotated[int, Field(ge=1, le=10 * 365 * 86_400, description="Seconds.")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMade:
    """A new key. The token is shown this once."""

    key: ApiKey
    token: str | None


@routes.get("")
@allowed(Permission.KEYS_MANAGE)
def list_keys(call: Acting) -> Sequence[ApiKey]:
    """All keys, the newest first."""
    return call.org.keys.list(call.principal)


@routes.post("", status_code=201, response_model=KeyMade)
@allowed(Permission.KEYS_MANAGE)
def create_key(body: NewKey, call: Acting, creating: Creating) -> Response:
    """Make a key; it cannot be asked for again."""

    def work() -> KeyMade:
        key, token = call.org.keys.create(
            call.principal,
            body.name,
            role=body.standing,
            scopes=body.scopes,
            expires_in=None if body.expires_in is None else timedelta(seconds=body.expires_in),
        )
        return KeyMade(key=key, token=token)

    return creating.once(body, work, secret="token")


@routes.delete("/{key_id}")
@allowed(Permission.KEYS_MANAGE)
def revoke_key(key_id: Id, call: Acting) -> ApiKey:
    """Make a key worthless; a second time changes nothing."""
    return call.org.keys.revoke(call.principal, only_id(key_id, "key"))
