"""Passwords: hashed with Argon2, and checked in the same time whether there is such a person or not."""

from functools import cached_property
from typing import Any, Protocol

from docmill.model.errors import ExtraMissing, InvalidInput

SHORTEST, LONGEST = 10, 200
"""Characters. A bound above: hashing a megabyte would be a way to keep us busy."""

_NOBODYS = "$argon2id$v=19$m=65536,t=3,p=4$aW93CzlMhpPa0sbtiI3WBA$FJJANOHQPUFScsEFzabZnYH7VH9rPNujA6bTlsVrRlQ"
"""Of a password that nobody has, with the parameters of all others: who is not there is checked against it."""


class Passwords(Protocol):
    """What hashes passwords."""

    def hash(self, password: str) -> str:
        """What is stored; never the same twice."""

    def matches(self, password: str, stored: str | None) -> bool:
        """Whether it is the password; with None, the same work for a sure no."""


class Argon2Passwords:
    """Argon2id with the library's parameters (about 150 ms and 64 MB): call it on a thread."""

    def hash(self, password: str) -> str:
        hashed: str = self._hasher.hash(password)
        return hashed

    def matches(self, password: str, stored: str | None) -> bool:
        # What is too long cannot be anybody's; as much work for it as for any other.
        matches: bool = self._hasher.verify(password[:LONGEST], stored or _NOBODYS)
        return matches and stored is not None and len(password) <= LONGEST

    @cached_property
    def _hasher(self) -> Any:
        try:
            from pwdlib import PasswordHash
        except ImportError as error:
            raise ExtraMissing(
                f"Passwords need libraries that are not installed ({error}). "
                "Install them: pip install 'docmill[server]'.",
                extra="server",
            ) from error
        return PasswordHash.recommended()


def check_password(password: str, email: str) -> None:
    """Whether it will do. Length is what counts; rules about signs make people write passwords down."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"A password has {SHORTEST} to {LONGEST} characters.", field="password")
    if password.casefold() in {email, email.partition("@")[0]} or len(set(password)) < 4:
        raise InvalidInput("This password is too easy to guess; choose another.", field="password")
