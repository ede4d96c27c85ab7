"""The demo told in lines: which news is worth a sentence, and what is measured on the way."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from docmill.demo.watch import JobNow, News, Snapshot
from docmill.engine.retry import attempt_settings
from docmill.model.statuses import JobStatus, StepKind, StepStatus
from docmill.templates.plan import Plan, PlanStep

Tone = Literal["plain", "good", "bad", "warn", "quiet", "ask", "typed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sentence of the tale."""

    at: datetime
    tone: Tone
    sign: str
    subject: str
    text: str
    minor: bool = False
    """Left out where the grid shows the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The moment a worker was killed, and what it held."""

    worker: str
    at: datetime
    held: tuple[tuple[str, str], ...]
    """(paper, step) that it was running."""
    stored: frozenset[tuple[str, str]]
    """(paper, page) whose answers were stored by then, of the steps it held."""


@dataclass(slots=True)
class Tale:
    """Grows with every look at the database."""

    plan: Plan
    began: datetime
    lines: list[Line] = field(default_factory=list)
    kill: Kill | None = None
    given_back: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """When steps of the killed worker became ready again."""
    resumed: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """When they ran again elsewhere."""
    steps_run: int = 0
    """Attempts begun, of all steps."""
    retries: int = 0
    called_back: bool = False

    def killed(self, kill: Kill) -> None:
        """A worker was just killed."""
        self.kill = kill
        text = f"SIGKILL in the middle of {_numbers(paper for paper, _ in kill.held)}"
        self.lines.append(Line(at=kill.at, tone="bad", sign="✖", subject=f"worker {kill.worker}", text=text))

    def take_in(self, snapshot: Snapshot) -> list[Line]:
        """Measure the news and return the lines that they add."""
        found = {job.paper: job for job in snapshot.jobs}
        given_back = [news for news in snapshot.news if news.reason == "crashed"]
        new = [self._gift(given_back)] if given_back else []
        resumed: list[News] = []
        for news in snapshot.news:
            if news.step is None:
                new.extend(self._tell_job(news))
                continue
            if news.after == StepStatus.IN_PROGRESS:
                self.steps_run += 1
                resumed += [news] * self._resumes(news)
            new.extend(self._tell(news, self.plan.step(news.step), found[news.paper], snapshot))
        if resumed:
            new.append(self._resumption(resumed, found))
        self.lines.extend(new)
        return new

    def _gift(self, news: list[News]) -> Line:
        """A worker's death was noticed: what it held is anybody's again."""
        self.given_back.update({(item.paper, item.step or ""): item.at for item in news})
        worker = f"worker {self.kill.worker}" if self.kill else "a worker"
        text = f"is dead; given back: {_numbers(item.paper for item in news)}"
        return Line(at=news[0].at, tone="warn", sign="↺", subject=worker, text=text)

    def _resumes(self, news: News) -> bool:
        """Whether this is the first time that a step which was given back runs elsewhere."""
        key = (news.paper, news.step or "")
        if key in self.resumed or key not in self.given_back or news.at < self.given_back[key]:
            return False
        self.resumed[key] = news.at
        return True

    def _resumption(self, news: list[News], found: Mapping[str, JobNow]) -> Line:
        steps = [found[item.paper].steps[item.step or ""] for item in news]
        workers = sorted({step.worker for step in steps if step.worker})
        subject = f"worker{'s' * (len(workers) > 1)} {', '.join(workers)}" if workers else "others"
        pages = sum(step.parts for step in steps)
        rest = f"; {pages} pages kept" if pages > 1 else ""
        text = f"{'goes' if len(workers) == 1 else 'go'} on with {_numbers(item.paper for item in news)}{rest}"
        return Line(at=news[-1].at, tone="good", sign="↪", subject=subject, text=text)

    def _tell(self, news: News, step: PlanStep, job: JobNow, snapshot: Snapshot) -> Iterator[Line]:
        name = step.display_name
        if news.reason == "retry":
            self.retries += 1
            yield self._line(news, "warn", "↻", f"{name} {self._change(step, job)}: {_first_sentence(news.error)}")
        elif news.after == StepStatus.FAILED:
            rest = " (optional)" if step.optional else ""
            yield self._line(news, "bad", "✗", f"{name} failed{rest}: {news.error}")
        elif news.after == StepStatus.SKIPPED:
            yield self._line(news, "quiet", "–", f"{name} is skipped", minor=True)
        elif news.after == StepStatus.COMPLETED and news.paper in snapshot.callers and step.kind is StepKind.EXTERNAL:
            # The grid shows the others.
            first, self.called_back = not self.called_back, True
            text = f"{name}: process {snapshot.callers[news.paper]} outside called back"
            yield self._line(news, "good", "⇠", text, minor=not first)

    def _tell_job(self, news: News) -> Iterator[Line]:
        status = JobStatus(news.after)
        if status.finished:
            tone: Tone = "good" if status is JobStatus.COMPLETED else "warn"
            sign = "✓" if status is JobStatus.COMPLETED else "◐"
            yield self._line(news, tone, sign, status.value, minor=True)

    @staticmethod
    def _change(step: PlanStep, job: JobNow) -> str:
        """How the next attempt differs from the one that failed."""
        failures = max(1, job.steps[step.step_key].failures)
        before, after = (attempt_settings(step, failures=count) for count in (failures - 1, failures))
        changed = [
            f"{value}" + " tokens" * (key == "max_tokens") for key, value in after.items() if value != before[key]
        ]
        return f"again with {' and '.join(changed)}" if changed else "again"

    @staticmethod
    def _line(news: News, tone: Tone, sign: str, text: str, *, minor: bool = False) -> Line:
        return Line(at=news.at, tone=tone, sign=sign, subject=news.paper, text=text, minor=minor)

    def seconds(self, at: datetime) -> float:
        """Seconds since the beginning."""
        return max(0.0, (at - self.began).total_seconds())


def _numbers(papers: Iterable[str]) -> str:
    return ", ".join(sorted({paper[:2] for paper in papers}))


def _first_sentence(text: str | None) -> str:
    """Without what to do about it: the template has done it."""
    return (text or "it failed").split(". ")[0].replace("standin:", "")
