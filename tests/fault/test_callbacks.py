"""Callbacks under fire: whoever dies between storing and acting, and however often they come, each counts once."""

import json
import random
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from docmill.testing import fault_steps
from docmill.testing.fleet import Fleet
from docmill.testing.hub import Hub, Manners
from docmill.testing.verdict import examine
from tests.fault import scenarios
from tests.fault.conftest import OpenFleet, volume

CLIENTS = 3
SECRET = "whsec_" + "c3RhbmQtaW4g" * 3
APPLIED = "select count(*) from processing_callbacks where outcome = 'applied'"


@pytest.mark.parametrize("point", ["callback.stored", "callback.answered"])
def test_a_receiver_that_dies_leaves_nothing_behind_that_nobody_finds(open_fleet: OpenFleet, point: str) -> None:
    """The executor is never heard again: what was stored must be enough."""
    with open_fleet() as fleet:
        fleet.start(ready=True)
        for number, note in enumerate(scenarios.waiting(fleet)):
            file = scenarios.answers(fleet, f"answer-{number}", [scenarios.answer(note)])
            assert fleet.run_client("callbacks", file, failpoint=f"{point}:1:kill") == -signal.SIGKILL
        fleet.finish()
        assert examine(fleet.database, fleet.witness) == []
        assert fleet.scalar(APPLIED) == 2


def test_an_executor_that_says_it_again_after_its_receiver_died_changes_nothing(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        worker = fleet.start(ready=True)
        file = scenarios.answers(fleet, "answers", [scenarios.answer(note) for note in scenarios.waiting(fleet)])
        # Nobody is there to sweep.
        worker.kill()
        fleet.reap()
        assert fleet.run_client("callbacks", file, failpoint="callback.stored:1:kill") == -signal.SIGKILL
        for _ in range(2):
            assert fleet.run_client("callbacks", file) == 0
        fleet.start()
        fleet.finish()
        assert examine(fleet.database, fleet.witness) == []
        assert fleet.scalar(APPLIED) == 2


@pytest.mark.parametrize("point", ["dispatch.sent", "compute.before", "compute.after"])
def test_a_worker_that_dies_while_it_sends_sends_again(open_fleet: OpenFleet, tmp_path: Path, point: str) -> None:
    """The hub heard it, the database does not know: the answers to the first message come to nothing."""
    with hub_for(tmp_path) as hub, open_fleet(DOCMILL_EXECUTORS__HUB__URL=hub.url) as fleet:
        hub.bring_to(fleet)
        fleet.register(fault_steps.SENT)
        victim = fleet.start(f"{point}:1:kill")
        (job_id,) = fleet.submit("fault sent")
        assert victim.wait() == -signal.SIGKILL
        fleet.reap()
        fleet.start(ready=True)
        fleet.finish()
        # The hub says everything twice, and is heard out.
        said = 2 * sum(len(dispatch.steps) for dispatch in hub.dispatches())
        fleet.until(lambda: len(hub.answers) == said, "the hub to fall silent")
        assert examine(fleet.database, fleet.witness) == []
        assert fleet.scalar("select status from processing_jobs where id = :id", id=job_id) == "COMPLETED"
        # Whatever was sent before the death was sent under tokens that are spent.
        tokens = [step["token"] for dispatch in hub.dispatches() for step in dispatch.steps]
        assert len(tokens) == len(set(tokens))
        assert (len(hub.dispatches()) == 3) == (point != "compute.before")


def test_a_storm_of_callbacks_moves_every_step_once(open_fleet: OpenFleet) -> None:
    """Some attempts fail and are asked again; then everything anybody could say comes three times, in any order."""
    chance = random.Random(4)
    jobs = volume(500, 10_000) // 8
    with open_fleet(DOCMILL_POOLS__EXTERNAL__CAPACITY="50") as fleet:
        fleet.start(ready=True)
        first = scenarios.waiting(fleet, jobs)
        unlucky = [note for note in first if chance.random() < 0.3]
        deliver(fleet, "failures", [scenarios.answer(note, "FAILED") for note in unlucky])
        # Asked again, under new tokens, before the storm begins.
        fleet.witness.wait_for("waiting", lambda notes: len(notes) == len(first) + len(unlucky))
        scenarios.until_waiting(fleet, len(first))
        everything = [scenarios.answer(note) for note in fleet.witness.notes("waiting")] * 3
        chance.shuffle(everything)
        deliver(fleet, "storm", everything)
        fleet.finish(timeout=90.0 + jobs / 4)
        assert examine(fleet.database, fleet.witness) == []
        assert fleet.scalar(APPLIED) == len(first) + len(unlucky)
        stored = fleet.scalar("select count(*) from processing_callbacks")
        assert stored == len(everything) + len(unlucky)
        assert fleet.scalar("select count(*) from processing_callbacks where outcome = 'received'") == 0
        failures = "select count(*) from processing_job_steps where failures > 0"
        assert fleet.scalar(failures) == len(unlucky)


@pytest.mark.parametrize("manner", ["doubled,shuffled,foreign,progress", "failed"])
def test_a_hub_that_is_a_process_of_its_own_is_as_good(open_fleet: OpenFleet, tmp_path: Path, manner: str) -> None:
    """Nothing is shared with it but the wire, its log and the way in."""
    directory = tmp_path / "hub"
    with open_fleet() as fleet:
        process = fleet.start_process("docmill.testing.hub", str(directory), "--manner", manner, "--secret", SECRET)
        fleet.until((directory / "hub.url").exists, "the hub to listen")
        url = (directory / "hub.url").read_text()
        fleet.register(fault_steps.SENT.replace("max_crashes", "backoff: 0.01, max_crashes"))
        fleet.start(DOCMILL_EXECUTORS__HUB__SECRET=SECRET, DOCMILL_EXECUTORS__HUB__URL=url)
        jobs = fleet.submit("fault sent", 3)
        fleet.finish()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        assert examine(fleet.database, fleet.witness) == []
        done = "select count(*) from processing_jobs where status = 'COMPLETED'"
        assert fleet.scalar(done) == len(jobs)
    logged = [json.loads(line) for line in (directory / "hub.log").read_text().splitlines()]
    assert len(logged) >= 2 * len(jobs)
    assert all(entry["headers"]["webhook-signature"].startswith("v1,") for entry in logged)


def deliver(fleet: Fleet, name: str, callbacks: list[dict[str, object]]) -> None:
    """Brought in by several processes at once."""
    files = [scenarios.answers(fleet, f"{name}-{n}", callbacks[n::CLIENTS]) for n in range(CLIENTS)]
    clients = [fleet.start_client("callbacks", file) for file in files]
    assert [client.wait(300.0) for client in clients] == [0] * CLIENTS


class FleetHub(Hub):
    """A hub that answers to the installation of a fleet, once there is one."""

    def bring_to(self, fleet: Fleet) -> None:
        self._deliver = lambda body, headers: fleet.app.callbacks.receive(body, now=datetime.now(UTC), headers=headers)

    def __enter__(self) -> "FleetHub":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def hub_for(tmp_path: Path) -> FleetHub:
    return FleetHub(tmp_path / "hub", script=Manners(["doubled"]))


def test_the_hub_logs_what_it_was_sent_as_json(tmp_path: Path) -> None:
    with hub_for(tmp_path) as hub:
        assert hub.take({"webhook-id": "m"}, json.dumps({"metadata": {"steps": []}}).encode())[0] == 202
        (dispatch,) = hub.dispatches()
        assert (dispatch.id, dispatch.steps) == ("m", [])
