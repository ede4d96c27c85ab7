"""`docmill init` and `docmill members`: found an organisation, and say who belongs to it."""

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import Organisation, acting_for, me
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json, print_table, record
from docmill.model.people import Role

if TYPE_CHECKING:
    from docmill.services.invitations import Invitation

EXAMPLES = """\
Examples:
  docmill init --organisation "Mill & Sons" --email ann@mill.example
  docmill members invite bob@mill.example --role reviewer
  docmill members role bob@mill.example admin"""

app = App(name="members", help="See who belongs to the organisation; invite, promote and remove people.")

Who = Annotated[str, Parameter(name="MEMBER", help="The address or the id of a member.")]


def init(
    *,
    organisation: Annotated[str, Parameter(metavar="NAME", help="What the organisation is called.")],
    email: Annotated[str, Parameter(metavar="ADDRESS", help="Of its first owner.")],
    name: Annotated[
        str | None, Parameter(metavar="NAME", help="Of its first owner; default: from the address.")
    ] = None,
    another: Annotated[
        bool, Parameter(negative="", help="Found one more, beside the organisation of this installation.")
    ] = False,
    json: Json = False,
) -> int:
    """Found the organisation of this installation and its first owner, and print the way in.

    What was processed before belongs to it. Without `docmill init` all commands work as well: it is for those who let
    others in.
    """
    from docmill.cli.opening import opened
    from docmill.model.people import system_principal

    with opened() as whole:
        owner = name or email.partition("@")[0]
        founded = whole.organisations.found(organisation, email, owner, another=another, by=me())
        view = whole.of(founded.organisation.id)
        try:
            system = system_principal(view.org_id, me())
            key, secret = view.keys.create(system, "first key", role=Role.OWNER)
        finally:
            view.close()
    if json:
        print_json(
            {
                "organisation": record(founded.organisation),
                "owner": {"id": founded.owner_id, "email": founded.invitation.email},
                "invitation": record(founded.invitation, token=founded.token),
                "key": record(key, token=secret),
            }
        )
        return 0
    print(f"{founded.organisation.name} is founded, and {founded.invitation.email} owns it. Shown only now:")
    print(f"  invitation  {founded.token}")
    print(f"  API key     {secret}")
    print("The invitation lets its owner choose a password, once, within a week:", file=sys.stderr)
    print("  docmill members join INVITATION", file=sys.stderr)
    return 0


@app.command(name="list", help_epilogue=EXAMPLES)
def list_members(*, organisation: Organisation = None, json: Json = False) -> int:
    """List members, and invitations that nobody has used yet."""
    with acting_for(organisation) as (installation, acting):
        members = installation.people.list(acting)
        invited = installation.people.invitations(acting)
    if json:
        print_json({"members": [record(each) for each in members], "invitations": [record(each) for each in invited]})
    elif not members and not invited:
        print("Nobody yet. `docmill init` makes the first owner.", file=sys.stderr)
    else:
        rows = [[each.email, each.role.value, each.name, each.id] for each in members]
        rows += [
            [each.email, each.role.value, f"invited until {each.expires_at:%Y-%m-%d %H:%M}", each.id]
            for each in invited
        ]
        print_table(["ADDRESS", "ROLE", "NAME", "ID"], rows, give_way=["NAME"])
    return 0


@app.command
def invite(
    email: Annotated[str, Parameter(name="ADDRESS", help="Who is invited.")],
    /,
    *,
    role: Annotated[Role, Parameter(metavar="ROLE", help="owner, admin, reviewer, viewer or service.")] = Role.VIEWER,
    within: Annotated[str, Parameter(metavar="TIME", help="How long it is good for: 2d, 12h.")] = "7d",
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Print a way in for somebody: good once, and for a while."""
    with acting_for(organisation) as (installation, acting):
        made, token = installation.people.invite(acting, email, role, within=_length(within))
    return _way_in(made, token, json=json)


@app.command
def withdraw(
    invitation: Annotated[str, Parameter(name="INVITATION", help="The id of an invitation, as listed.")],
    /,
    *,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Take back an invitation that nobody has used."""
    with acting_for(organisation) as (installation, acting):
        installation.people.withdraw(acting, invitation)
    if json:
        print_json({"withdrawn": invitation})
    else:
        print("Withdrawn.")
    return 0


@app.command
def reset(who: Who, /, *, organisation: Organisation = None, json: Json = False) -> int:
    """Print a way for a member to choose a password anew; good for a day."""
    with acting_for(organisation) as (installation, acting):
        made, token = installation.people.reset(acting, who)
    return _way_in(made, token, json=json)


@app.command
def join(
    token: Annotated[str, Parameter(name="INVITATION", help="What was printed when you were invited.")],
    /,
    *,
    name: Annotated[str | None, Parameter(metavar="NAME", help="How others see you.")] = None,
    json: Json = False,
) -> int:
    """Use an invitation: choose a password (asked for, or read from stdin), or prove the one you have."""
    from docmill.cli.opening import opened

    password = _password()
    with opened() as installation:
        signed_in = installation.sessions.accept(token, password, name=name)
        installation.sessions.sign_out(signed_in.token)
    principal = signed_in.principal
    if json:
        print_json({"member": {"id": principal.id, "name": principal.name, "role": principal.role.value}})
    else:
        print(f"Welcome, {principal.name}: you are {principal.role} now.")
    return 0


@app.command(name="role")
def set_role(
    who: Who,
    role: Annotated[Role, Parameter(name="ROLE", help="owner, admin, reviewer, viewer or service.")],
    /,
    *,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Change what a member may do, from their next request on."""
    with acting_for(organisation) as (installation, acting):
        member = installation.people.set_role(acting, who, role)
    if json:
        print_json({"member": record(member)})
    else:
        print(f"{member.email} is {member.role} now.")
    return 0


@app.command
def remove(who: Who, /, *, organisation: Organisation = None, json: Json = False) -> int:
    """Remove a member: their sessions end, and what was theirs to review is for others."""
    with acting_for(organisation) as (installation, acting):
        member = installation.people.get(acting, who)
        installation.people.remove(acting, member.id)
    if json:
        print_json({"removed": record(member)})
    else:
        print(f"{member.email} is no member any more.")
    return 0


def _way_in(made: "Invitation", token: str, *, json: bool) -> int:
    if json:
        print_json({"invitation": record(made, token=token)})
    else:
        print(token)
        print(f"For {made.email}, once, until {made.expires_at:%Y-%m-%d %H:%M} UTC; shown only now.", file=sys.stderr)
        print(
            "They use it by `docmill members join` here, or POST /api/v1/session/accept from anywhere.", file=sys.stderr
        )
    return 0


def _password() -> str:
    if sys.stdin.isatty():
        import getpass

        given = getpass.getpass("Password: ")
        if getpass.getpass("Once more: ") != given:
            raise WrongUse("That was not the same twice; nothing has happened. Type the command again.")
        return given
    return sys.stdin.readline().rstrip("\n")


def _length(text: str) -> timedelta:
    from docmill.settings.section import parse_length

    found = parse_length(text)
    if found is None or found <= timedelta(0):
        raise WrongUse(f"{text!r} is no length of time; write 2d or 12h.")
    return found
