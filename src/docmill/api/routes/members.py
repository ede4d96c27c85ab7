"""Members of the organisation, and invitations to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.etags import UnlessChanged, etag, tag_of
from docmill.api.shapes import Id, Text, Wire, only_id
from docmill.model.people import Permission, Role
from docmill.services.invitations import Invitation
from docmill.services.people import Member

routes = APIRouter(tags=["members"], route_class=Guarded)

Standing = Annotated[Role, Field(strict=False)]


class NewMember(Wire):
    """Somebody who is to belong to the organisation."""

    email: Annotated[Text, Field(min_length=3, max_length=320)]
    standing: Annotated[Standing, Field(description="The role they are to have.")] = Role.REVIEWER


class MemberChange(Wire):
    """What a member is from now on."""

    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """A way in. The token is shown this once."""

    invitation: Invitation
    token: str | None


def _tag(member: Member) -> str:
    return tag_of("member", member.id, member.role)


@routes.get("/members")
@allowed(Permission.MEMBERS_READ)
def list_members(call: Acting) -> Sequence[Member]:
    """All members, by address."""
    return call.org.people.list(call.principal)


@routes.get("/members/{member_id}")
@allowed(Permission.MEMBERS_READ)
def get_member(member_id: Id, call: Acting, response: Response) -> Member:
    """One member."""
    found = call.org.people.get(call.principal, only_id(member_id, "member"))
    etag(response, _tag(found))
    return found


@routes.patch("/members/{member_id}")
@allowed(Permission.MEMBERS_MANAGE)
def change_member(member_id: Id, body: MemberChange, call: Acting, unless: UnlessChanged, response: Response) -> Member:
    """Let a member do something else; it counts from their next request on."""
    who = only_id(member_id, "member")
    changed = call.org.people.set_role(call.principal, who, body.standing, onto=lambda member: unless(_tag(member)))
    etag(response, _tag(changed))
    return changed


@routes.delete("/members/{member_id}", status_code=204)
@allowed(Permission.MEMBERS_MANAGE)
def remove_member(member_id: Id, call: Acting) -> None:
    """Let somebody go; their sessions end with it."""
    call.org.people.remove(call.principal, only_id(member_id, "member"))


@routes.post("/members/{member_id}/reset", status_code=201, response_model=Invited)
@allowed(Permission.MEMBERS_MANAGE)
def reset_member(member_id: Id, call: Acting, creating: Creating) -> Response:
    """A way for a member to choose a password anew; the token is not told again."""

    def work() -> Invited:
        invitation, token = call.org.people.reset(call.principal, only_id(member_id, "member"))
        return Invited(invitation=invitation, token=token)

    return creating.once({}, work, secret="token")


@routes.get("/invitations")
@allowed(Permission.MEMBERS_READ)
def list_invitations(call: Acting) -> Sequence[Invitation]:
    """Ways in that nobody has used yet."""
    return call.org.people.invitations(call.principal)


@routes.post("/invitations", status_code=201, response_model=Invited)
@allowed(Permission.MEMBERS_MANAGE)
def invite(body: NewMember, call: Acting, creating: Creating) -> Response:
    """Invite somebody; the token leads them in, and is not told again."""

    def work() -> Invited:
        invitation, token = call.org.people.invite(call.principal, body.email, body.standing)
        return Invited(invitation=invitation, token=token)

    return creating.once(body, work, secret="token")


@routes.delete("/invitations/{invitation_id}", status_code=204)
@allowed(Permission.MEMBERS_MANAGE)
def withdraw(invitation_id: Id, call: Acting) -> None:
    """Take an invitation back that nobody has used."""
    call.org.people.withdraw(call.principal, invitation_id)
