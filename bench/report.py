"""From records to a table for people and one JSON line for machines."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from rich.table import Table

from bench.plan import DOCMILL_POSTGRES, DOCMILL_PROCESSOR, DOCMILL_SQLITE
from bench.results import Failure, Figure, Latency, Result, Takeover, Throughput, Work, spread

_UNITS: Mapping[Work, tuple[str, float]] = {
    Work.W1: ("tasks/s", 1),
    Work.W2: ("wf/s", 1),
    Work.W3: ("documents/h", 3600),
}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A measured system, as far as the report needs to know it."""

    name: str
    title: str
    durable: bool
    ours: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything one run has measured."""

    subjects: Sequence[Subject]
    results: Sequence[Result]

    @property
    def sound(self) -> bool:
        """No measurement failed, and everything asked of Docmill was finished and found again."""
        ours = {subject.name for subject in self.subjects if subject.ours}
        for result in self.results:
            match result:
                case Failure():
                    return False
                case Throughput() if result.system in ours and not result.complete:
                    return False
                case Takeover() if result.system in ours and result.finished < result.asked:
                    return False
                case _:
                    pass
        return True

    def summary(self) -> dict[str, float | None]:
        """The figures of the JSON line; what was not measured, or not completely, is None."""
        ours = self._rate(DOCMILL_POSTGRES, Work.W2)
        best = self.best_durable_peer()
        documents_s = self._rate(DOCMILL_POSTGRES, Work.W3)
        latency = next((r for r in self.results if isinstance(r, Latency) and r.system == DOCMILL_POSTGRES), None)
        takeover = next((r for r in self.results if isinstance(r, Takeover) and r.system == DOCMILL_POSTGRES), None)
        answered = latency if latency and latency.answered >= latency.probes else None
        finished = takeover if takeover and takeover.finished >= takeover.asked else None
        measured = {
            "w2_pg_wf_s": ours,
            "w2_pg_processor_wf_s": self._rate(DOCMILL_PROCESSOR, Work.W2),
            "w2_sqlite_wf_s": self._rate(DOCMILL_SQLITE, Work.W2),
            "w2_best_durable_peer_wf_s": best,
            "w2_ratio": ours / best if ours and best else None,
            "w3_docs_h": documents_s * 3600 if documents_s else None,
            "w4_p50_ms": answered.p50_ms if answered else None,
            "w4_p99_ms": answered.p99_ms if answered else None,
            "w5_takeover_s": finished.seconds if finished else None,
            "enqueue_jobs_s": self._median(DOCMILL_POSTGRES, Work.W2, lambda run: run.enqueue_rate),
            "rss_mb": self._median(DOCMILL_POSTGRES, Work.W3, lambda run: run.peak_rss_mb),
            "batch_submit_s": None,
            "batch_submit_sqlite_s": None,
            "batch_jobs_s": None,
            "model_rate_used": None,
            "growth_time": None,
            "growth_buffers": None,
        }
        given = {result.key: result.value for result in self.results if isinstance(result, Figure)}
        unknown = given.keys() - measured.keys()
        if unknown:
            raise ValueError(f"Figures {sorted(unknown)} have no place in the JSON line: use one of {list(measured)}.")
        return {key: _rounded(given.get(key, value)) for key, value in measured.items()}

    def json_line(self) -> str:
        """The last line of a run."""
        return json.dumps(self.summary())

    def best_durable_peer(self) -> float | None:
        """The best W2 rate of a peer that keeps its promises after a crash of everything.

        Peers cut short count by the steps they did: leaving them out would flatter the ratio.
        """
        peers = [subject for subject in self.subjects if subject.durable and not subject.ours]
        rates = [rate for peer in peers if (rate := self._rate(peer.name, Work.W2, complete=False)) is not None]
        return max(rates, default=None)

    def tables(self) -> Iterable[Table]:
        """One table per workload that was run."""
        for work in (Work.W1, Work.W2, Work.W3):
            if any(isinstance(result, Throughput) and result.work is work for result in self.results):
                yield self._throughput_table(work)
        if any(isinstance(result, Latency | Takeover) for result in self.results):
            yield self._other_table()
        failures = [result for result in self.results if isinstance(result, Failure)]
        if failures:
            yield _failure_table(failures)

    def _throughput_table(self, work: Work) -> Table:
        unit, factor = _UNITS[work]
        table = Table(title=f"{work}: {unit}", title_justify="left")
        for heading in ("system", "setting", f"{unit} (least–most, runs)", "Docmill is", "results", "enqueue/s", "MB"):
            table.add_column(heading, justify="left" if heading in ("system", "setting") else "right")
        ours = self._rate(DOCMILL_POSTGRES, work)
        for subject in self.subjects:
            runs = self._runs(subject.name, work)
            if not runs:
                continue
            rates = spread([run.rate * factor for run in runs])
            mine = None if subject.ours or not ours or not rates.median else ours * factor / rates.median
            table.add_row(
                subject.title + ("" if subject.durable else " (not durable)"),
                runs[0].setting,
                f"{rates.median:,.0f} ({rates.least:,.0f}–{rates.most:,.0f}, {rates.repeats})",
                f"{mine:.1f}×" if mine else "–",
                _results_cell(runs),
                f"{statistics.median(run.enqueue_rate for run in runs):,.0f}",
                f"{max(run.peak_rss_mb for run in runs):.0f}",
            )
        return table

    def _other_table(self) -> Table:
        table = Table(title="W4: enqueue to start; W5: kill -9 and restart", title_justify="left")
        for heading in ("system", "", "setting", "measured"):
            table.add_column(heading)
        titles = {subject.name: subject.title for subject in self.subjects}
        for result in self.results:
            match result:
                case Latency():
                    measured = f"p50 {result.p50_ms:.1f} ms, p99 {result.p99_ms:.1f} ms, max {result.max_ms:.1f} ms"
                    if result.answered < result.probes:
                        measured += f", {result.probes - result.answered} of {result.probes} NEVER STARTED"
                    table.add_row(titles[result.system], "W4", result.setting, measured)
                case Takeover():
                    table.add_row(titles[result.system], "W5", result.setting, _takeover_cell(result))
                case Throughput() | Figure() | Failure():
                    pass
                case _:
                    assert_never(result)
        return table

    def _runs(self, system: str, work: Work) -> list[Throughput]:
        found = [result for result in self.results if isinstance(result, Throughput)]
        return [result for result in found if result.system == system and result.work is work]

    def _rate(self, system: str, work: Work, *, complete: bool = True) -> float | None:
        return self._median(system, work, lambda run: run.rate, complete=complete)

    def _median(
        self, system: str, work: Work, value: Callable[[Throughput], float], *, complete: bool = True
    ) -> float | None:
        runs = self._runs(system, work)
        if not runs or (complete and not all(run.complete for run in runs)):
            return None
        return statistics.median(value(run) for run in runs)


def _results_cell(runs: Sequence[Throughput]) -> str:
    """How many results were found again, and what went wrong, over all repeats."""
    asked, finished = sum(run.asked for run in runs), sum(run.finished for run in runs)
    stored, reran = sum(run.stored for run in runs), sum(run.reran for run in runs)
    text = f"{stored:,}"
    if not all(run.complete for run in runs):
        text += f" INCOMPLETE ({finished:,} of {asked:,} finished)"
    return text + (f", {reran:,} steps ran twice" if reran else "")


def _takeover_cell(result: Takeover) -> str:
    share = f"{result.taken_over} of {result.in_flight} steps in flight taken over"
    when = f" in {result.seconds:.1f} s" if result.seconds is not None else f" within {result.waited_s:.0f} s"
    again = f", {result.reran} finished steps ran again" if result.reran else ""
    return f"{share}{when}, {result.finished} of {result.asked} workflows finished{again}"


def _failure_table(failures: Sequence[Failure]) -> Table:
    table = Table(title="Not measured", title_justify="left")
    for heading in ("system", "work", "reason"):
        table.add_column(heading)
    for failure in failures:
        table.add_row(failure.system, failure.work, failure.reason.strip()[-300:])
    return table


def _rounded(value: float | None) -> float | None:
    """Four significant digits: more would only be noise."""
    return None if value is None else float(f"{value:.4g}")
