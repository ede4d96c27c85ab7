"""`docmill learn`: better reading of one's own documents, from labels."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.acting import Organisation
from docmill.cli.evaluating import FEW
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json, print_table

if TYPE_CHECKING:
    from docmill.services.evaluation import LabelledFolder
    from docmill.services.learning import Learned, Lesson
    from docmill.settings import Settings

EXAMPLES = """\
Examples:
  docmill learn labelled/ --dry-run            would it help?
  docmill learn labelled/                      learn, and use it from now on
  docmill learn --reviewed                     from what people approved here
  docmill learn --reset                        back to the models that ship"""


def learn(
    folder: Annotated[
        Path | None, Parameter(name="DIR", help="A folder with labels.jsonl and the documents it speaks of.")
    ] = None,
    /,
    *,
    schema: Annotated[
        str | None, Parameter(metavar="NAME", help="Read all by this schema; without it the document's type decides.")
    ] = None,
    reviewed: Annotated[
        bool, Parameter(negative="", help="Instead of a folder, the documents that people approved here.")
    ] = False,
    dry_run: Annotated[bool, Parameter(negative="", help="Measure, and install nothing.")] = False,
    force: Annotated[bool, Parameter(negative="", help="Install it even if it is worse.")] = False,
    organisation: Organisation = None,
    reset: Annotated[bool, Parameter(negative="", help="Go back to the models that ship with Docmill.")] = False,
    json: Json = False,
) -> int:
    """Fit the local reader and its confidence to labelled documents of your own.

    It starts from the models that ship and adds what your documents teach, so give it all you have labelled each time.
    Before and after are measured on documents that were kept back in turn, those of one sender together. A result that
    is worse is not installed. Learned models lie in DOCMILL_HOME/models; documents processed from then on use them.
    """
    from docmill.cli.errors import WrongUse
    from docmill.cli.evaluating import labelled_documents
    from docmill.cli.opening import read_settings
    from docmill.extraction.models import install, use
    from docmill.services.evaluation import apart
    from docmill.services.learning import NothingGained
    from docmill.services.learning import learn as fitted

    settings = read_settings()
    models = settings.home / "models"
    if reset:
        if folder is not None or force or dry_run or reviewed:
            raise WrongUse("--reset stands alone: docmill learn --reset")
        use(models, None)
        _say({"installed": None}, "The models that ship with Docmill are in use.", json=json)
        return 0
    with (
        labelled_documents(folder, reviewed=reviewed, organisation=organisation, schema=schema) as labelled,
        apart(settings) as temporary,
    ):
        lessons, skipped = _lessons(temporary, labelled, schema=schema, quiet=json)
    if skipped and not json:
        told = f"{counted(skipped, 'document')} teach nothing: e-invoices, other schemas, or files that cannot be read"
        print(f"note: {told}.", file=sys.stderr)
    learned = fitted(lessons)
    installed = None
    if not dry_run and (force or learned.worse is None):
        about = {"documents": learned.lessons, "before": learned.before.as_json(), "after": learned.after.as_json()}
        installed = install(models, learned.files, about=about)
    if json:
        print_json(
            {
                "documents": learned.lessons,
                "skipped": skipped,
                "before": learned.before.as_json(),
                "after": learned.after.as_json(),
                "worse": learned.worse,
                "installed": None if installed is None else str(installed),
            }
        )
    else:
        _print(learned)
    if installed is None and not dry_run:
        raise NothingGained(
            f"Nothing was installed: {learned.worse}. Label more documents, or insist with --force.",
            worse=learned.worse,
        )
    if not json:
        print(
            f"\nInstalled as {installed}." if installed else f"\nNothing was installed (--dry-run). {_verdict(learned)}"
        )
    return 0


def _say(answer: dict[str, object], text: str, *, json: bool) -> None:
    if json:
        print_json(answer)
    else:
        print(text)


def _lessons(
    settings: "Settings", folder: "LabelledFolder", *, schema: str | None, quiet: bool
) -> "tuple[list[Lesson], int]":
    """The documents that can be learned from, as they were read, and how many cannot."""
    from docmill.cli.evaluating import processed_in
    from docmill.extraction.likeness import KINDS as LEARNED
    from docmill.extraction.result import Reader
    from docmill.services.learning import Lesson

    lessons = []
    processed = processed_in(settings, folder, schema=schema, model=None, quiet=quiet, readings=True)
    for row in folder.rows:
        found = processed.documents[row.file]
        if found.extraction is None or found.reading is None or found.extraction.reader is not Reader.LOCAL:
            continue
        if found.extraction.schema in LEARNED:
            known = processed.schemas[found.extraction.schema]
            lessons.append(Lesson(labelled=row, reading=found.reading, schema=known))
    return lessons, len(folder.rows) - len(lessons)


def _verdict(learned: "Learned") -> str:
    """What would have come of it without --dry-run."""
    if learned.worse is not None:
        return f"Without it nothing would be either: {learned.worse}."
    few = f" Of {counted(learned.lessons, 'document')} that says little." if learned.lessons < FEW else ""
    return f"It is no worse than what is in use, and would be installed.{few}"


def _print(learned: "Learned") -> None:
    from rich.text import Text

    def share(value: float | None) -> Text:
        return Text("–" if value is None else f"{value:.3f}", justify="right")

    before, after = learned.before, learned.after
    rows = [
        (name, Text(str(field.n), justify="right"), share(before.by_field[name].exact), share(field.exact))
        for name, field in after.by_field.items()
    ]
    rows += [
        ("all values", Text("", justify="right"), share(before.micro), share(after.micro)),
        ("AUROC", Text("", justify="right"), share(before.auroc), share(after.auroc)),
        ("calibration error", Text("", justify="right"), share(before.ece), share(after.ece)),
        (
            "pass at 99 %",
            Text("", justify="right"),
            share(before.straight_through_99),
            share(after.straight_through_99),
        ),
    ]
    print(f"{counted(learned.lessons, 'document')}, each measured with what the others taught:\n")
    print_table(("", "N", "BEFORE", "AFTER"), rows)
