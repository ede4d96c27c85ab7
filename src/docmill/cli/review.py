"""`docmill review`: look at what the machine is unsure of, and have the last word."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from docmill.cli.acting import Organisation, acting_for
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json, Limit
from docmill.cli.output import note_page, print_json, record
from docmill.cli.review_text import (
    comments_shown,
    details,
    failing_shown,
    history_table,
    item_json,
    item_table,
    stands,
    view_json,
)
from docmill.model.review import ReviewStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.model.people import Principal
    from docmill.services.review import ItemSummary, Review

_EXAMPLES = """\
Examples:
  docmill review next --claim                       the item that comes first, for you
  docmill review correct ITEM total=110.50          or line_items[0].amount=5
  docmill review confirm ITEM                       all else that needs a look is right
  docmill review approve ITEM                       the outputs are written anew"""

app = App(name="review", help="See what the machine is unsure of, correct it, approve it.")

ItemId = Annotated[str, Parameter(name="ITEM", help="Its file, its id or its document's, or the first digits of one.")]
As = Annotated[
    str | None,
    Parameter(
        name="--as", metavar="NAME", help="Who does this: a member's address, or any name; default: your user name."
    ),
]
Version = Annotated[
    int | None, Parameter(name="--if-version", metavar="N", help="Only if the item is still at this version.")
]
Status = Literal["open", "pending", "in_review", "approved", "corrected", "rejected"]


@contextmanager
def desk(organisation: str | None, name: str | None = None) -> "Iterator[tuple[Review, Principal, Installation]]":
    """The review of an organisation, and whoever acts: with an address, as that member."""
    with acting_for(organisation, name) as (installation, acting):
        if name is not None and "@" in name:
            member = installation.people.get(acting, name)
            acting = replace(acting, id=member.id, name=member.name)
        yield installation.review, acting, installation


def whom(installation: "Installation", acting: "Principal", name: str) -> str:
    """By what review knows somebody: a member, named by the address, by the id; others by the name."""
    return installation.people.get(acting, name).id if "@" in name else name


def tell_item(item: "ItemSummary", *, json: bool) -> int:
    """Say where an item stands now; the exit code of a command that was done."""
    if json:
        print_json({"item": item_json(item)})
    else:
        print(stands(item))
    return 0


@app.command(name="list")
def list_items(
    *,
    status: Annotated[Status, Parameter(metavar="STATUS", help="open, or one status.")] = "open",
    assigned_to: Annotated[str | None, Parameter(metavar="NAME", help="Only those assigned to this person.")] = None,
    unassigned: Annotated[bool, Parameter(negative="", help="Only those assigned to nobody.")] = False,
    claimed_by: Annotated[str | None, Parameter(metavar="NAME", help="Only those this person is reviewing.")] = None,
    limit: Limit = 50,
    after: Annotated[str | None, Parameter(metavar="ITEM", help="Go on after this one: the next page.")] = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """List review items: open ones by priority, decided ones the newest first."""
    if unassigned and assigned_to is not None:
        raise WrongUse("--assigned-to and --unassigned exclude each other; give one of them.")
    with desk(organisation) as (review, me, installation):
        found = review.list(
            me,
            status="open" if status == "open" else ReviewStatus(status),
            assigned_to="" if unassigned else None if assigned_to is None else whom(installation, me, assigned_to),
            claimed_by=None if claimed_by is None else whom(installation, me, claimed_by),
            limit=limit,
            after=None if after is None else review.find_id(me, after),
        )
    if json:
        print_json({"items": [item_json(item) for item in found]})
    elif found:
        from docmill.bootstrap.clock import this_moment

        item_table(found, this_moment())
        note_page(len(found), limit, found[-1].id)
    else:
        print("Nothing to review." if status == "open" else "No such items.", file=sys.stderr)
    return 0


@app.command(name="next", help_epilogue=_EXAMPLES)
def next_item(
    *,
    claim: Annotated[bool, Parameter(negative="", help="Claim it: it is yours until you are done.")] = False,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Show the item that comes first, with its fields."""
    with desk(organisation, name) as (review, me, _):
        found = review.claim_next(me) if claim else next(iter(review.next(me)), None)
        view = None if found is None else review.get(me, found.id)
    if json:
        print_json(None if view is None else view_json(view))
    elif view is None:
        print("Nothing to review.", file=sys.stderr)
    else:
        details(view)
    return 0


@app.command
def show(item: ItemId, /, *, organisation: Organisation = None, json: Json = False) -> int:
    """Show an item: its fields with confidence, evidence and checks, its priority and what that is made of."""
    with desk(organisation) as (review, me, _):
        view = review.get(me, review.find_id(me, item))
        said = review.comments(me, view.item.id)
    if json:
        print_json(view_json(view) | {"comments": [record(each) for each in said]})
    else:
        details(view)
        comments_shown(said)
    return 0


@app.command
def claim(
    item: ItemId, /, *, version: Version = None, name: As = None, organisation: Organisation = None, json: Json = False
) -> int:
    """Claim an item: nobody else writes on it until you are done or your claim ends."""
    with desk(organisation, name) as (review, me, _):
        return tell_item(review.claim(me, review.find_id(me, item), version=version), json=json)


