"""The last screen: claims, figures, and where to go from here."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from docmill.demo.claims import Claim
from docmill.demo.summary import Summary


def show(console: Console, summary: Summary, kept_in: Path | None) -> None:
    """Print the summary."""
    console.print(Padding(_claims(summary.claims), (1, 1), expand=False))
    console.print(Padding(_figures(summary, kept_in), (0, 1, 1, 1), expand=False))


def _claims(claims: tuple[Claim, ...]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column()
    for claim in claims:
        sign = Text("✓", "bold green") if claim.kept else Text("✗", "bold red")
        name, _, rest = claim.text.partition(":")
        text = Text.assemble((f"{name}:", "bold"), rest) if claim.kept else Text(claim.text, "red")
        table.add_row(sign, text)
    return table


def _figures(summary: Summary, kept_in: Path | None) -> Table:
    statuses = ", ".join(f"{count} {status}" for status, count in summary.jobs.items())
    rows = {
        "jobs": statuses,
        "steps": f"{summary.steps_run} attempts begun, {summary.retries} retried, {summary.taken_over} taken over",
        "time": f"{summary.seconds} s from start to end, database and processes included",
        "results": f"{kept_in}: docmill.db (table demo_bookings), inbox/, office/, logs/"
        if kept_in
        else "removed; .venv/bin/python -m docmill.demo workflow --keep DIR keeps them",
        "workflow": "src/docmill/demo/transaction.yaml; its steps are in steps.py",
        "yours": "docs/guides/first-workflow.md: write one in ten minutes",
    }
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column()
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table
