"""What a dead worker held is found and given back; a step that kills its workers is stopped."""

import fcntl
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from docmill.db.tables import workers
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch
from docmill.engine.events import Suspended
from docmill.engine.pools import PoolSettings, Slots
from docmill.engine.takeover import WorkerLock, gone_workers
from docmill.model.ids import derived_id, new_id
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, fan_out, make_plan, single_step
from docmill.testing.waiting import until
from docmill.testing.world import ANN, BOB, World, lease


def status_of(world: World, worker_id: str) -> str:
    with world.looking() as connection:
        return str(connection.execute(select(workers.c.status).where(workers.c.id == worker_id)).scalar_one())


def test_a_worker_whose_lease_ran_out_is_dead_and_its_steps_are_ready(world: World) -> None:
    job_id = world.submit(fan_out(3))
    runs = world.claim(2)
    world.register_workers(ANN, lease=-1.0)
    sweep = world.sweep(own=BOB)
    assert (sweep.dead, sweep.recovered, sweep.left_ready) == ((ANN,), 2, frozenset({"system"}))
    assert status_of(world, ANN) == WorkerStatus.DEAD
    for run in runs:
        step = world.state(job_id).steps[run.step.position]
        assert (step.status, step.crashes, step.epoch, step.worker) == ("READY", 1, run.state.epoch + 1, None)


def test_a_worker_that_renews_is_left_alone(world: World) -> None:
    world.submit(single_step())
    world.claim_one()
    sweep = world.sweep(own=BOB)
    assert (sweep.dead, sweep.recovered) == ((), 0)


def test_steps_of_a_worker_nobody_knows_are_given_back(world: World) -> None:
    world.submit(single_step())
    world.claim_one(worker=new_id())
    assert world.sweep().recovered == 1


def test_steps_of_a_worker_that_said_goodbye_are_given_back(world: World) -> None:
    world.submit(single_step())
    world.claim_one()
    world.set_worker(ANN, WorkerStatus.STOPPED)
    assert world.sweep(own=BOB).recovered == 1


def test_more_than_a_batch_is_recovered_in_one_sweep(world: World) -> None:
    world.commit(Batch(submissions=[world.new_job(fan_out(5)) for _ in range(90)]))
    assert len(world.claim(450)) == 450
    world.set_worker(ANN, WorkerStatus.DEAD)
    assert world.sweep(own=BOB).recovered == 450
    assert len(world.claim(1000, worker=BOB)) == 450


def test_two_sweepers_count_a_crash_once(world: World) -> None:
    job_id = world.submit(single_step())
    world.claim_one()
    world.set_worker(ANN, WorkerStatus.DEAD)
    assert world.sweep(own=BOB).recovered + world.sweep(own=BOB, store=world.other).recovered == 1
    assert world.state(job_id).steps[0].crashes == 1


