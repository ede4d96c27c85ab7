"""Links to blobs of this installation: time-limited, good for one key and one method, proven by an HMAC.

A bucket signs its own; for a folder the API serves the bytes to whoever shows a link that `Links.check` accepts.
"""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import parse_qs, urlencode, urlsplit

from docmill.model.errors import DocmillError

Method = Literal["GET", "PUT"]

PREFIX = "/blobs/"
"""Where the API will serve them."""


class LinkRefused(DocmillError):
    """A link that is altered, expired, or used for something it was not made for."""

    code = "link_refused"


class Links:
    """Makes and checks the links of one installation."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def make(self, key: str, *, method: Method, expires_at: datetime) -> str:
        """The link: a path with a query, to be put behind the address of the API."""
        expires = int(expires_at.timestamp())
        query = {"method": method, "expires": expires, "signature": self._proof(key, method, expires)}
        return f"{PREFIX}{key}?{urlencode(query)}"

    def check(self, link: str, *, method: str, now: datetime) -> str:
        """The key that this link opens for this method now; LinkRefused for any other."""
        parts = urlsplit(link)
        query = parse_qs(parts.query, keep_blank_values=True)
        key = parts.path.removeprefix(PREFIX)
        given = [query.get(name, [""]) for name in ("method", "expires", "signature")]
        # Said twice, it would be open which of the two was signed.
        if any(len(values) != 1 for values in given) or not parts.path.startswith(PREFIX):
            raise LinkRefused("The link is incomplete; ask for a new one.")
        named, expires, signature = (values[0] for values in given)
        if not expires.isascii() or not expires.isdigit() or len(expires) > 12:
            raise LinkRefused("The link is malformed; ask for a new one.")
        if not hmac.compare_digest(self._proof(key, named, int(expires)).encode(), signature.encode()):
            raise LinkRefused("The link was not made by this installation, or was altered; ask for a new one.")
        if named != method:
            raise LinkRefused(f"The link is good for {named} only, not for {method}.")
        if now.timestamp() >= int(expires):
            ended = datetime.fromtimestamp(int(expires), UTC)
            raise LinkRefused(f"The link expired at {ended:%Y-%m-%d %H:%M:%S} UTC; ask for a new one.")
        return key

    def _proof(self, key: str, method: str, expires: int) -> str:
        # Lengths cannot shift between the parts: none of them can hold a line break that the others might begin with.
        named = f"docmill-blob\n{method}\n{key}\n{expires}"
        mac = hmac.new(self._secret, named.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
