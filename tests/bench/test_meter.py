"""The outside counter counts every event once, whole lines only."""

from pathlib import Path

from bench.meter import EventLog, Meter
from bench.results import quantile


def test_events_of_several_writers_are_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "events"
    log = EventLog(path)
    log.read()
    first, second = (Meter(str(path), trace=True) for _ in range(2))
    first.started(1, "a")
    log.read()
    first.ended(1, "a")
    second.started(1, "f")
    second.ended(1, "f")
    second.ended(1, "f")
    second.started(2, "c")
    log.read()
    log.read()
    assert log.finished == {1}
    assert log.reran() == 1
    assert log.in_flight() == {(2, "c")}
    assert log.first_start is not None
    assert log.last_end is not None
    assert log.first_start <= log.last_end


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    path = tmp_path / "events"
    log = EventLog(path)
    path.write_text("E 7 f 1.0\nE 8 f")
    log.read()
    assert log.finished == {7}
    with path.open("a") as file:
        file.write(" 2.0\n")
    log.read()
    assert log.finished == {7, 8}


def test_without_tracing_only_first_steps_start_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "events"
    meter = Meter(str(path), trace=False)
    meter.started(1, "b")
    meter.started(1, "a")
    log = EventLog(path)
    log.read()
    assert list(log.starts) == [(1, "a")]


def test_quantile_takes_a_value_that_was_seen() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0], 0.99) == 1.0
