"""The person of the demo: reads an issue, looks at the paper, and types a command."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from docmill.bootstrap import App
from docmill.demo.papers import paper_of
from docmill.demo.tale import Line
from docmill.model.errors import DocmillError
from docmill.services.issues import IssueView

_READING = timedelta(seconds=2.5)
"""How long a person looks at an issue."""


class CommandFailed(DocmillError):
    """A command that the clerk typed did not succeed."""

    code = "command_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An issue that the clerk resolved."""

    issue: IssueView
    command: str
    total: float
    """What the clerk said it is."""


class Clerk:
    """Looks at the open issues; does one thing at a time."""

    def __init__(self, app: App, environment: Mapping[str, str]) -> None:
        self._app = app
        self._environment = dict(environment)
        self._reading: IssueView | None = None
        self._since = datetime.min
        self._typed: Resolved | None = None
        self._running: subprocess.Popen[str] | None = None
        self.resolved: list[Resolved] = []

    @property
    def busy(self) -> bool:
        """Whether a command has not come to its end."""
        return self._running is not None

    def act(self, now: datetime) -> Iterator[Line]:
        """Go on a little, and tell."""
        if self._running is not None:
            yield from self._wait(now)
        elif self._reading is None:
            yield from self._look(now)
        elif now >= self._since + _READING:
            yield self._type(self._reading, now)

    def close(self) -> None:
        """Leave no command running."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()

    def _look(self, now: datetime) -> Iterator[Line]:
        for issue in self._app.issues.list(blocking=True, limit=1):
            self._reading, self._since = issue, now
            yield Line(at=now, tone="ask", sign="?", subject=issue.entity_id, text=issue.title)

    def _type(self, issue: IssueView, now: datetime) -> Line:
        total = paper_of(issue.entity_id).total
        words = ["issues", "resolve", issue.id, "--set", f"total={total:g}"]
        self._typed = Resolved(issue=issue, command=" ".join(["docmill", *words]), total=total)
        # The same program, wherever the `docmill` command is installed.
        self._running = subprocess.Popen(
            [sys.executable, "-m", "docmill", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        return Line(at=now, tone="typed", sign="$", subject="", text=self._typed.command)

    def _wait(self, now: datetime) -> Iterator[Line]:
        assert self._running is not None
        assert self._typed is not None
        if self._running.poll() is None:
            return
        said = self._running.communicate()[0].strip()
        if self._running.returncode:
            raise CommandFailed(f"`{self._typed.command}` ended with code {self._running.returncode}: {said}")
        self.resolved.append(self._typed)
        self._running = self._reading = None
        yield Line(at=now, tone="quiet", sign="", subject="", text=said)
