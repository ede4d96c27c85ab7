"""What an identity provider says counts only if every part of it holds."""

import time
from collections.abc import Callable, Iterator

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from docmill.people.oidc import Handshake, Identity, IdentityProvider, IdentityRefused, ProviderUnreachable
from docmill.testing.identity import CLIENT, SECRET, StandInProvider

HERE = "http://127.0.0.1:8000/api/v1/sign-in/oidc/return"


@pytest.fixture
def provider() -> Iterator[StandInProvider]:
    with StandInProvider() as provider:
        yield provider


@pytest.fixture
def known(provider: StandInProvider) -> IdentityProvider:
    return IdentityProvider(provider.issuer, CLIENT, SECRET)


def test_whoever_signs_in_there_is_known_here(provider: StandInProvider, known: IdentityProvider) -> None:
    url, handshake = known.begin(HERE)
    assert url.startswith(f"{provider.issuer}/authorize?")
    back = provider.visit(url)
    identity = known.finish(back["code"], back["state"], handshake, HERE)
    assert identity == Identity(subject="1", email="ann@example.com", name="Ann")
    with pytest.raises(IdentityRefused):
        known.finish(back["code"], back["state"], handshake, HERE)  # A code is good for once.


def test_an_answer_to_another_browser_is_refused(provider: StandInProvider, known: IdentityProvider) -> None:
    url, _ = known.begin(HERE)
    _, mine = known.begin(HERE)
    back = provider.visit(url)
    with pytest.raises(IdentityRefused, match="this browser"):
        known.finish(back["code"], back["state"], mine, HERE)
    slipped = Handshake(state=back["state"], nonce=mine.nonce, verifier=mine.verifier)
    with pytest.raises(IdentityRefused):  # The verifier is not the one that the code was asked for with.
        known.finish(back["code"], back["state"], slipped, HERE)


def forged(provider: StandInProvider) -> str:
    """By somebody else, under the provider's name."""
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    claims = jwt.decode(provider.token("n"), options={"verify_signature": False})
    return jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": provider.key_id})


def unsigned(provider: StandInProvider) -> str:
    claims = jwt.decode(provider.token("n"), options={"verify_signature": False})
    return jwt.encode(claims, "", algorithm="none", headers={"kid": provider.key_id})


def swapped(provider: StandInProvider) -> str:
    """The public key taken for a shared secret: written by hand, for libraries refuse to."""
    import base64
    import hashlib
    import hmac

    pem = provider.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _, claims, _ = provider.token("n").split(".")
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"first","typ":"JWT"}').rstrip(b"=").decode()
    mac = hmac.new(pem, f"{head}.{claims}".encode(), hashlib.sha256).digest()
    return f"{head}.{claims}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def altered(provider: StandInProvider) -> str:
    head, _, signature = provider.token("n").split(".")
    _, claims, _ = provider.token("n", email="boss@example.com").split(".")
    return f"{head}.{claims}.{signature}"


def of_a_key_that_is_not_published(provider: StandInProvider) -> str:
    token = provider.token("n")
    claims = jwt.decode(token, options={"verify_signature": False})
    return jwt.encode(claims, provider.key, algorithm="RS256", headers={"kid": "other"})


@pytest.mark.parametrize(
    "make",
    [
        forged,
        unsigned,
        swapped,
        altered,
        of_a_key_that_is_not_published,
        lambda provider: provider.token("n", exp=int(time.time()) - 120),
        lambda provider: provider.token("n", exp=None),
        lambda provider: provider.token("n", iat=int(time.time()) + 3600),
        lambda provider: provider.token("n", aud="somebody else"),
        lambda provider: provider.token("n", aud=[CLIENT, "somebody else"]),
        lambda provider: provider.token("n", aud=[CLIENT, "other"], azp="other"),
        lambda provider: provider.token("n", iss="https://evil.example"),
        lambda provider: provider.token("n", sub=None),
        lambda provider: provider.token("another question"),
        lambda provider: provider.token(None),
        lambda provider: provider.token("n", email_verified=False),
        lambda provider: provider.token("n", email_verified=None),
        lambda provider: provider.token("n", email=None),
        lambda provider: "nonsense",
        lambda provider: "",
    ],
)
def test_a_token_of_which_any_part_does_not_hold_is_refused(
    provider: StandInProvider, known: IdentityProvider, make: Callable[[StandInProvider], str]
) -> None:
    assert known.identity(provider.token("n"), "n").email == "ann@example.com"
    with pytest.raises(IdentityRefused):
        known.identity(make(provider), "n")


def test_a_provider_may_change_its_key_but_strangers_cannot_make_us_ask(provider: StandInProvider) -> None:
    now = [1000.0]
    known = IdentityProvider(provider.issuer, CLIENT, SECRET, clock=lambda: now[0])
    known.identity(provider.token("n"), "n")
    provider.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    provider.key_id = "second"
    for _ in range(3):
        with pytest.raises(IdentityRefused):
            known.identity(provider.token("n"), "n")
    assert provider.asked_for_keys == 1
    now[0] += 61.0
    assert known.identity(provider.token("n"), "n").subject == "1"
    assert provider.asked_for_keys == 2


def test_a_place_that_is_no_provider_is_told(provider: StandInProvider) -> None:
    for issuer in (provider.issuer + "/", provider.issuer + "/elsewhere", "http://127.0.0.1:9"):
        with pytest.raises(ProviderUnreachable):
            IdentityProvider(issuer, CLIENT).begin(HERE)
