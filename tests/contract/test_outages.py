"""What a run learns of a model that is away: how long it waits, and when that has no sense any more."""

from docmill.model.ai_errors import ModelUnavailable
from docmill.services.outages import PROBES, ModelAway, Vigil
from docmill.testing.scripted import Scripted
from tests.contract.gateway_bench import Bench, ask, broken, fails


def vigil(bench: Bench) -> Vigil:
    return Vigil(bench.database, "scripted:m", open_seconds=60, clock=lambda connection: bench.clock.now)


def test_a_model_that_is_left_alone_is_told_with_the_seconds_until_it_is_tried(bench: Bench) -> None:
    gateway, watching = bench.gateway(Scripted(broken(bench, 6))), vigil(bench)
    assert watching.look([]) is None
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    bench.clock.advance(20)
    outage = watching.look([])
    assert outage is not None
    assert (outage.model, outage.seconds, outage.hopeless) == ("scripted:m", 40.0, False)
    bench.clock.advance(40)
    ask(gateway)
    assert watching.look([]) is None


def test_only_probes_that_fail_while_a_run_waits_make_it_hopeless(bench: Bench) -> None:
    gateway, before = bench.gateway(Scripted(broken(bench, 6 + PROBES))), vigil(bench)
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    first = before.look([])
    for _ in range(PROBES):
        bench.clock.advance(60)
        fails(gateway, ModelUnavailable)
    last, later = before.look([]), vigil(bench).look([])
    told = [(each.probes, each.hopeless) for each in (first, last, later) if each is not None]
    assert told == [(0, False), (PROBES, True), (0, False)]
    assert last is not None
    error = ModelAway(last, done=3, total=12)
    assert (error.code, error.details) == ("model_unavailable", {"model": "scripted:m", "done": 3, "total": 12})
    assert "3 of 12 documents are done" in error.message
