"""Uploads by a signed link: the right to send the bytes of one document, for a while, and nothing else.

The link says it all, proven by an HMAC; it needs no row of its own. The document's id is in it, so bytes that are sent
twice are one document.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

import orjson

from docmill.documents.links import LinkRefused
from docmill.model.ids import new_id

WITHIN = timedelta(minutes=15)
_MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What may be uploaded, by whom."""

    document_id: str
    org_id: str
    by: str
    file_name: str
    schema: str | None
    model: str | None
    expires: int


class Slots:
    """Makes and reads the links of one installation."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret

    def make(
        self, *, org_id: str, by: str, file_name: str, schema: str | None, model: str | None, now: datetime
    ) -> tuple[Slot, str]:
        """A slot for one document, and the token that opens it."""
        slot = Slot(
            document_id=new_id(),
            org_id=org_id,
            by=by,
            file_name=file_name,
            schema=schema,
            model=model,
            expires=int((now + WITHIN).timestamp()),
        )
        said = orjson.dumps(asdict(slot))
        return slot, f"{_text(said)}.{_text(self._proof(said))}"

    def read(self, token: str, *, now: datetime) -> Slot:
        """The slot that a token opens now; LinkRefused for any other."""
        said, _, proof = token[:_MOST].partition(".")
        try:
            content, given = _bytes(said), _bytes(proof)
        except (binascii.Error, ValueError):
            raise LinkRefused("The link is malformed; ask for a new one.") from None
        if not hmac.compare_digest(self._proof(content), given):
            raise LinkRefused("The link was not made by this installation, or was altered; ask for a new one.")
        slot = Slot(**orjson.loads(content))
        if now.timestamp() >= slot.expires:
            raise LinkRefused("The link has expired; ask for a new one.")
        return slot

    def _proof(self, said: bytes) -> bytes:
        return hmac.new(self._secret(), b"docmill-upload\n" + said, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
