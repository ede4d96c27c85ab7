"""CPU work in spawned children with limits: one dead child breaks nothing else.

Each child is a separate interpreter with memory and CPU limits, recycled after a number of tasks, killed when a task
takes longer than its wall limit. Functions are named by module and qualified name; arguments and results are pickled.
"""

import asyncio
import contextlib
import gc
import math
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Condition, Lock, Thread
from time import monotonic
from typing import Any, BinaryIO

from docmill.model.errors import DocmillError, PermanentError, RetryableError

_HEADER = struct.Struct("<Q")
_MAX_MESSAGE = 1 << 31
_GC_THRESHOLD = (200_000, 20, 20)
"""In a child: a document makes tens of thousands of small records that live as long as its task. To walk them after
every 700, as is the default, takes a sixth of the time. So they are looked through between tasks, when hardly any is
left, and before that only in what makes very many; memory is limited all the same."""
_LEFT, _YOUNG = 10_000, 1
"""Records that tasks left, from which on they are looked through; and up to which generation: what is older outlived
that once."""


class ChildDied(RetryableError):
    """The child process that ran the work died: out of memory, out of CPU time, or a crash in native code."""

    code = "child_died"


class ChildTimedOut(RetryableError):
    """The work took longer than its wall limit and was killed."""

    code = "child_timed_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """Limits of one child."""

    count: int = (os.cpu_count() or 1) + 1
    """One more than there are cores: a child waits for the disk whenever it has made something that is to last."""
    memory_mb: int = 2048
    cpu_seconds: int = 600
    """Of one task, however many the child has done before."""
    tasks: int = 2000
    """Recycled after this many: to start one and import what it needs costs 0.8 s of CPU, so 0.4 ms for each task."""


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

    def call(self, message: bytes, timeout: float, watchdog: "_Watchdog") -> bytes:
        """One task; ChildDied or ChildTimedOut when there is no answer."""
        watchdog.watch(self._process, timeout)
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            write_message(self._process.stdin, message)
            answer = read_message(self._process.stdout)
        except (BrokenPipeError, ValueError):
            answer = None
        finally:
            timed_out = watchdog.leave(self._process)
        if answer is None:
            self.close()
            if timed_out:
                raise ChildTimedOut(f"The work took longer than {timeout:g} s and was stopped.")
            if self._process.returncode == -signal.SIGXCPU:
                raise ChildTimedOut("The work took more CPU time than it may, and was stopped.")
            raise ChildDied(f"The child process died ({self._how()}); the file may need more memory than allowed.")
        # Killed just after it had answered: the answer counts, the child is done for.
        self.left = 0 if timed_out else self.left - 1
        return answer

    def _how(self) -> str:
        code = self._process.returncode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """End it; whoever waits for its answer gets none."""
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class _Watchdog:
    """Kills processes whose time is up. One thread for all: one for each task would cost too much."""

    def __init__(self) -> None:
        self._until: dict[subprocess.Popen[bytes], float] = {}
        self._late: set[subprocess.Popen[bytes]] = set()
        self._changed = Condition()
        self._looking_at = math.inf
        self._thread: Thread | None = None
        self._closed = False

    def watch(self, process: "subprocess.Popen[bytes]", timeout: float) -> None:
        """Kill it after so many seconds, unless it leaves before."""
        until = monotonic() + timeout
        with self._changed:
            self._until[process] = until
            if self._thread is None:
                self._thread = Thread(target=self._run, name="docmill-watchdog", daemon=True)
                self._thread.start()
            elif until < self._looking_at:
                self._changed.notify()

    def leave(self, process: "subprocess.Popen[bytes]") -> bool:
        """Watch it no longer; whether it was killed."""
        with self._changed:
            self._until.pop(process, None)
            late = process in self._late
            self._late.discard(process)
            return late

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = monotonic()
                for process in [each for each, until in self._until.items() if until <= now]:
                    del self._until[process]
                    self._late.add(process)
                    process.kill()
                # Who leaves does not wake us: we look once more in vain, and go on with who is there then.
                self._looking_at = min(self._until.values(), default=math.inf)
                self._changed.wait(None if self._looking_at == math.inf else min(self._looking_at - now, TIMEOUT_MAX))


class Children:
    """A fixed number of children, started when first needed."""

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._threads: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._busy: set[_Child] = set()
        self._closed = False
        self._lock = Lock()
        self._watchdog = _Watchdog()

    async def run(self, function: Callable[..., Any], arguments: tuple[object, ...], timeout: float) -> Any:
        """Run the function in a child; raises what it raised, or ChildDied."""
        message = _task(function, arguments)
        answer = await asyncio.get_running_loop().run_in_executor(self._pool(), self._call, message, timeout)
        good, value = pickle.loads(answer)
        if good:
            return value
        raise value

    def warm(self, function: Callable[[], object], count: int, timeout: float = 60.0) -> None:
        """Start so many children, as far as there may be, and have each import what it will need; nobody waits."""
        for _ in range(min(count, self._settings.count)):
            self._pool().submit(self._call, _task(function, ()), timeout)

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._settings.count, thread_name_prefix="docmill-child")
        return self._threads

    def _call(self, message: bytes, timeout: float) -> bytes:
        child = self._take()
        try:
            answer = child.call(message, timeout, self._watchdog)
        finally:
            with self._lock:
                self._busy.discard(child)
        if child.left > 0:
            self._idle.put(child)
        else:
            child.close()
        return answer

    def _take(self) -> _Child:
        try:
            child = self._idle.get_nowait()
        except Empty:
            child = _Child(self._settings)
        with self._lock:
            self._busy.add(child)
            closed = self._closed
        if closed:
            child.close()
        return child

    def close(self) -> None:
        """End all children, at work or not: whoever waits for one hears that it died."""
        with self._lock:
            self._closed = True
            for child in self._busy:
                child.kill()
        if self._threads is not None:
            # Soon done, for there is nobody left to wait for.
            self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()
        self._watchdog.close()

    def abandon(self) -> None:
        """Kill those at work and wait for nobody: for a process that ends at once, from within a signal handler too, so
        without the lock, which whoever was interrupted may hold. The idle ones end as their pipes close."""
        self._closed = True
        for child in tuple(self._busy):
            child.kill()


def _task(function: Callable[..., Any], arguments: tuple[object, ...]) -> bytes:
    if "<locals>" in function.__qualname__ or function.__name__ == "<lambda>":
        raise PermanentError(f"{function.__qualname__} cannot run in a child: name a function at module level.")
    return pickle.dumps((function.__module__, function.__qualname__, arguments))


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
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Sent to the whole group: the worker drains, and its children go on until it ends them.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    gc.set_threshold(*_GC_THRESHOLD)
    tasks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever the work prints must not end up among the answers.
    os.dup2(2, 1)
    while (message := read_message(tasks)) is not None:
        _allow_cpu(cpu)
        write_message(answers, _answer(message))
        if gc.get_count()[0] > _LEFT:
            gc.collect(_YOUNG)


@contextlib.contextmanager
def cpu_limited(seconds: int) -> Iterator[None]:
    """In a child, around what may take less than a whole task: beyond it the child is ended, as one that timed out."""
    before = resource.getrlimit(resource.RLIMIT_CPU)
    _allow_cpu(seconds)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)


def _allow_cpu(seconds: int) -> None:
    """This much from now on: the system counts from the process's beginning."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


if __name__ == "__main__":
    _serve()
