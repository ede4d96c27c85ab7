"""Runs one program and ends it when the process that asked for it ends, however that happens.

Executed as a script by `docmill.testing.processes`, never imported for its effect: it stands between the test process
and the server, its owner. The owner holds the other end of stdin: each byte on it is a signal number for the program,
and its end means that the owner has let go. That the owner is gone, even by SIGKILL, is learnt from a pidfd, because
processes forked from the owner hold stdin open too. Should the tether itself be killed, the kernel ends the program
(PR_SET_PDEATHSIG). That signal alone would not do: it is bound to the thread that forked, and a server restarted from a
helper thread would die with that thread.

Only the standard library, because it runs with `python -I -S`.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import sys
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PATIENCE_MS = 10_000
"""How long an orphaned program may take to end before it is killed."""


def become(spec: dict[str, Any], tether: int) -> NoReturn:
    """Turn this forked child into the program: drop rights first, since that clears the parent-death signal."""
    try:
        if spec["uid"] is not None:
            os.setgroups([])
            os.setgid(spec["gid"])
            os.setuid(spec["uid"])
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(spec["parting_signal"]))
        if os.getppid() != tether:
            os._exit(1)
        # Python ignores SIGPIPE, and an ignored signal stays ignored across exec.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.execve(spec["command"][0], spec["command"], spec["environment"])
    except OSError as error:
        os.write(2, f"cannot start {spec['command'][0]}: {error}\n".encode())
    os._exit(127)


def main() -> int:
    """Start the program, report its pid on stdout, relay signals, and return its exit code."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    tether = os.getpid()
    pid = os.fork()
    if pid == 0:
        become(spec, tether)
    ended = os.pidfd_open(pid)
    owner = os.pidfd_open(spec["owner"])
    os.write(1, f"{pid}\n".encode())
    poller = select.poll()
    for watched in (ended, owner, 0):
        poller.register(watched, select.POLLIN)
    orphaned = False
    while True:
        ready = [fd for fd, _ in poller.poll(PATIENCE_MS if orphaned else None)]
        if ended in ready:
            break
        if orphaned:
            os.kill(pid, signal.SIGKILL)
        elif owner not in ready and (orders := os.read(0, 64)):
            for order in orders:
                os.kill(pid, order)
        else:
            orphaned = True
            poller.unregister(owner)
            poller.unregister(0)
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, int(spec["parting_signal"]))
    _, status = os.waitpid(pid, 0)
    if orphaned:
        shutil.rmtree(spec["directory"], ignore_errors=True)
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
