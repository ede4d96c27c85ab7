"""What is forked from the nursery is as good as a fresh interpreter: the tests of the command line rest on it."""

import json
import signal
from dataclasses import replace

import pytest

from tests.acceptance.mill import Mill

SCRIPT = """
import gc, json, logging, os, random, signal, subprocess, sys, threading, time, warnings
streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")}
print(json.dumps({
    "arguments": sys.argv,
    "environment": dict(os.environ),
    "environment of children": subprocess.run(["env", "-0"], capture_output=True).stdout.decode().split(chr(0)),
    "folder": os.getcwd(),
    "path": sys.path,
    "main": [__name__, __file__, sys.modules["__main__"].__dict__ is globals()],
    "streams": {name: [s.name, s.mode, s.encoding, s.errors, s.newlines, s.line_buffering,
                       s.write_through, type(s.buffer).__name__, s.isatty()] for name, s in streams.items()},
    "files": sorted(os.listdir("/proc/self/fd")),
    "signals": {str(n): str(getattr(signal.getsignal(n), "__name__", signal.getsignal(n))) for n in signal.Signals},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": [[thread.name for thread in threading.enumerate()], len(os.listdir("/proc/self/task"))],
    "warnings": [str(each) for each in warnings.filters],
    "logging": [logging.getLogger().level, len(logging.getLogger().handlers)],
    "flags": str(sys.flags),
    "umask": os.umask(0o22),
    "zone": time.tzname,
    "collecting": gc.isenabled(),
    "leads a session": os.getsid(0) == os.getpid(),
    "given": sys.stdin.read(),
}))
print(random.random(), file=sys.stderr)
sys.exit(7)
"""


def test_a_process_finds_what_a_fresh_one_finds(bare: Mill) -> None:
    bare.write("script.py", SCRIPT)
    scripted = replace(bare, script=bare.folder / "script.py").having(MINE="ä", HOME=None)
    forked, fresh = (run("one", "-2", given="ünicode\n") for run in (scripted, scripted.fresh))
    assert json.loads(forked.out) == json.loads(fresh.out)
    assert forked.data["given"] == "ünicode\n"
    assert (forked.code, fresh.code) == (7, 7)


def test_no_two_processes_are_given_the_same_chance(bare: Mill) -> None:
    bare.write("script.py", SCRIPT)
    scripted = replace(bare, script=bare.folder / "script.py")
    assert len({scripted().err for _ in range(3)}) == 3


ENDINGS: dict[str, tuple[str, int | None]] = {
    "normally": ("", 0),
    "with a code": ("import sys; sys.exit(3)", 3),
    "with a message": ("import sys; sys.exit('no')", 1),
    "with an error": ("raise ValueError('no')", 1),
    "interrupted": ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
    "terminated": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "after its threads": ("import threading; threading.Timer(0.05, print, ['late']).start()", 0),
    "after its last wishes": ("import atexit; atexit.register(print, 'last')", 0),
    # 120, unless the streams are unbuffered in this environment.
    "with output nobody got": ("import os; print('lost'); os.close(1)", None),
}


@pytest.mark.parametrize(("text", "code"), ENDINGS.values(), ids=ENDINGS)
def test_a_process_ends_as_a_fresh_one_does(bare: Mill, text: str, code: int | None) -> None:
    bare.write("script.py", f"print('begun', flush=True)\n{text}\n")
    scripted = replace(bare, script=bare.folder / "script.py")
    forked, fresh = scripted(), scripted.fresh()
    assert (forked.code, forked.out) == (fresh.code, fresh.out)
    assert forked.code == (fresh.code if code is None else code)
    assert forked.err.splitlines()[-1:] == fresh.err.splitlines()[-1:]


def test_a_process_of_another_locale_is_refused(bare: Mill) -> None:
    with pytest.raises(ValueError, match="LC_ALL"):
        bare.having(LC_ALL="C")("--version")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version", "--json"),
        ("--help",),
        ("jobs", "list", "--json"),
        ("jbos",),
        ("prompts", "render", "-"),
        ("templates", "validate", "plain.yaml"),
        ("db", "current"),
        ("config", "show"),
    ],
    ids=" ".join,
)
def test_a_command_answers_as_in_a_fresh_interpreter(mill: Mill, arguments: tuple[str, ...]) -> None:
    assert mill(*arguments, given="Hello?") == mill.fresh(*arguments, given="Hello?")
