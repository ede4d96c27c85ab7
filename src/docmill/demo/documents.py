"""The first act: five documents that the demo makes itself go through `docmill process`, and come out as data.

The demo knows what it wrote, so at the end it holds every value against the truth.
"""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from docmill.bootstrap import open_app
from docmill.cli.process_text import document_record
from docmill.demo.claims import Claim
from docmill.demo.installation import folder
from docmill.model.errors import DocmillError
from docmill.settings import load_settings
from docmill.testing import papers
from docmill.testing.papers import Paper

INVOICE, RECEIPT, EINVOICE = "invoice.pdf", "receipt-scan.jpg", "e-invoice.pdf"
COPY, BROKEN = "the same invoice.pdf", "broken.pdf"
KEY_FIELDS = {
    INVOICE: ("invoice_number", "issue_date", "seller_name", "total"),
    RECEIPT: ("date", "total"),
}
"""What must be right whatever else is read; of the e-invoice it is everything."""
QUERY = (
    "SELECT document_type, count(*) AS documents, sum(total) AS total, currency FROM documents "
    "WHERE status = 'completed' GROUP BY ALL ORDER BY ALL"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of the inbox."""

    truth: Mapping[str, Paper]
    rows: Mapping[str, dict[str, Any]]
    """By file name, as `docmill process --json` would tell."""
    sums: Decimal
    """What `docmill query` adds up."""
    seconds: float


def sample_documents() -> dict[str, Paper]:
    """The inbox: name of the file -> what it is."""
    invoice = papers.invoice_pdf(3, language="de", layout="classic", items=3, paid=False)
    return {
        INVOICE: invoice,
        RECEIPT: papers.receipt_image(5, items=3),
        EINVOICE: papers.facturx_pdf(4, language="fr", items=4, attachment="0000000"),
        COPY: invoice,
        BROKEN: papers.broken_pdf(),
    }


def run(arguments: Namespace, console: Console) -> bool:
    """Play it; whether every claim held."""
    began = monotonic()
    with folder(arguments.keep) as home:
        (home / "docmill.yaml").write_text("# Nothing needs to be set.\n")
        inbox = home / "inbox"
        truth = sample_documents()
        for name, paper in truth.items():
            paper.write(inbox, name)
        console.print(f"\nFive documents lie in an inbox: {', '.join(truth)}.\n", soft_wrap=True)
        # The copy comes when its original is done: of two that come together, either may be the original.
        _processed([name for name in truth if name != COPY], inbox, arguments, console)
        _processed([COPY], inbox, arguments, console)
        sums, rows = _asked(inbox, arguments, console), _rows()
        result = Result(truth=truth, rows=rows, sums=sums, seconds=round(monotonic() - began, 1))
        claims = tuple(_claims(result, home))
    _show(console, claims, arguments.keep, result.seconds)
    if arguments.json:
        sys.stdout.write(orjson.dumps(_document(result, claims), option=orjson.OPT_INDENT_2).decode() + "\n")
    return all(claim.kept for claim in claims)


def _command(words: list[str], folder: Path, timeout: float, *, output: int | None = None) -> str:
    """Run `docmill`; its output is shown as it comes, or returned if it is piped."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "docmill", *words],
            stdout=output,
            text=True,
            timeout=timeout,
            check=False,
            env=os.environ,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        raise DocmillError(f"`docmill {words[0]}` did not come to its end in {timeout:g} s.") from None
    return done.stdout or ""


def _told(console: Console, words: list[str]) -> None:
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    console.print(f"$ docmill {shown}", style="bold", markup=False, soft_wrap=True)


def _processed(names: list[str], inbox: Path, arguments: Namespace, console: Console) -> None:
    """Process files, the table in full view."""
    words = ["process", *names]
    _told(console, words)
    _command(words, inbox, arguments.timeout, output=sys.stderr.fileno() if arguments.json else None)
    console.print()


def _rows() -> dict[str, dict[str, Any]]:
    """What the installation knows of each file now."""
    with open_app(load_settings()) as app:
        found = app.documents.list(limit=100)
        return {record.file_name: document_record(record, app.documents.extraction_json(record)) for record in found}


def _field(row: Mapping[str, Any], name: str) -> str | None:
    found = (row.get("fields") or {}).get(name)
    return found["value"] if isinstance(found, dict) else found


def _asked(inbox: Path, arguments: Namespace, console: Console) -> Decimal:
    """Show what SQL finds; what it adds up."""
    words = ["query", QUERY]
    _told(console, words)
    _command(words, inbox, arguments.timeout, output=sys.stderr.fileno() if arguments.json else None)
    console.print()
    question = "SELECT sum(total) AS sum FROM documents WHERE status = 'completed'"
    answer = _command(["query", question, "--json"], inbox, arguments.timeout, output=subprocess.PIPE)
    try:
        return Decimal(orjson.loads(answer)["rows"][0]["sum"])
    except (ValueError, LookupError, TypeError, ArithmeticError):
        return Decimal(0)


def _claims(result: Result, home: Path) -> Iterator[Claim]:
    statuses = {name: row["status"] for name, row in result.rows.items()}
    expected = dict.fromkeys((INVOICE, RECEIPT, EINVOICE), "completed") | {COPY: "duplicate", BROKEN: "failed"}
    yield Claim(
        name="every_file",
        kept=statuses == expected,
        text="every file: three documents read, the copy recognised, the broken one refused",
    )
    for name in (INVOICE, RECEIPT):
        right, all_of_them = _right(result, name)
        yield Claim(
            name=name.partition(".")[0].replace("-", "_"),
            kept=set(KEY_FIELDS[name]) <= right,
            text=f"{name}: {len(right)} of {all_of_them} values are what was printed, {', '.join(KEY_FIELDS[name])} "
            "among them",
        )
    right, all_of_them = _right(result, EINVOICE)
    yield Claim(
        name="e_invoice",
        kept=len(right) == all_of_them,
        text=f"{EINVOICE}: {len(right)} of {all_of_them} values exact, from the XML inside it",
    )
    copy, original = result.rows.get(COPY, {}), result.rows.get(INVOICE, {})
    yield Claim(
        name="duplicate",
        kept=copy.get("duplicate_of") == original.get("id") and _field(copy, "total") == _field(original, "total"),
        text="duplicate: the copy points at its original, has its values, and nothing was read twice",
    )
    error = (result.rows.get(BROKEN) or {}).get("error") or {}
    yield Claim(
        name="named_error",
        kept=bool(error.get("code") and error.get("message")),
        text=f"error: {BROKEN} is {error.get('code')}: {error.get('message')}",
    )
    files = [path for row in result.rows.values() for path in row.get("outputs") or ()]
    yield Claim(
        name="outputs",
        kept=len(files) == 8 and all(Path(path).is_file() for path in files),
        text=f"outputs: {len(files)} files, JSON and Parquet for each document",
    )
    printed = sum(Decimal(result.truth[name].fields["total"]) for name in (INVOICE, RECEIPT, EINVOICE))
    yield Claim(
        name="query",
        kept=result.sums == printed,
        text=f"query: SQL adds the totals up to {result.sums}; printed were {printed}",
    )


def _right(result: Result, name: str) -> tuple[set[str], int]:
    """Fields that were read as they were printed (letters and digits), and how many there are."""
    truth, row = result.truth[name].fields, result.rows.get(name, {})
    right = {field for field, value in truth.items() if _loose(_field(row, field)) == _loose(value)}
    return right, len(truth)


def _loose(value: str | None) -> str:
    return "".join(char for char in (value or "").casefold() if char.isalnum() or char in "-.")


def _show(console: Console, claims: tuple[Claim, ...], kept_in: Path | None, seconds: float) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for claim in claims:
        sign = Text("✓", "bold green") if claim.kept else Text("✗", "bold red")
        name, _, rest = claim.text.partition(":")
        text = Text.assemble((f"{name}:", "bold"), rest) if claim.kept else Text(claim.text, "red")
        table.add_row(sign, text)
    console.print(table)
    kept = f"{kept_in}: inbox/, outputs/, docmill.db" if kept_in else "removed; --keep DIR keeps them"
    console.print(
        f"\n{seconds} s. Files: {kept}. Yours: .venv/bin/docmill process FILES", style="bright_black", soft_wrap=True
    )
    console.print("The engine below: make demo-workflow\n", style="bright_black")


def _document(result: Result, claims: tuple[Claim, ...]) -> dict[str, Any]:
    return {
        "kept": all(claim.kept for claim in claims),
        "claims": [{"name": claim.name, "kept": claim.kept, "text": claim.text} for claim in claims],
        "documents": list(result.rows.values()),
        "seconds": result.seconds,
    }
