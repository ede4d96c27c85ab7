"""`docmill keys`: the keys by which programs come in."""

import sys
from datetime import timedelta
from typing import Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import Organisation, acting_for
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json, print_table, record
from docmill.model.people import Role

EXAMPLES = """\
Examples:
  docmill keys create uploader --scope documents.write
  docmill keys create dashboard --role viewer --expires 90d
  docmill keys revoke uploader"""

app = App(name="keys", help="Make, list and revoke API keys.")


@app.command(help_epilogue=EXAMPLES)
def create(
    name: Annotated[str, Parameter(name="NAME", help="What it is for.")],
    /,
    *,
    role: Annotated[Role, Parameter(metavar="ROLE", help="What it may do at most.")] = Role.SERVICE,
    scope: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="PERMISSION",
            negative="",
            consume_multiple=False,
            help="Only this part of what the role may, as documents.read; may be given several times.",
        ),
    ] = (),
    expires: Annotated[str | None, Parameter(metavar="TIME", help="After so long it opens nothing: 90d.")] = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Make a key and print it: it is not stored, and shown only now."""
    with acting_for(organisation) as (installation, acting):
        key, token = installation.keys.create(
            acting, name, role=role, scopes=scope or None, expires_in=_length(expires)
        )
    if json:
        print_json({"key": record(key, token=token)})
    else:
        print(token)
        print(f"{key.name}: {', '.join(key.scopes)}. Keep it; it is shown only now.", file=sys.stderr)
    return 0


@app.command(name="list")
def list_keys(*, organisation: Organisation = None, json: Json = False) -> int:
    """List keys by their first letters, the newest first."""
    with acting_for(organisation) as (installation, acting):
        found = installation.keys.list(acting)
    if json:
        print_json({"keys": [record(each) for each in found]})
    elif not found:
        print("There are no keys. `docmill keys create` makes one.", file=sys.stderr)
    else:
        rows = [
            [
                each.hint + "…",
                each.name,
                each.role.value,
                "never" if each.used_at is None else f"{each.used_at:%Y-%m-%d %H:%M}",
                _ends(each.revoked_at is not None, None if each.expires_at is None else f"{each.expires_at:%Y-%m-%d}"),
            ]
            for each in found
        ]
        print_table(["KEY", "NAME", "ROLE", "USED", "ENDS"], rows, give_way=["NAME"])
    return 0


@app.command
def revoke(
    key: Annotated[str, Parameter(name="KEY", help="The id of a key, its first letters as listed, or its name.")],
    /,
    *,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Make a key worthless, at once and for good."""
    with acting_for(organisation) as (installation, acting):
        revoked = installation.keys.revoke(acting, key.rstrip("…"))
    if json:
        print_json({"key": record(revoked)})
    else:
        print(f"{revoked.name} ({revoked.hint}…) opens nothing any more.")
    return 0


def _ends(revoked: bool, expires: str | None) -> str:
    return "revoked" if revoked else expires or "never"


def _length(text: str | None) -> timedelta | None:
    from docmill.settings.section import parse_length

    found = None if text is None else parse_length(text)
    if text is not None and (found is None or found <= timedelta(0)):
        raise WrongUse(f"{text!r} is no length of time; write 90d or 12h.")
    return found
