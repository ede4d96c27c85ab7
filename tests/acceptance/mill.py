"""The real `docmill` executable in an installation of its own, driven as a person or a script would."""

import atexit
import json
import os
import pkgutil
import select
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from docmill.testing.nursery import Nursery, Nursling
from docmill.testing.waiting import until

HERE = Path(__file__).parent
DOCMILL = Path(sys.executable).with_name("docmill")
PATIENCE = 180.0
"""Seconds; generous, since several test processes share two cores."""

TEMPLATES = {
    "plain": """
name: plain
processable_type: document
steps:
  - {step_key: read, type: mill.echo}
  - {step_key: shaky, type: mill.shaky, depends_on: [read]}
  - {step_key: finish, type: FinishProcessing}
""",
    "priced": """
name: priced
processable_type: document
service_name: mill
steps:
  - {step_key: read, type: mill.echo}
  - {step_key: price, type: mill.price, depends_on: [read], processor_method: keep}
  - {step_key: file, type: mill.echo, depends_on: [price], condition: metadata.file == true}
  - {step_key: finish, type: FinishProcessing}
""",
    "half": """
name: half
processable_type: document
steps:
  - {step_key: read, type: mill.echo}
  - {step_key: extra, type: mill.broken, optional: true}
  - {step_key: finish, type: FinishProcessing}
""",
    "failing": """
name: failing
processable_type: document
steps:
  - {step_key: scan, type: mill.broken}
  - {step_key: after, type: mill.echo, depends_on: [scan]}
  - {step_key: finish, type: FinishProcessing}
""",
    "checked": """
name: checked
processable_type: document
service_name: mill
steps:
  - {step_key: check, type: mill.check, processor_method: keep}
  - {step_key: price, type: mill.price, depends_on: [check], input: {total: results.check.total}}
  - step_key: approve
    type: human.task
    depends_on: [price]
    condition: metadata.approve == true
    input: {title: "'Approve ' + text(results.check.total)"}
    output_schema: {type: object, properties: {approved: {type: boolean}}, required: [approved]}
  - {step_key: finish, type: FinishProcessing}
""",
    "many": """
name: many
processable_type: case
steps:
  - {step_key: read, type: mill.page, for_each: metadata.documents, parallel: 2, items_may_fail: true}
  - {step_key: finish, type: FinishProcessing}
""",
    "gated": """
name: gated
processable_type: document
steps:
  - {step_key: gate, type: mill.gate}
  - {step_key: finish, type: FinishProcessing}
""",
}


