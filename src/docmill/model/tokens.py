"""Tokens: the right to answer one attempt of one step, and nothing else.

A token names job, position and epoch and proves with an HMAC that this installation gave it out. It is a secret:
whoever has it can answer. It needs no row of its own, and it is spent when the epoch is.
"""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple

from docmill.model.errors import InvalidInput

_FORM = re.compile(r"dmt1\.([0-9a-f]{32})\.([0-9]{1,5})\.([0-9]{1,10})\.([A-Za-z0-9_-]{43})")


class TokenMalformed(InvalidInput):
    """What was given is no token, or none that this installation made."""

    code = "token_malformed"


class Attempt(NamedTuple):
    """What a token is good for."""

    job_id: str
    position: int
    epoch: int


class Tokens:
    """Makes and reads the tokens of one installation."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def make(self, job_id: str, position: int, epoch: int) -> str:
        """The token of this attempt; the same whenever it is asked for."""
        named = f"dmt1.{job_id.replace('-', '')}.{position}.{epoch}"
        return f"{named}.{self._proof(named)}"

    def read(self, token: object) -> Attempt:
        """The attempt that a token was made for; TokenMalformed if it is none of ours."""
        found = _FORM.fullmatch(token) if isinstance(token, str) else None
        if found is None:
            raise TokenMalformed("The token is missing or malformed; send back the one that came with the step.")
        named, _, proof = found[0].rpartition(".")
        if not hmac.compare_digest(self._proof(named), proof):
            raise TokenMalformed("The token was not made by this installation; send back the one of the step.")
        digits = found[1]
        job_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return Attempt(job_id, int(found[2]), int(found[3]))

    def _proof(self, named: str) -> str:
        mac = hmac.new(self._secret, named.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
