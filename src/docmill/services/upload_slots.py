"""Uploads by a signed link: the right to send the bytes of one document, for a while, and nothing else.

The link says it all, proven by an HMAC; it needs no row of its own. The document's id is in it, so bytes that are sent
twice are one document. Signed is not encrypted: whoever is given the link can read what it says, so it names nobody.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal

import orjson
from sqlalchemy import select

from docmill.db.database import Database
from docmill.db.tables import api_keys, users
from docmill.documents.links import LinkRefused
from docmill.model.ids import canonical_id, new_id
from docmill.model.people import Principal, Role

WITHIN = timedelta(minutes=15)
_MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What may be uploaded, by whom."""

    document_id: str
    org_id: str
    by: str
    kind: Literal["user", "key", "system"]
    """What `by` is."""
    file_name: str
    schema: str | None
    model: str | None
    expires: int


def holder(database: Database, slot: Slot) -> Principal:
    """Whoever asked for the slot: who sends the bytes acts for them, and may do nothing else.

    Those who are no longer there, and the system, are called by their id.
    """
    called = {"user": (users.c.id, users.c.name), "key": (api_keys.c.id, api_keys.c.name)}.get(slot.kind)
    stored, name = canonical_id(slot.by), None
    if called is not None and stored is not None:
        with database.scoped(slot.org_id).read() as connection:
            name = connection.execute(select(called[1]).where(called[0] == stored)).scalar()
    return Principal(org_id=slot.org_id, kind=slot.kind, id=slot.by, name=name or slot.by, role=Role.SERVICE)


class Slots:
    """Makes and reads the links of one installation."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret

    def make(
        self, by: Principal, *, file_name: str, schema: str | None, model: str | None, now: datetime
    ) -> tuple[Slot, str]:
        """A slot for one document of whoever asks, and the token that opens it."""
        slot = Slot(
            document_id=new_id(),
            org_id=by.org_id,
            by=by.id,
            kind=by.kind,
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
        try:
            slot = Slot(**orjson.loads(content))
        except TypeError:
            raise LinkRefused("The link was made by another release; ask for a new one.") from None
        if now.timestamp() >= slot.expires:
            raise LinkRefused("The link has expired; ask for a new one.")
        return slot

    def _proof(self, said: bytes) -> bytes:
        return hmac.new(self._secret(), b"docmill-upload\n" + said, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
