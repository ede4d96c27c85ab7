"""Issues as people read them."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from docmill.cli.output import print_table, printable, styled, when
from docmill.model.issues import IssueStatus

if TYPE_CHECKING:
    from rich.text import Text

    from docmill.services.issues import IssueView

_ROOMY = 110
"""Columns from which a list also shows what an issue is about and when it came up."""


def issue_table(issues: "Sequence[IssueView]") -> None:
    """A list of issues on stdout."""
    roomy = not sys.stdout.isatty() or shutil.get_terminal_size().columns >= _ROOMY
    heads = ["ISSUE", "SEVERITY", "STATUS", *(["ENTITY", "ASSIGNED", "CREATED"] if roomy else []), "TITLE"]
    rows: list[list[str | Text]] = []
    for issue in issues:
        row: list[str | Text] = [issue.id, styled(issue.severity), _status(issue)]
        if roomy:
            row += [f"{issue.entity_type}:{issue.entity_id}", issue.assigned_to or "", when(issue.created_at)]
        rows.append([*row, issue.title])
    print_table(heads, rows, give_way=("ENTITY", "TITLE"))


def details(issue: "IssueView") -> None:
    """One issue on stdout."""
    facts = {
        "issue": issue.id,
        "title": issue.title,
        "status": _status(issue),
        "severity": f"{issue.severity} [{issue.code}]",
        "entity": f"{issue.entity_type}:{issue.entity_id}",
        "job": issue.job_id or "",
        "step": issue.step_key or "",
        "assigned to": issue.assigned_to or "",
        "created": when(issue.created_at) + (f" by {issue.created_by}" if issue.created_by else ""),
        "resolved": _resolved(issue),
        "data": "" if issue.data is None else json.dumps(issue.data, ensure_ascii=False),
        "note": issue.note or "",
    }
    for name, value in facts.items():
        if value:
            print(f"{name:<11} {printable(value)}")
    _block("details", issue.details)
    if issue.status is IssueStatus.OPEN:
        _block("the answer must fit", issue.answer_schema)
        print(f"\n{command(issue)}")


def waits_for(issues: "Sequence[IssueView]") -> None:
    """What a waiting job waits for, each with the command that resolves it."""
    for issue in issues:
        print(f"\n{issue.step_key} waits for: {printable(issue.title)} [{issue.severity}, {issue.code}]")
        print(f"  {command(issue)}")


def command(issue: "IssueView") -> str:
    """What to type to resolve it."""
    return f"docmill issues resolve {issue.id}{_example(issue)}"


def _example(issue: "IssueView") -> str:
    schema = issue.answer_schema
    if schema is None:
        return " --set KEY=VALUE" if issue.blocking and not issue.corrects else ""
    properties = schema.get("properties")
    wanted = schema.get("required") or (list(properties) if isinstance(properties, Mapping) else [])
    keys = [key for key in wanted if isinstance(key, str)] if isinstance(wanted, Sequence) else []
    return "".join(f" --set {key}=…" for key in keys) or " --data JSON"


def _status(issue: "IssueView") -> str:
    return f"{issue.status}, blocking" if issue.blocking and issue.status is IssueStatus.OPEN else issue.status.value


def _resolved(issue: "IssueView") -> str:
    if issue.resolved_at is None:
        return ""
    by = f" by {issue.resolved_by}" if issue.resolved_by else ""
    return f"{issue.action or issue.status}, {when(issue.resolved_at)}{by}"


def _block(name: str, value: Mapping[str, object] | None) -> None:
    if value:
        print(f"\n{name}:")
        for line in json.dumps(value, ensure_ascii=False, indent=2).splitlines():
            print(f"  {printable(line)}")
