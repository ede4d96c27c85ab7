"""The real `docmill` executable in an installation of its own, driven as a person or a script would."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmill.testing.waiting import until

HERE = Path(__file__).parent
DOCMILL = Path(sys.executable).with_name("docmill")
PATIENCE = 60.0
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
    "gated": """
name: gated
processable_type: document
steps:
  - {step_key: gate, type: mill.gate}
  - {step_key: finish, type: FinishProcessing}
""",
}


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

    def having(self, **variables: str | None) -> "Mill":
        """The same with other variables; None unsets one."""
        merged = self.environment | {name: value for name, value in variables.items() if value is not None}
        return Mill(
            folder=self.folder, environment={k: v for k, v in merged.items() if variables.get(k, "") is not None}
        )

    def __call__(self, *arguments: str, given: str | None = None) -> Answer:
        """Run a command to its end."""
        done = subprocess.run(
            [DOCMILL, *arguments],
            cwd=self.folder,
            env=self.environment,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

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


class Running:
    """A command that goes on, with its output in files."""

    def __init__(self, mill: Mill, arguments: tuple[str, ...]) -> None:
        self._number = len(list(mill.folder.glob("running-*.out")))
        self._out = mill.folder / f"running-{self._number}.out"
        self._err = mill.folder / f"running-{self._number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [DOCMILL, *arguments],
                cwd=mill.folder,
                env=mill.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

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
                raise AssertionError(f"ended with {self.process.returncode}: {self.out}{self.err}")
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
        if self.process.poll() is None:
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
