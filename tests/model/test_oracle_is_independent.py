"""The second opinion must stay one: neither it nor anything it imports from testing may know `decide` or `retry`."""

import ast
from pathlib import Path

import docmill.testing
from docmill.testing.oracle import Oracle
from docmill.testing.samples import SAMPLES, diamond

FORBIDDEN = {"docmill.engine.decide", "docmill.engine.retry", "docmill.testing.pure", "docmill.testing.play"}


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_the_oracle_imports_neither_decide_nor_retry() -> None:
    folder = Path(docmill.testing.__file__).parent
    for name in ("oracle.py", "facts.py", "driver.py", "invariants.py", "sequences.py", "samples.py", "system.py"):
        assert not imports_of(folder / name) & FORBIDDEN, name


def test_the_oracle_serves_several_jobs_like_a_store() -> None:
    oracle = Oracle()
    for number, plan in enumerate(SAMPLES):
        oracle.submit(f"job{number}", plan)
    assert {lease.job_id for lease in oracle.claim("ann", 100)} == set(oracle.jobs)
    assert len(oracle.sweep("ann")) == len(oracle.waiting()) + len(oracle.claimable())
    assert oracle.running() == []


def test_progress_counts_settled_steps() -> None:
    oracle = Oracle()
    oracle.submit("job", diamond())
    assert oracle.progress("job") == 0
    assert oracle.cancel("job")
    assert oracle.progress("job") == 1
