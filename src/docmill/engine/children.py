"""CPU work in spawned children with limits: one dead child breaks nothing else.

Each child is a separate interpreter with memory and CPU limits, recycled after a number of tasks, killed when a task
takes longer than its wall limit. Functions are named by module and qualified name; arguments and results are pickled.
"""

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import Any, BinaryIO

from docmill.model.errors import DocmillError, PermanentError, RetryableError

_HEADER = struct.Struct("<Q")
_MAX_MESSAGE = 1 << 31


class ChildDied(RetryableError):
    """The child process that ran the work died: out of memory, out of CPU time, or a crash in native code."""

    code = "child_died"


class ChildTimedOut(RetryableError):
    """The work took longer than its wall limit and was killed."""

    code = "child_timed_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """Limits of one child."""

    count: int = os.cpu_count() or 1
    memory_mb: int = 2048
    cpu_seconds: int = 600
    """Over the child's life; it is recycled long before."""
    tasks: int = 100
    """Recycled after this many."""


class _Child:
    """One child process, used by one thread at a time."""

    def __init__(self, settings: ChildSettings) -> None:
        self.left = settings.tasks
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "DOCMILL_FAILPOINT": ""}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "docmill.engine.children", str(settings.memory_mb), str(settings.cpu_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def call(self, message: bytes, timeout: float) -> bytes:
        """One task; ChildDied or ChildTimedOut when there is no answer."""
        timer = _Killer(self._process, timeout)
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            write_message(self._process.stdin, message)
            answer = read_message(self._process.stdout)
        except (BrokenPipeError, ValueError):
            answer = None
        finally:
            timed_out = timer.disarm()
        if answer is None:
            self.close()
            if timed_out:
                raise ChildTimedOut(f"The work took longer than {timeout:g} s and was stopped.")
            raise ChildDied(f"The child process died ({self._how()}); the file may need more memory than allowed.")
        self.left -= 1
        return answer

    def _how(self) -> str:
        code = self._process.returncode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class _Killer:
    """Kills a process when its time is up."""

    def __init__(self, process: "subprocess.Popen[bytes]", timeout: float) -> None:
        from threading import Timer

        self._fired = False
        self._process = process
        self._timer = Timer(timeout, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self) -> None:
        self._fired = True
        self._process.kill()

    def disarm(self) -> bool:
        self._timer.cancel()
        return self._fired


class Children:
    """A fixed number of children, started when first needed."""

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._threads: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[_Child | None] = SimpleQueue()

    async def run(self, function: Callable[..., Any], arguments: tuple[object, ...], timeout: float) -> Any:
        """Run the function in a child; raises what it raised, or ChildDied."""
        if "<locals>" in function.__qualname__ or function.__name__ == "<lambda>":
            raise PermanentError(f"{function.__qualname__} cannot run in a child: name a function at module level.")
        message = pickle.dumps((function.__module__, function.__qualname__, arguments))
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._settings.count, thread_name_prefix="docmill-child")
        answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._call, message, timeout)
        good, value = pickle.loads(answer)
        if good:
            return value
        raise value

    def _call(self, message: bytes, timeout: float) -> bytes:
        child = self._idle.get() if not self._idle.empty() else None
        if child is None or child.left <= 0:
            if child is not None:
                child.close()
            child = _Child(self._settings)
        try:
            answer = child.call(message, timeout)
        except (ChildDied, ChildTimedOut):
            raise
        self._idle.put(child)
        return answer

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._idle.empty():
            child = self._idle.get()
            if child is not None:
                child.close()


def write_message(stream: BinaryIO | Any, message: bytes) -> None:
    stream.write(_HEADER.pack(len(message)) + message)
    stream.flush()


def read_message(stream: BinaryIO | Any) -> bytes | None:
    """The next message, or None when the other side is gone."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    (size,) = _HEADER.unpack(header)
    if size > _MAX_MESSAGE:
        raise ValueError("message too large")
    message: bytes = stream.read(size)
    return message if len(message) == size else None


def _answer(message: bytes) -> bytes:
    try:
        module, name, arguments = pickle.loads(message)
        target: Any = import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
        return pickle.dumps((True, target(*arguments)))
    except Exception as error:
        known = isinstance(error, DocmillError)
        carried = error if known else RetryableError(f"{type(error).__name__}: {error}")
        try:
            return pickle.dumps((False, carried))
        except Exception:
            return pickle.dumps((False, RetryableError(f"{type(error).__name__}: {error}")))


def _serve() -> None:
    """The child's side: read a task, run it, answer; until the parent closes the pipe."""
    memory, cpu = int(sys.argv[1]) << 20, int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever the work prints must not end up among the answers.
    os.dup2(2, 1)
    while (message := read_message(tasks)) is not None:
        write_message(answers, _answer(message))


if __name__ == "__main__":
    _serve()
