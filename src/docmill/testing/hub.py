"""A stand-in for an outside executor: a real HTTP server on loopback that keeps a log and answers by a script.

In a test, with a callable that takes the callbacks; or as a process of its own, which brings them to the installation
that its environment describes, or runs `docmill callback` for each:

    python -m docmill.testing.hub DIRECTORY [--manner shuffled,doubled] [--secret whsec_…] [--command docmill…]

Its address is in DIRECTORY/hub.url once it listens; DIRECTORY/hub.log has every message, synced before it is accepted.
"""

import json
import os
import queue
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from docmill.bootstrap.clock import this_moment
from docmill.model.ids import new_id
from docmill.webhooks.signatures import SignatureInvalid, signed_headers, verify

Deliver = Callable[[bytes, Mapping[str, str]], object]
"""Takes a callback's body and headers to the installation."""
Callback = dict[str, object]
Script = Callable[[Mapping[str, Any]], Sequence[Callback]]
"""The callbacks to send for a message, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """One message that the hub received."""

    headers: Mapping[str, str]
    message: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps it asks for."""
        return list(self.message["metadata"]["steps"])


def _publish(path: Path, text: str) -> None:
    """A file that is there whole or not at all: whoever waits for it to exist may read it at once."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text)
    unfinished.replace(path)


def completed(message: Mapping[str, Any], step: Mapping[str, Any]) -> Callback:
    """A good answer to one step: a text, as a model would give, and the token, so that a witness can tell attempts."""
    return {
        "jobId": message["metadata"]["jobId"],
        "stepKey": step["stepKey"],
        "status": "COMPLETED",
        "resultData": {"message": f"done: {step['stepKey']}", "token": step["token"]},
        "token": step["token"],
    }


def failed(message: Mapping[str, Any], step: Mapping[str, Any], reason: str = "The model is tired.") -> Callback:
    """A bad answer to one step."""
    answer = completed(message, step)
    del answer["resultData"]
    return {**answer, "status": "FAILED", "errorMessage": reason}


class Manners:
    """A script by words: `failed` (each step's first attempt), `foreign` (with the next step's token before the right
    one), `progress` (reports before the answer), `late` (the answers to the message before this one come with it, too
    late), `doubled`, `shuffled`, `silent`. In order and once if there is no word.
    """

    def __init__(self, words: Sequence[str] = (), *, seed: int = 0) -> None:
        unknown = set(words) - {"failed", "foreign", "progress", "late", "doubled", "shuffled", "silent"}
        assert not unknown, f"no such manners: {unknown}"
        self._words = frozenset(words)
        self._random = random.Random(seed)
        self._before: list[Callback] = []

    def __call__(self, message: Mapping[str, Any]) -> Sequence[Callback]:
        words, steps = self._words, message["metadata"]["steps"]
        answers: list[Callback] = []
        for step, neighbour in zip(steps, [*steps[1:], steps[0]], strict=True):
            answer = completed(message, step)
            if "failed" in words and step["attempt"] == 1:
                answer = failed(message, step)
            if "foreign" in words and len(steps) > 1:
                answers.append({**answer, "token": neighbour["token"]})
            if "progress" in words:
                answers.append({**answer, "status": "IN_PROGRESS"})
            answers.append(answer)
        if "late" in words:
            answers, self._before = self._before, answers
        if "doubled" in words:
            answers = [answer for answer in answers for _ in range(2)]
        if "shuffled" in words:
            self._random.shuffle(answers)
        return [] if "silent" in words else answers


class Hub:
    """The server. Messages are answered one after the other, on a thread of their own."""

    def __init__(
        self, directory: Path, *, deliver: Deliver | None = None, script: Script | None = None, key: bytes | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / "hub.log"
        self._fd = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._deliver = deliver
        self._script: Script = script or Manners()
        self._key = key
        self._work: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self.refusals: list[tuple[int, Mapping[str, str]]] = []
        """Statuses and headers to answer the next messages with instead of taking them."""
        self.answers: list[object] = []
        """What the installation said to each callback."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/docmill"
        _publish(directory / "hub.url", self.url)
        self._threads = [
            Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            Thread(target=self._answer_all, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def dispatches(self) -> list[Dispatch]:
        """Every message so far, in order."""
        lines = self._log.read_text().splitlines()
        return [Dispatch(**json.loads(line)) for line in lines]

    def take(self, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str]]:
        """One message: status and headers of the answer."""
        if self.refusals:
            return self.refusals.pop(0)
        if self._key is not None:
            try:
                verify(self._key, headers, body, now=this_moment())
            except SignatureInvalid:
                return 401, {}
        message = json.loads(body)
        line = json.dumps({"headers": {name.lower(): value for name, value in headers.items()}, "message": message})
        os.write(self._fd, line.encode() + b"\n")
        os.fsync(self._fd)
        if self._deliver is not None:
            self._work.put(message)
        return 202, {}

    def send(self, callback: Callback) -> object:
        """Bring one callback to the installation, signed if there is a key."""
        assert self._deliver is not None
        body = json.dumps(callback).encode()
        headers = signed_headers(self._key, message_id=f"msg_{new_id()}", body=body, now=this_moment())
        answer = self._deliver(body, headers)
        self.answers.append(answer)
        return answer

    def _answer_all(self) -> None:
        while (message := self._work.get()) is not None:
            for callback in self._script(message):
                self.send(callback)

    def close(self) -> None:
        """Stop listening; what was taken is still answered."""
        self._work.put(None)
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()
        os.close(self._fd)


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, headers = hub.take(dict(self.headers.items()), body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    return Handler


def by_command(command: Sequence[str]) -> Deliver:
    """Callbacks through a command such as `docmill callback`; what it printed."""
    import subprocess

    def deliver(body: bytes, headers: Mapping[str, str]) -> object:
        options = [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]
        done = subprocess.run([*command, *options, "-"], input=body, stdout=subprocess.PIPE, check=False)
        return json.loads(done.stdout or b"null")

    return deliver


def main() -> None:
    """Serve until the parent ends or the process is killed."""
    import shlex
    import signal
    import sys

    from docmill.bootstrap import open_app
    from docmill.settings import load_settings
    from docmill.testing.nursery import die_with_parent
    from docmill.webhooks.signatures import read_secret

    die_with_parent(os.getppid())
    ends = {signal.SIGTERM, signal.SIGINT}
    # Before the first thread, which would otherwise be ended by them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    directory, *rest = sys.argv[1:]
    options = dict(_pairs(rest))
    manners = Manners([word for word in options.get("--manner", "").split(",") if word])
    key = read_secret(options["--secret"]) if "--secret" in options else None
    with open_app(load_settings()) as app:
        deliver: Deliver = lambda body, headers: app.callbacks.receive(body, now=this_moment(), headers=headers)  # noqa: E731
        if "--command" in options:
            deliver = by_command(shlex.split(options["--command"]))
        hub = Hub(Path(directory), deliver=deliver, script=manners, key=key)
        signal.sigwait(ends)
        hub.close()


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(words[::2], words[1::2], strict=True)


if __name__ == "__main__":
    main()