def test_a_wait_past_its_deadline_fails_and_is_tried_again(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    world.report(job_id, Suspended(**lease(run), deadline=START))
    sweep = world.sweep(own=BOB)
    assert sweep.overdue == 1
    step = world.steps(job_id)["a"]
    assert (step.status, step.failures, step.error["code"]) == ("READY", 1, "deadline_passed")
    assert sweep.next_due == step.due_at


def test_a_wait_with_time_left_goes_on(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    world.report(job_id, Suspended(**lease(run), deadline=world.job(job_id).created_at + timedelta(hours=1)))
    assert world.sweep().overdue == 0
    assert world.job(job_id).status == "WAITING"


def test_a_step_that_kills_three_workers_has_failed(world: World) -> None:
    job_id = world.submit(single_step())
    queues = []
    for crash in range(3):
        worker = derived_id("worker", "victim", crash)
        world.register_workers(worker)
        (run,) = world.claim(worker=worker) or world.claim(worker=worker, queue="system!")
        queues.append(run.queue)
        world.set_worker(worker, WorkerStatus.DEAD)
        assert world.sweep(own=BOB).recovered == 1
    assert queues == ["system", "system", "system!"]
    step = world.steps(job_id)["a"]
    assert (step.status, step.crashes, step.error["code"]) == ("FAILED", 3, "worker_died")
    assert world.job(job_id).status == "FAILED"
    assert "3 times" in world.events(job_id)[-1].data["errors"]["a"]["message"]


def test_suspects_are_claimed_one_at_a_time_and_nobody_else_waits(world: World) -> None:
    """Two crashes make a suspect: it runs alone, so that it takes nobody's last chance with it."""
    slots = Slots([PoolSettings(name="system", capacity=4), PoolSettings(name="ai", capacity=4)])
    assert slots.reserve_up_to("system!", 10) == 1
    assert slots.reserve_up_to("system!", 10) == 0
    assert slots.reserve_up_to("ai!", 10) == 0
    assert slots.reserve_up_to("system", 10) == 3
    slots.release("system!")
    assert slots.reserve("ai!")
    bystander = world.submit(single_step())
    poison = world.submit(make_plan([Draft(key="p"), Draft(key="q")]))
    for crash in range(2):
        worker = derived_id("worker", "victim", crash)
        world.register_workers(worker)
        assert world.claim(worker=worker)
        world.set_worker(worker, WorkerStatus.DEAD)
        world.sweep(own=BOB)
    assert world.claim() == ()
    assert len(world.claim(1, queue="system!")) == 1
    assert len(world.claim(10, queue="system!")) == 2
    assert world.job(bystander).status == world.job(poison).status == "IN_PROGRESS"


HOLDER = """
import sys
from pathlib import Path
from docmill.engine.takeover import WorkerLock
lock = WorkerLock(Path(sys.argv[1]))
lock.take(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_worker_whose_process_is_gone_is_taken_over_at_once(world: World) -> None:
    """Killed, not stopped: the kernel lets go of its lock while its lease has an hour to go."""
    job_id = world.submit(single_step())
    world.claim_one()
    command = [sys.executable, "-c", HOLDER, str(world.run_dir), ANN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert world.sweep(own=BOB).dead == ()
        holder.kill()
        holder.wait()
    sweep = world.sweep(own=BOB)
    assert (sweep.dead, sweep.recovered) == ((ANN,), 1)
    assert world.statuses(job_id)["a"] == "READY"
    assert list(world.run_dir.glob("*.lock")) == []


def test_a_sweeper_that_dies_over_a_lock_file_leaves_it_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "gone.lock").touch()
    found = gone_workers(tmp_path, own="me")
    assert next(found) == "gone"
    del found
    assert list(gone_workers(tmp_path, own="me")) == ["gone"]
    assert list(gone_workers(tmp_path, own="me")) == []


def test_a_lock_is_held_while_the_caller_looks_at_it(tmp_path: Path) -> None:
    (tmp_path / "gone.lock").touch()
    for name in gone_workers(tmp_path, own="me"):
        assert name == "gone"
        assert list(gone_workers(tmp_path, own="other")) == []


def test_ones_own_lock_and_those_of_the_living_are_left_alone(tmp_path: Path) -> None:
    mine, neighbour = WorkerLock(tmp_path), WorkerLock(tmp_path)
    mine.take("me")
    neighbour.take("neighbour")
    assert list(gone_workers(tmp_path, own="me")) == []
    mine.take("me-again")
    assert not (tmp_path / "me.lock").exists()
    neighbour.drop()
    assert [path.name for path in tmp_path.iterdir()] == ["me-again.lock"]
    mine.drop()


def test_a_lock_file_removed_under_our_hands_is_made_anew(tmp_path: Path) -> None:
    """A sweeper saw the new file before it was locked, took it for a dead worker's and removed it."""
    path = tmp_path / "me.lock"
    lock = WorkerLock(tmp_path)
    with path.open("w") as sweeper:
        fcntl.flock(sweeper, fcntl.LOCK_EX)
        taking = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path), "me"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        until(lambda: _waits_for_a_lock(taking.pid), what="the other process to wait for the lock")
        path.unlink()
    with taking:
        assert taking.stdout is not None
        assert taking.stdout.readline() == "held\n"
        assert path.exists()
        assert list(gone_workers(tmp_path, own="other")) == []
        taking.kill()
    assert list(gone_workers(tmp_path, own="other")) == ["me"]
    lock.drop()


def _waits_for_a_lock(pid: int) -> bool:
    """The kernel lists who waits for whom; waiting entries carry an arrow."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f" {pid} " in line for line in lines)
