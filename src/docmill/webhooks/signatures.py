"""Standard Webhooks signatures: HMAC-SHA256 over id, timestamp and the very bytes of the body."""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from docmill.model.errors import DocmillError, InvalidInput

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
TOLERANCE = 300.0
"""Seconds that a message may be old, or a sender's clock ahead of ours."""
_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)
_MOST_SIGNATURES = 16
_LONGEST_ID = 256


class SignatureInvalid(DocmillError):
    """The message is not signed by who should have sent it, or is too old. Nothing was done."""

    code = "signature_invalid"


def read_secret(text: str) -> bytes:
    """The key that a secret (`whsec_` and base64) stands for."""
    try:
        # Unpadded secrets are in use.
        bare = text.removeprefix(_PREFIX).rstrip("=")
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _KEY_BYTES:
        # Not a word of the secret itself: this ends up in logs.
        raise InvalidInput(
            f"A signing secret is {_PREFIX} followed by {_KEY_BYTES[0]} to {_KEY_BYTES[-1]} random bytes in base64. "
            "`openssl rand -base64 32` makes one."
        )
    return key


def signed_headers(
    key: bytes | None, *, message_id: str, body: bytes, now: datetime, old_key: bytes | None = None
) -> dict[str, str]:
    """The headers to send with the body; without a key, those that need none. An old key signs as well."""
    timestamp = str(int(now.timestamp()))
    headers = {ID: message_id, TIMESTAMP: timestamp}
    macs = [_mac(each, message_id, timestamp, body) for each in (key, old_key) if each is not None]
    if macs:
        headers[SIGNATURE] = " ".join(f"v1,{base64.b64encode(mac).decode()}" for mac in macs)
    return headers


def new_secret() -> str:
    """A secret to sign with, as people pass it on."""
    return _PREFIX + base64.b64encode(os.urandom(32)).decode()


def verify(key: bytes, headers: Mapping[str, str], body: bytes, *, now: datetime) -> str:
    """The id of the message, if its headers prove that the holder of the key sent it lately; else SignatureInvalid."""
    given = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp, signatures = (given.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not (message_id and timestamp and signatures):
        raise SignatureInvalid(f"The message is not signed: it needs the headers {ID}, {TIMESTAMP} and {SIGNATURE}.")
    if len(message_id) > _LONGEST_ID or not message_id.isascii():
        raise SignatureInvalid(f"The header {ID} is no id of a message.")
    _check_age(timestamp, now)
    expected = _mac(key, message_id, timestamp, body)
    # Several: a sender that changes its secret signs with both for a while. All are compared, whatever they say.
    entries = signatures.split(" ", _MOST_SIGNATURES)[:_MOST_SIGNATURES]
    fitting = [entry for entry in entries if hmac.compare_digest(expected, _decoded(entry))]
    if not fitting:
        raise SignatureInvalid("No signature of the message fits its body and the secret. Check the secret.")
    return message_id


def _check_age(timestamp: str, now: datetime) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureInvalid(f"The header {TIMESTAMP} is no number of seconds since 1970.")
    age = now.astimezone(UTC).timestamp() - int(timestamp)
    if abs(age) > TOLERANCE:
        late = "old" if age > 0 else "new"
        raise SignatureInvalid(f"The message is too {late}: signed {abs(age):.0f} s away from now. Sign it again.")


def _mac(key: bytes, message_id: str, timestamp: str, body: bytes) -> bytes:
    return hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()


def _decoded(entry: str) -> bytes:
    """The signature of one entry; empty for one that is malformed or of a version we do not know."""
    version, _, text = entry.partition(",")
    if version != "v1":
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
