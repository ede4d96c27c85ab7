"""The last screen: claims, figures, results, and where to go from here."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from docmill.demo.summary import Summary


def show(console: Console, summary: Summary, kept_in: Path | None) -> None:
    """Print the summary."""
    console.print(Padding(_claims(summary), (1, 1, 1, 1)))
    console.print(Padding(_figures(summary), (0, 1, 1, 1)))
    console.print(Padding(_next(kept_in), (0, 1, 1, 1)))


def _claims(summary: Summary) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column()
    for claim in summary.claims:
        sign = Text("✓", "bold green") if claim.kept else Text("✗", "bold red")
        table.add_row(sign, Text(claim.text, "" if claim.kept else "red"))
    return table


def _figures(summary: Summary) -> Table:
    statuses = ", ".join(f"{count} {status}" for status, count in summary.jobs.items())
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column()
    rows = {
        "jobs": statuses,
        "steps": f"{summary.steps_run} attempts begun, {summary.retries} retried, {summary.taken_over} taken over",
        "takeover": f"given back {summary.given_back_s} s after the kill, running again after {summary.takeover_s} s",
        "model": f"{summary.model_calls} calls for {summary.pages} pages ({summary.retries} were failed attempts)",
        "time": f"{summary.seconds} s from start to end, database and workers included",
    }
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def _next(kept_in: Path | None) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column()
    if kept_in is None:
        table.add_row("results", "removed; .venv/bin/python -m docmill.demo --keep DIR keeps them")
    else:
        table.add_row("results", f"{kept_in}: docmill.db (table demo_bookings), inbox/, logs/")
    table.add_row("workflow", "src/docmill/demo/: invoice.yaml is the template, steps.py its steps")
    table.add_row("yours", "docs/guides/first-workflow.md: write one in ten minutes")
    return table
