"""What happens to a fleet, told once: promises demand that nothing is violated, mutations that something is."""

import json
import signal
from collections.abc import Iterable, Mapping

from docmill.testing import fault_steps
from docmill.testing.fleet import Fleet, WorkerProcess
from docmill.testing.verdict import examine
from docmill.testing.witness import Note


def zombie(fleet: Fleet, step_type: str, processor: bool) -> list[str]:
    """A worker is stopped with a result in hand, outlives its lease, and wakes while another works on its step."""
    settings = {"processor_method": "record"} if processor else {}
    fleet.register(fault_steps.single("zombie", step_type, **settings))
    fleet.witness.open_gate("zombie-1")
    sleeper = fleet.start(ready=True, DOCMILL_WITNESS_POINTS="1", DOCMILL_WITNESS_HOLD="compute.after")
    fleet.submit("zombie", gate="zombie")
    fleet.witness.wait_for("passed", lambda notes: any(note.key == "compute.after" for note in notes))
    # Not where it stops itself: another thread of it might be in a transaction at that moment.
    with fleet.nobody_writes():
        fleet.stop(sleeper)
    fleet.witness.open_gate("compute.after")
    fleet.start()
    seen = "asked" if step_type == "fault.ask" else "computing"
    fleet.witness.wait_for(seen, lambda notes: len(notes) == 2)
    sleeper.signal(signal.SIGCONT)
    # Awake, it finds itself dead, takes a new id, and its lane gets to commit what it had in hand.
    lane = "docmill-lane-b" if processor else "docmill-lane-a"
    fleet.until(lambda: _committed_after_waking(fleet, sleeper, lane), "the zombie to try")
    fleet.witness.open_gate("zombie-2")
    fleet.finish()
    assert sleeper.running
    return examine(fleet.database, fleet.witness)


def _committed_after_waking(fleet: Fleet, worker: WorkerProcess, lane: str) -> bool:
    passed = [note for note in fleet.witness.notes("passed") if note.pid == worker.pid]
    born = [place for place, note in enumerate(passed) if note.key == "worker.registered"]
    return len(born) > 1 and any(note.key == "commit.after" and note.detail == lane for note in passed[born[1] :])


def killed_at(fleet: Fleet, point: str, *, jobs: int = 5, patience: float = 90.0) -> list[str]:
    """A worker dies at a point, with nobody else there; another comes."""
    victim = fleet.start(f"{point}:1:kill")
    fleet.submit("fault everything", jobs)
    assert victim.wait() == -signal.SIGKILL
    fleet.start(ready=True)
    try:
        fleet.finish(patience)
    except AssertionError:
        return examine(fleet.database, fleet.witness) or ["the jobs did not finish"]
    return examine(fleet.database, fleet.witness)


def contention(fleet: Fleet, *, workers: int = 3, jobs: int = 40) -> list[str]:
    """Several workers complete siblings of the same jobs at the same moments."""
    fleet.register(fault_steps.siblings(8))
    fleet.submit("fault siblings", jobs)
    for _ in range(workers):
        fleet.start()
    fleet.until(lambda: fleet.unfinished() == 0 or not any(w.running for w in fleet.workers), "the jobs to finish")
    violations = [f"a worker ended with {worker.exit_code}" for worker in fleet.reap()]
    violations += _failed_steps(fleet)
    return violations + examine(fleet.database, fleet.witness)


def one_bad_apply(fleet: Fleet, *, good: int = 20) -> list[str]:
    """One of many results that wait for lane B is refused; the others are none the worse for it."""
    fleet.register(fault_steps.single("applies", "fault.free", processor_method="record"))
    fleet.start(ready=True, DOCMILL_POOLS__rule__CAPACITY=str(good + 2))
    fleet.submit("applies", good, gate="all")
    (bad,) = fleet.submit("applies", gate="all", bad=True)
    fleet.submit("applies", gate="first", lingers="lane")
    fleet.witness.wait_for("computing", lambda notes: len(notes) == good + 2)
    # While the first apply lingers in lane B, all others come to wait behind it.
    fleet.witness.open_gate("first-1")
    fleet.witness.wait_for("applying")
    fleet.witness.open_gate("all-1")
    fleet.witness.wait_for("computed", lambda notes: len(notes) == good + 2)
    fleet.witness.open_gate("lane")
    fleet.finish()
    violations = examine(fleet.database, fleet.witness)
    failed = fleet.scalar("select count(*) from processing_job_steps where failures > 0 and job_id <> :bad", bad=bad)
    if failed:
        violations.append(f"{failed} innocent steps failed")
    status = fleet.scalar("select status from processing_jobs where id = :bad", bad=bad)
    if status != "FAILED":
        violations.append(f"the bad job is {status}")
    return violations


def answers(fleet: Fleet, name: str, callbacks: Iterable[Mapping[str, object]]) -> str:
    """A file with these callbacks, for a client to bring in."""
    path = fleet.app.settings.home / f"{name}.jsonl"
    path.write_text("".join(f"{json.dumps(callback)}\n" for callback in callbacks))
    return str(path)


def answer(note: Note, status: str = "COMPLETED") -> dict[str, object]:
    """The callback to a step that told the witness that it waits."""
    job_id, step_key, _ = note.key.split("/")
    return {
        "jobId": job_id,
        "stepKey": step_key,
        "status": status,
        "resultData": {"token": note.detail},
        "token": note.detail,
    }


def waiting(fleet: Fleet, jobs: int = 1) -> list[Note]:
    """Jobs whose two steps wait for an answer; what the witness knows of those steps."""
    fleet.register(fault_steps.ANSWERED)
    fleet.submit("fault answered", jobs)
    until_waiting(fleet, 2 * jobs)
    return list(fleet.witness.notes("waiting"))


def until_waiting(fleet: Fleet, steps: int) -> None:
    query = "select count(*) from processing_job_steps where status = 'WAITING' and step_key in ('ask', 'other')"
    fleet.until(lambda: fleet.scalar(query) == steps, f"{steps} steps to wait")


def answered_again(fleet: Fleet) -> list[str]:
    """An answer comes once more when it was applied and its job still goes on."""
    fleet.start(ready=True)
    ask, other = sorted(waiting(fleet), key=lambda note: note.key)
    file = answers(fleet, "ask", [answer(ask)])
    applied = "select count(*) from processing_job_steps where status = 'COMPLETED' and step_key = 'ask'"
    effects = "select count(*) from effects"
    assert fleet.run_client("callbacks", file) == 0
    fleet.until(lambda: fleet.scalar(applied), "the answer to be applied")
    assert fleet.run_client("callbacks", file) == 0
    # Whoever takes it for news has READY work for the worker now.
    fleet.until(lambda: fleet.scalar(applied), "the second answer to come to nothing, or be applied")
    assert fleet.scalar(effects)
    assert fleet.run_client("callbacks", answers(fleet, "other", [answer(other)])) == 0
    fleet.finish()
    return examine(fleet.database, fleet.witness)


def _failed_steps(fleet: Fleet) -> list[str]:
    failed = fleet.scalar("select count(*) from processing_job_steps where failures > 0 or crashes > 0")
    return [f"{failed} steps failed that did nothing wrong"] if failed else []
