"""`docmill review sla` and `docmill review reviewers`: how long review may take, and who is given work."""

import sys
from typing import Annotated

from cyclopts import Parameter

from docmill.cli.acting import Organisation
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json
from docmill.cli.review import As, desk, whom


def sla(
    length: Annotated[str | None, Parameter(name="TIME", help="So long: 4h, 2d; none for no limit.")] = None,
    /,
    *,
    schema: Annotated[str | None, Parameter(metavar="NAME", help="Only for documents of this schema.")] = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Show how long items may take, or set it for items to come."""
    from docmill.settings.section import parse_length

    given = None if length in (None, "none") else parse_length(str(length))
    if length not in (None, "none") and given is None:
        raise WrongUse(f"{length!r} is no length of time; write 4h, 2d or none.")
    with desk(organisation, name) as (review, me, installation):
        if length is not None:
            review.set_sla(me, given, schema=schema)
        found, default = review.slas(me), installation.settings.review.sla
    known = {"*" if key is None else key: value for key, value in ({None: default} | found).items()}
    if json:
        print_json({"slas": {key: None if value is None else value.total_seconds() for key, value in known.items()}})
    else:
        for key, value in known.items():
            print(f"{key:<20} {'none' if value is None else value}")
    return 0


def reviewers(
    *,
    add: Annotated[
        str | None,
        Parameter(metavar="NAME", help="Give this person work from now on: a member's address, or any name."),
    ] = None,
    remove: Annotated[str | None, Parameter(metavar="NAME", help="Give this person no more work.")] = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Show who is given items by the least-loaded rule, or change it."""
    with desk(organisation, name) as (review, me, installation):
        if add is not None:
            review.enroll(me, whom(installation, me, add))
        if remove is not None:
            review.withdraw(me, whom(installation, me, remove))
        found = list(review.enrolled(me))
        addresses = {member.id: member.email for member in installation.people.list(me)}
    if json:
        print_json({"reviewers": found})
    else:
        shown = [addresses.get(each, each) for each in found]
        print("\n".join(shown) if shown else "Nobody is enrolled.", file=sys.stdout if shown else sys.stderr)
    return 0
