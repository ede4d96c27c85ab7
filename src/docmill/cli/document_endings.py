"""Documents that are processed once more: worked on until they are done, and told."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation

_PAGE = 200
"""Documents, and jobs, that one statement asks for: a database takes only so many ids at once."""


def pieces(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """The ids, as many at a time as one statement takes."""
    return (ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE))


def finish(installation: "Installation", job_ids: Sequence[str]) -> None:
    """Work until these are done, as `docmill process` does."""
    from docmill.services.following import wait
    from docmill.workers.process import alongside

    if not job_ids:
        return
    with alongside((installation.whole or installation).worker()) as worker:
        # All must end, so it is enough to wait for some, and then for the next.
        for some in pieces(job_ids):
            pause = 0.02
            while any(not position.status.finished for position in installation.jobs.positions(some).values()):
                worker.check()
                wait(pause)
                pause = min(0.25, pause * 1.5)


def tell(installation: "Installation", ids: Sequence[str], *, json: bool) -> int:
    """Show how these ended, and the exit code that says so."""
    from docmill.cli.process_text import document_record, print_records, print_results

    service = installation.documents

    def ended() -> Iterator[dict[str, Any]]:
        for some in pieces(ids):
            service.settle(some)
            found = service.many(some)
            yield from (document_record(found[each], service.extraction_json(found[each])) for each in some)

    wrong = print_records(ended()) if json else print_results(ended())
    return 1 if wrong else 0
