"""`examples/docmill-hello`: found by its entry point, run in a real worker process, checked by strict types."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from sqlalchemy import text

from docmill.bootstrap import App, open_app
from docmill.engine.batch import NewJob
from docmill.model.ids import DEFAULT_ORG
from docmill.model.statuses import JobStatus
from docmill.settings import Settings
from docmill.templates.compile import compile_template
from docmill.testing.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "docmill-hello"
PACKAGE = EXAMPLE / "src" / "docmill_hello"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example was built and installed, without a network."""
    # A copy, so that nothing the build leaves behind ends up in the source.
    source = tmp_path_factory.mktemp("source") / "docmill-hello"
    shutil.copytree(EXAMPLE, source)
    target = tmp_path_factory.mktemp("installed")
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation", "--link-mode", "copy"]
    done = subprocess.run(
        [*map(str, [*command, "--python", sys.executable, "--target", target, source])],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def app(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """An installation whose Python finds the example."""
    monkeypatch.syspath_prepend(str(installed))
    with open_app(Settings(home=tmp_path)) as app:
        with app.database.write() as connection:
            for statement in (PACKAGE / "schema.sql").read_text().split(";\n"):
                if statement.strip():
                    connection.execute(text(statement))
            connection.execute(text("insert into hello_guests values ('1', 'ada lovelace')"))
        yield app


@pytest.fixture
def worker(installed: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker process that knows of the example by its entry point alone."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")}
    environment = {**inherited, "DOCMILL_HOME": str(tmp_path), "PYTHONPATH": str(installed)}
    with (tmp_path / "worker.log").open("wb") as log:
        command = [sys.executable, "-m", "docmill.demo.worker"]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=log, cwd=tmp_path)
    yield process
    process.terminate()
    assert process.wait(60) == 0, (tmp_path / "worker.log").read_text()
    assert process.stdin is not None
    process.stdin.close()


def test_the_entry_point_brings_step_processor_and_loader(app: App) -> None:
    assert [point.value for point in metadata.entry_points(group="docmill.plugins")] == ["docmill_hello"]
    assert "hello.greet" in app.registry.steps
    assert ("hello", "save") in app.registry.processors
    assert "guest" in app.registry.loaders


def test_a_job_runs_through_a_worker_process_and_its_effect_is_in_our_table(
    app: App, worker: "subprocess.Popen[bytes]"
) -> None:
    compiled = compile_template((PACKAGE / "greeting.yaml").read_text(), catalogue=app.catalogue)
    template = app.templates.register(compiled)
    found, missing = (
        NewJob(template_id=template.id, org_id=DEFAULT_ORG, entity_type="guest", entity_id=guest) for guest in "12"
    )
    assert app.jobs.submit([found, missing]) == 2
    until(
        lambda: worker.poll() is not None or all(job.status.finished for job in app.jobs.list()),
        timeout=60,
        what="both jobs to end",
    )
    assert app.jobs.get(found.id).summary.status is JobStatus.COMPLETED
    refused = app.jobs.get(missing.id)
    assert refused.summary.status is JobStatus.FAILED
    assert refused.steps[0].error == {"code": "permanent", "message": "There is no guest 2.", "attempt": 1}
    with app.database.read() as connection:
        rows = connection.execute(text("select job_id, guest_id, text from hello_greetings")).all()
    assert [tuple(row) for row in rows] == [(found.id, "1", "Hello, Ada Lovelace!")]


def check_types(folder: Path, cache: Path) -> "subprocess.CompletedProcess[str]":
    """mypy --strict as the author of a plug-in runs it: against the installed docmill, with no settings of ours."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(cache), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=280)


def test_the_types_of_the_plug_in_surface_hold_and_refuse(tmp_path: Path) -> None:
    good = tmp_path / "good"
    shutil.copytree(PACKAGE, good / "docmill_hello")
    done = check_types(good, tmp_path / "cache")
    assert done.returncode == 0, done.stdout

    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "plugin.py").write_text(
        "from docmill.plugin import ApplyContext, StepContext, processor, step\n"
        "async def words() -> list[str]: return []\n"
        "@step('a')\n"
        "async def a(ctx: StepContext) -> int:\n"
        "    return await ctx.once('words', words)\n"  # 5: a list is no int
        "@step('b')\n"
        "async def b(ctx: StepContext) -> str:\n"
        "    return ctx.attempt\n"  # 8: a number is no text
        "@step('c')\n"
        "async def c(ctx: StepContext) -> str:\n"
        "    return ctx.entity_name\n"  # 11: no such thing
        "@processor('s', 'm')\n"
        "def save(ctx: ApplyContext, result: int) -> None:\n"
        "    ctx.db.commit()\n"  # 14: nobody commits but the engine
        "@step('d')\n"
        "async def d(ctx: StepContext) -> int:\n"
        "    return await ctx.cpu(len, 'text') + await ctx.once('n', lambda: 1)\n"  # right
    )
    done = check_types(bad, tmp_path / "cache")
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert sorted(lines) == [5, 8, 11, 14], done.stdout
