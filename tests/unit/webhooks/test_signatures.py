"""Signatures are those of Standard Webhooks, and whatever comes instead of one is refused by name."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from docmill.model.errors import InvalidInput
from docmill.webhooks.signatures import SignatureInvalid, read_secret, signed_headers, verify

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
KEY = read_secret(SECRET)
NOW = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)
BODY = '{"total": "1,50 €"}'.encode()


def test_the_reference_implementation_accepts_what_we_sign() -> None:
    headers = signed_headers(KEY, message_id="msg_1", body=BODY, now=datetime.now(UTC))
    assert Webhook(SECRET).verify(BODY, headers) == {"total": "1,50 €"}


def test_we_accept_what_the_reference_implementation_signs() -> None:
    signature = Webhook(SECRET).sign("msg_1", NOW, BODY.decode())
    headers = {"Webhook-Id": "msg_1", "WEBHOOK-TIMESTAMP": str(int(NOW.timestamp())), "webhook-signature": signature}
    assert verify(KEY, headers, BODY, now=NOW) == "msg_1"


def test_a_secret_is_read_as_the_reference_implementation_reads_it() -> None:
    bare = SECRET.removeprefix("whsec_")
    assert read_secret(SECRET) == read_secret(bare) == read_secret(bare.rstrip("=")) == Webhook(SECRET)._whsecret


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "whsec_" + "QUJD" * 30, "ä" * 40])
def test_what_is_no_secret_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_secret(text)
    assert len(text) < 8 or text.removeprefix("whsec_") not in refused.value.message


def test_one_of_several_signatures_is_enough() -> None:
    headers = signed_headers(KEY, message_id="m", body=BODY, now=NOW)
    headers["webhook-signature"] = f"v1a,xyz v1,AAAA {headers['webhook-signature']}"
    assert verify(KEY, headers, BODY, now=NOW) == "m"


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_message_from_another_time_is_refused(seconds: int) -> None:
    headers = signed_headers(KEY, message_id="m", body=BODY, now=NOW)
    with pytest.raises(SignatureInvalid):
        verify(KEY, headers, BODY, now=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("changed", ["webhook-id", "webhook-timestamp", "webhook-signature", "body", "key"])
def test_whatever_is_changed_the_signature_no_longer_fits(changed: str) -> None:
    headers = signed_headers(KEY, message_id="m", body=BODY, now=NOW)
    later = str(int(NOW.timestamp()) + 1)
    values = {"webhook-id": "n", "webhook-timestamp": later, "webhook-signature": "v1,AAAA"}
    if changed in values:
        headers[changed] = values[changed]
    body = BODY + b" " if changed == "body" else BODY
    key = KEY[::-1] if changed == "key" else KEY
    with pytest.raises(SignatureInvalid):
        verify(key, headers, body, now=NOW)


@given(
    st.dictionaries(st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature", "x"]), st.text()),
    st.binary(max_size=50),
)
def test_nothing_but_a_named_error_comes_of_malformed_headers(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(SignatureInvalid):
        verify(KEY, headers, body, now=NOW)


@given(st.text(max_size=40), st.sampled_from(["v1,", "v1", "v2,", ",", ""]))
def test_nothing_but_a_named_error_comes_of_a_malformed_signature(text: str, prefix: str) -> None:
    headers = signed_headers(KEY, message_id="m", body=BODY, now=NOW) | {"webhook-signature": prefix + text}
    with pytest.raises(SignatureInvalid):
        verify(KEY, headers, BODY, now=NOW)
