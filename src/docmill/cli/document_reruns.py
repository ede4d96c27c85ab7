"""`docmill documents reprocess`: once more from the start, or by another schema or model."""

from typing import Annotated

from cyclopts import Parameter

from docmill.cli.acting import acting_for
from docmill.cli.document_endings import finish, tell
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json

Which = Annotated[str, Parameter(name="DOCUMENT", help="Ids, their first digits, or files.")]


def reprocess(
    *documents: Which,
    schema: Annotated[str | None, Parameter(metavar="NAME|FILE", help="Read them by this schema.")] = None,
    model: Annotated[str | None, Parameter(metavar="NAME", help="Ask this model too.")] = None,
    json: Json = False,
) -> int:
    """Process documents once more, from the bytes that were kept; what people decided stays.

    By another schema or model it is another document of the same bytes, as if the file had come again: what was read
    before stays. What is not named is as it was when the document came in.
    """
    from docmill.bootstrap import schema_overrides
    from docmill.cli.opening import check_demands, model_named
    from docmill.extraction.models import fingerprint
    from docmill.services.jobs import Retry
    from docmill.services.ordering import order_of
    from docmill.services.reprocessing import another

    if not documents:
        raise WrongUse("Name documents: docmill documents reprocess invoice.pdf --schema receipt")
    with acting_for() as (installation, acting):
        service, again = installation.documents, installation.for_org(acting.org_id).reprocessing.by(acting)
        check_demands(installation.settings, schema)
        asked = None if model is None else model_named(installation, model)
        named = None
        if schema is not None:
            named = order_of(
                schema=schema,
                model=None,
                out=None,
                blobs=installation.blobs,
                folders=installation.settings.schema_folders,
                overrides=schema_overrides(installation.settings),
                learned=fingerprint(installation.settings.home / "models"),
            )
        # All are looked at before the first begins: whoever is refused has started nothing.
        chosen = [service.get(each) for each in dict.fromkeys(service.find_id(each) for each in documents)]
        wanted = [(record, another(again.order_of(record), named=named, model=asked)) for record in chosen]
        for record, order in wanted:
            again.check(record, order)
        jobs, wish = installation.jobs.by(acting), Retry(everything=True)
        started = [again.start(record, order, jobs, wish) for record, order in wanted]
        finish(installation, [each.job_id for each in started])
        return tell(installation, [each.document_id for each in started], json=json)
