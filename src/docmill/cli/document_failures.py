"""`docmill documents retry` and `docmill documents remove`: what to do about files that failed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.acting import acting_for
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation

Which = Annotated[str, Parameter(name="DOCUMENT", help="Ids, their first digits, or files; or give --failed.")]
Failed = Annotated[bool, Parameter(negative="", help="All documents that failed.")]
_PAGE = 200


def retry(*documents: Which, failed: Failed = False, json: Json = False) -> int:
    """Process documents that failed once more, from the bytes that were kept.

    For those that failed because of a limit, a setting or something that was away. A file that is broken stays so.
    """
    from docmill.cli.process_text import document_record, print_records, print_results
    from docmill.model.documents import DocumentStatus
    from docmill.services.jobs import Retry

    with acting_for() as (installation, acting):
        service, started = installation.documents, []
        for each in _chosen(installation, documents, failed=failed):
            record = service.get(each)
            if record.status is not DocumentStatus.FAILED:
                raise WrongUse(f"{record.file_name} ({record.id}) has not failed: it is {record.status}.")
            if record.job_id is None or record.original_key is None:
                told = f"Of {record.file_name} ({record.id}) no bytes were kept; process the file again."
                if not failed:
                    raise WrongUse(told)
                continue
            installation.jobs.by(acting).retry(record.job_id, Retry(everything=True), document_id=record.id)
            started.append((record.id, record.job_id))
        _finish(installation, [job_id for _, job_id in started])
        service.settle([each for each, _ in started])
        found = service.many([each for each, _ in started])
        records = [document_record(found[each], service.extraction_json(found[each])) for each, _ in started]
        wrong = print_records(records) if json else print_results(records)
    return 1 if wrong else 0


def remove(*documents: Which, failed: Failed = False, json: Json = False) -> int:
    """Remove documents that failed and never had a result, with the bytes that were kept of them.

    Documents with a result stay; `docmill documents expire` deletes originals of those.
    """
    with acting_for() as (installation, acting):
        chosen = _chosen(installation, documents, failed=failed)
        if failed:
            # What was read before and failed when it was processed again stays, and is no mistake of whoever asks.
            known = installation.documents
            chosen = [each for each in chosen if known.get(each).extraction_key is None]
        acted, removed = installation.documents.by(acting), 0
        for start in range(0, len(chosen), _PAGE):
            removed += acted.discard(chosen[start : start + _PAGE])
    if json:
        print_json({"removed": removed})
    else:
        print(f"{counted(removed, 'document')} removed.")
    return 0


def _chosen(installation: "Installation", named: Sequence[str], *, failed: bool) -> list[str]:
    from docmill.model.documents import DocumentStatus

    if failed == bool(named):
        raise WrongUse("Name documents, or give --failed for all that failed.")
    service = installation.documents
    if named:
        return list(dict.fromkeys(service.find_id(each) for each in named))
    found: list[str] = []
    while page := service.list(status=DocumentStatus.FAILED, before=found[-1] if found else None, limit=_PAGE):
        found += [each.id for each in page]
    return found


def _finish(installation: "Installation", job_ids: Sequence[str]) -> None:
    """Work until these are done, as `docmill process` does."""
    from docmill.services.following import wait
    from docmill.workers.process import alongside

    if not job_ids:
        return
    with alongside((installation.whole or installation).worker()) as worker:
        pause = 0.02
        while any(not position.status.finished for position in installation.jobs.positions(job_ids).values()):
            worker.check()
            wait(pause)
            pause = min(0.25, pause * 1.5)
