"""The report says what was measured, and says nothing where nothing was."""

import dataclasses
import json

import pytest

from bench.plan import DOCMILL_POSTGRES
from bench.report import Report, Subject
from bench.results import Failure, Figure, Latency, Result, Takeover, Throughput, Work

SUBJECTS = (
    Subject(name=DOCMILL_POSTGRES, title="Docmill (PostgreSQL)", durable=True, ours=True),
    Subject(name="dbos", title="DBOS", durable=True, ours=False),
    Subject(name="saq", title="SAQ", durable=True, ours=False),
    Subject(name="huey", title="huey", durable=False, ours=False),
)
KEYS = [
    "w2_pg_wf_s",
    "w2_pg_processor_wf_s",
    "w2_sqlite_wf_s",
    "w2_best_durable_peer_wf_s",
    "w2_ratio",
    "w3_docs_h",
    "w4_p50_ms",
    "w4_p99_ms",
    "w5_takeover_s",
    "enqueue_jobs_s",
    "rss_mb",
    "batch_submit_s",
    "batch_submit_sqlite_s",
    "batch_jobs_s",
    "model_rate_used",
    "growth_time",
    "growth_buffers",
]


def drained(system: str, rate: float, work: Work = Work.W2) -> Throughput:
    return Throughput(
        system=system,
        work=work,
        setting="",
        asked=100,
        finished=100,
        stored=600,
        expected_stored=600,
        seconds=100 / rate,
        rate=rate,
        enqueue_rate=5000,
        reran=0,
        peak_rss_mb=90,
    )


def report(*results: Result) -> Report:
    return Report(subjects=SUBJECTS, results=results)


def test_json_line_has_exactly_the_agreed_keys_even_when_nothing_was_measured() -> None:
    line = json.loads(report().json_line())
    assert list(line) == KEYS
    assert set(line.values()) == {None}


def test_ratio_is_medians_against_the_best_durable_peer_of_the_same_run() -> None:
    summary = report(
        *(drained(DOCMILL_POSTGRES, rate) for rate in (900, 1000, 5000)),
        *(drained("dbos", rate) for rate in (40, 50, 60)),
        drained("saq", 80),
        drained("huey", 600),
    ).summary()
    assert summary["w2_pg_wf_s"] == 1000
    assert summary["w2_best_durable_peer_wf_s"] == 80
    assert summary["w2_ratio"] == 12.5
    assert summary["enqueue_jobs_s"] == 5000


@pytest.mark.parametrize("loss", [{"finished": 99}, {"stored": 599}])
def test_a_docmill_run_that_lost_something_has_no_figure(loss: dict[str, int]) -> None:
    lost = dataclasses.replace(drained(DOCMILL_POSTGRES, 1000), **loss)  # type: ignore[arg-type]
    broken = report(drained(DOCMILL_POSTGRES, 1000), lost, drained("dbos", 50))
    assert broken.summary()["w2_pg_wf_s"] is None
    assert broken.summary()["w2_ratio"] is None
    assert not broken.sound


def test_a_peer_cut_short_still_counts_so_that_the_ratio_is_not_flattered() -> None:
    slow = dataclasses.replace(drained("dbos", 50), finished=10)
    assert report(slow).summary()["w2_best_durable_peer_wf_s"] == 50
    assert report(slow).sound


def test_waits_latency_takeover_and_given_figures_find_their_keys() -> None:
    summary = report(
        drained(DOCMILL_POSTGRES, 400, Work.W3),
        Latency(system=DOCMILL_POSTGRES, setting="", probes=5, answered=5, p50_ms=2, p99_ms=9, max_ms=10),
        Takeover(
            system=DOCMILL_POSTGRES,
            setting="",
            asked=20,
            finished=20,
            in_flight=20,
            taken_over=20,
            seconds=1.5,
            waited_s=40,
            reran=0,
        ),
        Figure(key="growth_time", value=1.1),
    ).summary()
    assert summary["w3_docs_h"] == 1_440_000
    assert summary["rss_mb"] == 90
    assert (summary["w4_p50_ms"], summary["w4_p99_ms"], summary["w5_takeover_s"]) == (2, 9, 1.5)
    assert summary["growth_time"] == 1.1


def test_a_figure_without_a_place_in_the_line_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        report(Figure(key="w9", value=1)).summary()


def test_a_failed_measurement_makes_the_run_unsound() -> None:
    assert not report(Failure(system="saq", work=Work.W1, reason="no server")).sound
