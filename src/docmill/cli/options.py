"""Arguments and options that several commands take: one spelling, one explanation."""

from typing import Annotated

from cyclopts import Parameter, validators

from docmill.model.statuses import JobStatus

MOST_LISTED = 100_000

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON on stdout.")]
"""The option every command has."""
JobId = Annotated[str, Parameter(name="JOB", help="The job's id, or its first digits.")]
TemplateName = Annotated[
    str, Parameter(name="TEMPLATE", help="Name of a stored template; NAME@VERSION for an old one.")
]
Limit = Annotated[
    int, Parameter(metavar="N", help="At most this many.", validator=validators.Number(gte=1, lte=MOST_LISTED))
]
AtMost = Annotated[
    int | None,
    Parameter(metavar="N", help="At most this many; all if not given.", validator=validators.Number(gte=1)),
]
Statuses = Annotated[
    tuple[JobStatus, ...],
    Parameter(
        name="--status",
        metavar="STATUS",
        negative="",
        consume_multiple=False,
        show_default=False,
        help="Only jobs with this status; may be given several times.",
    ),
]
Metadata = Annotated[
    tuple[str, ...],
    Parameter(
        metavar="DATA",
        negative="",
        consume_multiple=False,
        help="A JSON object, key=text or key:=JSON; may be given several times.",
    ),
]
Fresh = Annotated[
    bool, Parameter(negative="", help="Compute again what was paid for; otherwise stored results are used.")
]
Watch = Annotated[bool, Parameter(negative="", help="Follow it to its end, as `watch` does.")]
