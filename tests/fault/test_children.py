"""CPU work runs in children with limits; one that dies breaks nothing else."""

from docmill.testing import fault_steps
from tests.fault.conftest import OpenFleet


def test_a_child_beyond_its_limits_fails_its_own_step_alone(on_sqlite: OpenFleet) -> None:
    limits = {
        "DOCMILL_CHILDREN__MEMORY_MB": "512",
        "DOCMILL_CHILDREN__CPU_SECONDS": "2",
        "DOCMILL_CHILDREN__COUNT": "2",
    }
    with on_sqlite(**limits) as fleet:
        fleet.register(fault_steps.single("cpu", "fault.cpu", max_attempts=1))
        worker = fleet.start(ready=True)
        jobs = {manner: fleet.submit("cpu", manner=manner)[0] for manner in ("well", "greedy", "dying", "slow", "busy")}
        jobs["after"] = fleet.submit("cpu", manner="well")[0]
        fleet.finish()
        steps = {manner: fleet.app.jobs.get(job).steps[0] for manner, job in jobs.items()}
        codes = {manner: (step.error or {}).get("code") for manner, step in steps.items()}
        assert codes == {
            "well": None,
            "greedy": "retryable",  # MemoryError, raised in the child and carried home
            "dying": "child_died",
            "slow": "child_timed_out",
            "busy": "child_timed_out",  # of the CPU's time, however long that takes on the clock
            "after": None,
        }
        assert [steps[manner].status for manner in ("well", "after")] == ["COMPLETED", "COMPLETED"]
        assert worker.running
