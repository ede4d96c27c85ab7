"""A server process that cannot outlive the test process that started it."""

import json
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmill.model.errors import DocmillError
from docmill.testing import tether


class ServerFailed(DocmillError):
    """A private server did not start or stop; the message ends with the last lines of its log."""

    code = "server_failed"

    @property
    def still_in_use(self) -> bool:
        """Whether the server gave up because its port or memory belongs to another process, perhaps only for now."""
        words = ("in use", "is another postmaster")
        return any(word in self.message for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An unprivileged user that a program runs as."""

    uid: int
    gid: int
    name: str

    @classmethod
    def for_servers(cls) -> "Account | None":
        """Whom servers should run as: nobody else unless we are root, whom PostgreSQL refuses to serve."""
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(uid=entry.pw_uid, gid=entry.pw_gid, name=name)
        raise ServerFailed("PostgreSQL refuses to run as root and there is no user 'postgres' or 'nobody': add one")

    def can_enter(self, path: Path) -> bool:
        """Whether this user may pass through every directory down to `path`."""
        return all(self._may_search(directory.stat()) for directory in [path, *path.parents])

    def _may_search(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


class TetheredProcess:
    """One running program, ended together with this process even if this process is killed."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        log: Path,
        parting_signal: signal.Signals,
        account: Account | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start `command` in `directory`, which is removed should this process die without cleaning up."""
        spec = {
            "command": list(command),
            "directory": str(directory),
            "environment": dict(environment or {}),
            "gid": account.gid if account else None,
            "owner": os.getpid(),
            "parting_signal": int(parting_signal),
            "uid": account.uid if account else None,
        }
        with log.open("ab") as output:
            # Its own session: Ctrl-C in the terminal must reach the tests, which then stop their servers in order.
            self._tether = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(tether.__file__)), json.dumps(spec)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                bufsize=0,
                cwd=directory,
                start_new_session=True,
            )
        assert self._tether.stdout is not None
        with self._tether.stdout as announced:
            line = announced.readline()
        if not line:
            self.close()
            raise ServerFailed(f"the tether of {command[0]} did not start:\n{tail(log)}")
        self.pid = int(line)

    @property
    def running(self) -> bool:
        """Whether the program is still there."""
        return self._tether.poll() is None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program; nothing happens if it has ended.

        The tether delivers it: it has not yet reaped the program, so the pid cannot belong to anyone else.
        """
        assert self._tether.stdin is not None
        try:
            self._tether.stdin.write(bytes([number]))
        except (BrokenPipeError, ValueError):
            return

    def end(self, number: signal.Signals, timeout: float) -> int:
        """Send `number`, wait for the end and return the exit code; kills the program if it does not end in time."""
        self.send_signal(number)
        try:
            return self._tether.wait(timeout)
        except subprocess.TimeoutExpired:
            self.send_signal(signal.SIGKILL)
            self._tether.wait(timeout)
            raise ServerFailed(f"process {self.pid} ignored {number.name} for {timeout:g} s and was killed") from None
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the program, which then ends as it would had this process died; nothing happens if it has ended."""
        assert self._tether.stdin is not None
        self._tether.stdin.close()
        self._tether.wait()


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log file, or a word on why there are none."""
    if not log.exists():
        return "(no log was written)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