@app.command
def release(
    item: ItemId, /, *, version: Version = None, name: As = None, organisation: Organisation = None, json: Json = False
) -> int:
    """Give a claimed item back; what you did to its fields stays."""
    with desk(organisation, name) as (review, me, _):
        return tell_item(review.release(me, review.find_id(me, item), version=version), json=json)


@app.command(usage="docmill review correct [OPTIONS] ITEM FIELD=VALUE...")
def correct(
    item: ItemId,
    values: Annotated[
        tuple[str, ...],
        Parameter(name="FIELD=VALUE", negative="", help="Such as total=110.50 or line_items[0].amount=5."),
    ],
    /,
    *,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Correct fields of an item that you have claimed, or add those that were not found.

    Values are locked: no later run overwrites them.
    """
    wanted = []
    for entry in values:
        path, equals, value = entry.partition("=")
        if not equals or not path.strip():
            raise WrongUse(f"{entry!r} is not FIELD=VALUE, such as total=110.50.")
        wanted.append((path.strip(), value))
    if not wanted:
        raise WrongUse("Name what to correct: docmill review correct ITEM total=110.50")
    with desk(organisation, name) as (review, me, _):
        found = review.find_id(me, item)
        for path, value in wanted:
            after = review.correct(me, found, path, value, version=version)
            version = None if version is None else after.version
        if not json:
            failing_shown(review.get(me, found))
        return tell_item(after, json=json)


@app.command(usage="docmill review confirm [OPTIONS] ITEM [FIELDS...]")
def confirm(
    item: ItemId,
    fields: Annotated[
        tuple[str, ...], Parameter(name="FIELDS", negative="", help="Default: all that need a look and have a value.")
    ] = (),
    /,
    *,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Say that values are right; they are locked."""
    with desk(organisation, name) as (review, me, _):
        after = review.confirm(me, review.find_id(me, item), fields or None, version=version)
        if not json:
            failing_shown(review.get(me, after.id))
        return tell_item(after, json=json)


@app.command
def clear(
    item: ItemId,
    field: Annotated[str, Parameter(name="FIELD", help="Such as due_date, or a whole row: line_items[2].")],
    /,
    *,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Say that the document has no such value."""
    with desk(organisation, name) as (review, me, _):
        return tell_item(review.clear(me, review.find_id(me, item), field, version=version), json=json)


@app.command
def undo(
    item: ItemId,
    field: Annotated[str | None, Parameter(name="FIELD", help="Only what was done to this field.")] = None,
    /,
    *,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Take back the last thing done to an item that is not decided."""
    with desk(organisation, name) as (review, me, _):
        return tell_item(review.undo(me, review.find_id(me, item), field, version=version), json=json)


@app.command
def postpone(
    item: ItemId,
    length: Annotated[str, Parameter(name="TIME", help="For so long: 2h, 3d.")],
    /,
    *,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Leave an item alone for a while: nobody is given it before. Its SLA goes on."""
    from docmill.db.clock import database_now
    from docmill.settings.section import parse_length

    pause = parse_length(length)
    if pause is None or pause <= timedelta(0):
        raise WrongUse(f"{length!r} is no length of time; write 2h or 3d.")
    with desk(organisation, name) as (review, me, installation):
        with installation.database.read() as connection:
            until = database_now(connection) + pause
        return tell_item(review.postpone(me, review.find_id(me, item), until, version=version), json=json)


@app.command
def resume(
    item: ItemId, /, *, version: Version = None, name: As = None, organisation: Organisation = None, json: Json = False
) -> int:
    """End a postponement now."""
    with desk(organisation, name) as (review, me, _):
        return tell_item(review.resume(me, review.find_id(me, item), version=version), json=json)


@app.command(usage="docmill review assign [OPTIONS] ITEM [NAME | --nobody]")
def assign(
    item: ItemId,
    to: Annotated[
        str | None,
        Parameter(name="NAME", help="A member's address, or any name; default: the reviewer who has the fewest."),
    ] = None,
    /,
    *,
    nobody: Annotated[bool, Parameter(negative="", help="Whoever comes first may take it.")] = False,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Give an item to somebody; the claim of whoever has it ends."""
    if nobody and to is not None:
        raise WrongUse("A name and --nobody exclude each other; give one of them.")
    with desk(organisation, name) as (review, me, installation):
        found = review.find_id(me, item)
        if nobody:
            return tell_item(review.unassign(me, found, version=version), json=json)
        chosen = None if to is None else whom(installation, me, to)
        return tell_item(review.assign(me, found, chosen, version=version), json=json)


@app.command
def comment(
    item: ItemId,
    text: Annotated[str, Parameter(name="TEXT", help="What you want others to know.")],
    /,
    *,
    field: Annotated[str | None, Parameter(metavar="FIELD", help="About this field.")] = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Say something about an item, or about one of its fields."""
    with desk(organisation, name) as (review, me, _):
        said = review.comment(me, review.find_id(me, item), text, path=field)
    if json:
        print_json({"comment": record(said)})
    else:
        print(said.id)
    return 0


@app.command
def history(
    item: ItemId,
    field: Annotated[str | None, Parameter(name="FIELD", help="Only this field.")] = None,
    /,
    *,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Show what was done to the fields of an item, oldest first."""
    with desk(organisation) as (review, me, _):
        told = review.history(me, review.find_id(me, item), field)
    if json:
        print_json({"history": [record(each) for each in told]})
    elif told:
        history_table(told)
    else:
        print("Nobody has touched it.", file=sys.stderr)
    return 0
