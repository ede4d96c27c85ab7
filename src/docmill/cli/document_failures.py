"""`docmill documents retry` and `docmill documents remove`: what to do about files that failed."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.acting import acting_for
from docmill.cli.document_endings import finish, pieces, tell
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.documents.records import DocumentRecord

Which = Annotated[str, Parameter(name="DOCUMENT", help="Ids, their first digits, or files; or give --failed.")]
Failed = Annotated[bool, Parameter(negative="", help="All documents that failed.")]
_PAGE = 200
"""Documents that are listed at a time."""


def retry(*documents: Which, failed: Failed = False, json: Json = False) -> int:
    """Process documents that failed once more, from the bytes that were kept.

    For those that failed because of a limit, a setting or something that was away. A file that is broken stays so.
    """
    from docmill.services.jobs import Retry

    with acting_for() as (installation, acting):
        # All are looked at before the first begins: whoever is refused has started nothing.
        chosen = _chosen(installation, documents, failed=failed)
        started = dict(_retriable(chosen, passing_over=failed))
        if passed_over := len(chosen) - len(started):
            told = f"of {counted(passed_over, 'failed document')} no bytes were kept; mend the files and process them"
            print(f"note: {told}. `docmill documents remove --failed` takes them off the list.", file=sys.stderr)
        for document_id, job_id in started.items():
            installation.jobs.by(acting).retry(job_id, Retry(everything=True), document_id=document_id)
        finish(installation, list(started.values()))
        return tell(installation, list(started), json=json)


def remove(*documents: Which, failed: Failed = False, json: Json = False) -> int:
    """Remove documents that failed and never had a result, with the bytes that were kept of them.

    Documents with a result stay; `docmill documents expire` deletes originals of those.
    """
    with acting_for() as (installation, acting):
        chosen = _chosen(installation, documents, failed=failed)
        # What was read before and failed when it was processed again stays, and is no mistake of whoever asks for all.
        leaving = [each.id for each in chosen if not failed or each.extraction_key is None]
        acted = installation.documents.by(acting)
        removed = sum(acted.discard(some) for some in pieces(leaving))
    if json:
        print_json({"removed": removed})
    else:
        print(f"{counted(removed, 'document')} removed.")
    return 0


def _chosen(installation: "Installation", named: Sequence[str], *, failed: bool) -> "list[DocumentRecord]":
    from docmill.model.documents import DocumentStatus

    if failed == bool(named):
        raise WrongUse("Name documents, or give --failed for all that failed.")
    service = installation.documents
    if named:
        return [service.get(each) for each in dict.fromkeys(service.find_id(each) for each in named)]
    found: list[DocumentRecord] = []
    while page := service.list(status=DocumentStatus.FAILED, before=found[-1].id if found else None, limit=_PAGE):
        found += page
    return found


def _retriable(chosen: "Sequence[DocumentRecord]", *, passing_over: bool) -> Iterator[tuple[str, str]]:
    """Document and job of each; WrongUse for one that cannot be tried again, unless such are passed over."""
    from docmill.model.documents import DocumentStatus

    for record in chosen:
        if record.status is not DocumentStatus.FAILED:
            raise WrongUse(f"{record.file_name} ({record.id}) has not failed: it is {record.status}.")
        if record.job_id is not None and record.original_key is not None:
            yield record.id, record.job_id
        elif not passing_over:
            raise WrongUse(f"Of {record.file_name} ({record.id}) no bytes were kept; process the file again.")