@cache
def nursery() -> Nursery:
    """Where the commands of this test process are born: what nearly all of them import is imported once."""
    packages = [f"docmill.{name}" for name in ("cli", "engine", "engine.sql", "services", "settings", "steps")]
    modules = [
        f"{package}.{found.name}"
        for package in packages
        for found in pkgutil.iter_modules(import_module(package).__path__)
    ]
    made = Nursery([*modules, "alembic.command", "cyclopts.completion", "docmill.bootstrap", "psycopg", "rich.table"])
    atexit.register(made.close)
    return made


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The lines of JSON on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The error object on stderr of a command with --json."""
        return json.loads(self.err)["error"]


@dataclass(frozen=True, kw_only=True)
class Mill:
    """An installation: a folder and an environment."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    script: Path = DOCMILL

    def having(self, **variables: str | None) -> "Mill":
        """The same with other variables; None unsets one."""
        merged = self.environment | {name: value for name, value in variables.items() if value is not None}
        return replace(self, environment={k: v for k, v in merged.items() if variables.get(k, "") is not None})

    def __call__(self, *arguments: str, given: str | None = None) -> Answer:
        """Run a command to its end."""
        deadline = time.monotonic() + PATIENCE
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        process = self.born(arguments, (stdin[0], stdout[1], stderr[1]))
        for end in (stdin[0], stdout[1], stderr[1]):
            os.close(end)
        try:
            out, err = _converse(stdin[1], (given or "").encode(), (stdout[0], stderr[0]), deadline)
            code = process.wait(max(0.0, deadline - time.monotonic()))
        finally:
            process.kill()
        return Answer(code=code, out=out, err=err)

    def fresh(self, *arguments: str, given: str | None = None) -> Answer:
        """The same in a new interpreter, which costs a second of CPU: for tests of the start itself."""
        done = subprocess.run(
            [sys.executable, self.script, *arguments],
            cwd=self.folder,
            env=self.environment,
            input=given or "",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

    def born(self, arguments: Sequence[str], streams: tuple[int, int, int], *, session: bool = False) -> Nursling:
        """A process that runs a command in this installation."""
        return nursery().start(
            self.script, arguments, environment=self.environment, folder=self.folder, streams=streams, session=session
        )

    @contextmanager
    def started(self, *arguments: str) -> Iterator["Running"]:
        """Run a command in the background; it is gone when the block ends."""
        with Running(self, arguments) as running:
            yield running

    def submit(self, template: str, *options: str) -> str:
        """The id of a new job."""
        answer = self("jobs", "submit", template, "document:7", *options)
        assert answer.code == 0, answer
        return answer.out.strip()

    def write(self, name: str, text: str) -> str:
        """A file in the folder; its name."""
        (self.folder / name).write_text(text)
        return name


def _converse(to: int, given: bytes, from_: Sequence[int], deadline: float) -> list[str]:
    """Say what is given, hear all that is said, and close everything."""
    said = dict.fromkeys(from_, b"")
    with selectors.DefaultSelector() as selector:
        selector.register(to, selectors.EVENT_WRITE)
        for fd in from_:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            assert ready, f"said nothing more for long: {said}"
            for key, _ in ready:
                if key.fd == to:
                    given = given[_written(to, given) :]
                    done = not given
                else:
                    chunk = os.read(key.fd, 65536)
                    said[key.fd] += chunk
                    done = not chunk
                if done:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [text.decode().replace("\r\n", "\n") for text in said.values()]


def _written(fd: int, data: bytes) -> int:
    """How much was; all of it when nobody reads any more."""
    try:
        return os.write(fd, data[: select.PIPE_BUF])
    except BrokenPipeError:
        return len(data)


class Running:
    """A command that goes on, with its output in files."""

    def __init__(self, mill: Mill, arguments: tuple[str, ...]) -> None:
        self._number = len(list(mill.folder.glob("running-*.out")))
        self._out = mill.folder / f"running-{self._number}.out"
        self._err = mill.folder / f"running-{self._number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err, open(os.devnull, "rb") as nothing:
            self.process = mill.born(arguments, (nothing.fileno(), out.fileno(), err.fileno()), session=True)

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def says(self, text: str, times: int = 1) -> None:
        """Wait until it has said this, on either stream."""

        def said() -> bool:
            if self.process.poll() is not None and (self.out + self.err).count(text) < times:
                raise AssertionError(f"ended with {self.process.poll()}: {self.out}{self.err}")
            return (self.out + self.err).count(text) >= times

        until(said, PATIENCE, what=f"{text!r} in the output")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> Answer:
        """Wait for its end."""
        code = self.process.wait(PATIENCE)
        return Answer(code=code, out=self.out, err=self.err)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What a command finds in its environment: nothing of the developer's own DOCMILL_*."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DOCMILL_", "NO_COLOR"))}
    return inherited | {
        "COLUMNS": "80",
        "DOCMILL_HOME": str(folder / "home"),
        "DOCMILL_PLUGINS": "mill_steps",
        "MILL_COUNTER": str(folder / "counter"),
        "MILL_GATE": str(folder / "gate"),
        "PYTHONPATH": str(HERE),
        **more,
    }


def store_templates(mill: Mill) -> None:
    """Store all of TEMPLATES."""
    files = [mill.write(f"{name}.yaml", text) for name, text in TEMPLATES.items()]
    answer = mill("templates", "import", *files)
    assert answer.code == 0, answer
