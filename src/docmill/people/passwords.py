"""Passwords: hashed with Argon2, and checked in the same time whether there is such a person or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import BoundedSemaphore
from typing import Any, Protocol

from docmill.model.errors import ExtraMissing, InvalidInput
from docmill.model.extras import to_install
from docmill.people.limits import SignInLimited

SHORTEST, LONGEST = 10, 200
"""Characters. A bound above: hashing a megabyte would be a way to keep us busy."""
AT_ONCE, WAITING = 2, 6
"""Passwords that are hashed at once, at 64 MB each, and that may wait for it: each holds a thread that others need."""

_NOBODYS = "$argon2id$v=19$m=65536,t=3,p=4$aW93CzlMhpPa0sbtiI3WBA$FJJANOHQPUFScsEFzabZnYH7VH9rPNujA6bTlsVrRlQ"
"""Of a password that nobody has, with the parameters of all others: who is not there is checked against it."""


class Passwords(Protocol):
    """What hashes passwords."""

    def hash(self, password: str) -> str:
        """What is stored; never the same twice."""

    def matches(self, password: str, stored: str | None) -> bool:
        """Whether it is the password; with None, the same work for a sure no."""


class Argon2Passwords:
    """Argon2id with the library's parameters (about 150 ms and 64 MB): call it on a thread.

    Strangers may ask for it, so only a few are served at once; SignInLimited when too many wait.
    """

    def __init__(self) -> None:
        self._places = BoundedSemaphore(AT_ONCE + WAITING)
        self._hashing = BoundedSemaphore(AT_ONCE)

    def hash(self, password: str) -> str:
        with self._turn():
            hashed: str = self._hasher.hash(password)
        return hashed

    def matches(self, password: str, stored: str | None) -> bool:
        # What is too long cannot be anybody's; as much work for it as for any other.
        with self._turn():
            matches: bool = self._hasher.verify(password[:LONGEST], stored or _NOBODYS)
        return matches and stored is not None and len(password) <= LONGEST

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise SignInLimited("Too many people are signing in at once. Try again in a moment.", retry_after=1.0)
        try:
            with self._hashing:
                yield
        finally:
            self._places.release()

    @cached_property
    def _hasher(self) -> Any:
        try:
            from pwdlib import PasswordHash
        except ImportError as error:
            raise ExtraMissing(
                f"Passwords need libraries that are not installed ({error}). Install them: {to_install('server')}.",
                extra="server",
            ) from error
        return PasswordHash.recommended()


def check_password(password: str, email: str) -> None:
    """Whether it will do. Length is what counts; rules about signs make people write passwords down."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"A password has {SHORTEST} to {LONGEST} characters.", field="password")
    if password.casefold() in {email, email.partition("@")[0]} or len(set(password)) < 4:
        raise InvalidInput("This password is too easy to guess; choose another.", field="password")
