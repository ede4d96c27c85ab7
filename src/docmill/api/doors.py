"""The ways in: the token of the installation, which whoever may read its home folder has; API keys; sessions."""

import hmac
import os
import secrets
from pathlib import Path

from docmill.api.access import Shown
from docmill.api.problems import KeyExpired, KeyRevoked, Unauthenticated
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Principal, system_principal
from docmill.services.keys import Door, Ended

FILE = "api-token"
_PREFIX = "dmt_"
"""Unlike that of any secret that people carry. Files of earlier releases hold another, and stay good."""


def installation_token(home: Path) -> str:
    """The token of this installation; made at the first start, readable by its owner alone."""
    file = home / FILE
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        pass
    # Under another name first: whoever finds the file finds all of it. Of two that make it, the first one's stands.
    mine = home / f"{FILE}.{secrets.token_hex(8)}"
    fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as stream:
        stream.write(_PREFIX + secrets.token_urlsafe(32) + "\n")
    try:
        os.link(mine, file)
    except FileExistsError:
        pass
    finally:
        mine.unlink()
    return file.read_text(encoding="ascii").strip()


class Doors:
    """Who somebody is, by what they show."""

    def __init__(self, token: str, door: Door, *, user: str = "owner") -> None:
        """`user`: what whoever shows the installation's token is called, as on the command line of this machine."""
        self._user = user
        self._token = token.encode()
        self._door = door

    def __call__(self, shown: Shown) -> Principal:
        """The owner for the installation's token, else whoever has the key or the session.

        Unauthenticated for anything else, always in the same words; but whoever shows the right secret of a key that
        has come to its end is told so.
        """
        if shown.bearer is not None and hmac.compare_digest(shown.bearer.encode(), self._token):
            return system_principal(DEFAULT_ORG, self._user)
        for secret in (shown.bearer, shown.session):
            if secret is not None and (found := self._door.authenticate(secret)) is not None:
                return found
        if shown.bearer is not None and (ended := self._door.ended(shown.bearer)) is not None:
            raise _told(ended)
        raise Unauthenticated("Show a token that is known here: `Authorization: Bearer TOKEN`.")


def _told(ended: Ended) -> Unauthenticated:
    at = ended.at.isoformat(timespec="seconds")
    if ended.how == "expired":
        return KeyExpired(f"The API key {ended.name!r} expired at {at}. Ask an administrator for another one.")
    return KeyRevoked(f"The API key {ended.name!r} was revoked at {at}. Ask an administrator for another one.")
