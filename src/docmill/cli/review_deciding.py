"""`docmill review approve` and `reject`: the last word on a document."""

from typing import Annotated

from cyclopts import Parameter

from docmill.cli.acting import Organisation
from docmill.cli.document_endings import finish
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json
from docmill.cli.review import As, ItemId, Version, desk, tell_item
from docmill.cli.review_text import item_json, stands


def approve(
    item: ItemId,
    /,
    *,
    anyway: Annotated[bool, Parameter(negative="", help="Also while checks fail: the paper says so.")] = False,
    wait: Annotated[bool, Parameter(help="Write the outputs before the command ends, or leave it to a worker.")] = True,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Approve an item that you have claimed, with the values as they stand.

    The outputs of the document are written anew with what you decided. While checks fail, you are told which, and
    asked to say --anyway.
    """
    from docmill.model.review import ChecksFail

    with desk(organisation, name) as (review, me, installation):
        try:
            decided = review.approve(me, review.find_id(me, item), version=version, anyway=anyway)
        except ChecksFail as fault:
            raise ChecksFail(f"{fault.message} `--anyway` approves it as it is.", **fault.details) from None
        if wait:
            finish(installation, decided.job_ids)
    if json:
        failing = list(decided.failing)
        print_json({"item": item_json(decided.item), "job_ids": list(decided.job_ids), "failing": failing})
    else:
        print(stands(decided.item))
    return 0


def reject(
    item: ItemId,
    /,
    *,
    reason: Annotated[
        str | None, Parameter(metavar="TEXT", help="Why, for whoever looks at it later; it must be given.")
    ] = None,
    version: Version = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Reject a document that you have claimed, with a reason."""
    if reason is None:
        raise WrongUse("Say why it is rejected, for whoever looks at it later: --reason 'not addressed to us'.")
    with desk(organisation, name) as (review, me, _):
        return tell_item(review.reject(me, review.find_id(me, item), reason, version=version).item, json=json)
