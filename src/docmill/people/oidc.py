"""Signing in by somebody else's word: the authorisation code flow of OpenID Connect, with PKCE.

The provider is the administrator's choice. What it says counts only if it is signed by a key that it publishes, with an
algorithm that needs its private key, for us, now, and in answer to the question that this browser asked.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import orjson

from docmill.model.errors import DocmillError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those with a private and a public key. Never `none`, and none by which who can check can sign."""
LEEWAY = 60
"""Seconds that the provider's clock may differ from ours."""
_MOST_READ = 1024 * 1024
_TIMEOUT = 10.0
_KEYS_KEPT = 3600.0
_KEYS_REST = 60.0
"""Seconds before unknown keys are looked for again: strangers must not make us ask the provider at will."""


class IdentityRefused(DocmillError):
    """What came back from the identity provider does not prove who this is. Sign in again."""

    code = "identity_refused"


class ProviderUnreachable(DocmillError):
    """The identity provider does not answer, or not as one."""

    code = "identity_provider_unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """What a browser must bring back, kept where nobody else can read it until then."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the provider says this is."""

    subject: str
    email: str
    name: str


class IdentityProvider:
    """One provider, known by its issuer; asked for its addresses and keys when they are needed first."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None = None,
        *,
        scopes: tuple[str, ...] = ("openid", "email", "profile"),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._scopes = scopes
        self._clock = clock
        self._lock = Lock()
        self._places: Mapping[str, str] | None = None
        self._keys: dict[str, Any] = {}
        self._keys_at = float("-inf")

    def begin(self, redirect_uri: str) -> tuple[str, Handshake]:
        """Where to send the browser, and what it must bring back."""
        handshake = Handshake(
            state=secrets.token_urlsafe(32), nonce=secrets.token_urlsafe(32), verifier=secrets.token_urlsafe(48)
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(handshake.verifier.encode()).digest()).rstrip(b"=")
        asked = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self._scopes),
            "state": handshake.state,
            "nonce": handshake.nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        place = self._discovered()["authorization_endpoint"]
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}", handshake

    def finish(self, code: str, state: str, handshake: Handshake, redirect_uri: str) -> Identity:
        """Who came back, if all of it fits together; IdentityRefused if not."""
        if not hmac.compare_digest(state.encode(), handshake.state.encode()):
            raise IdentityRefused("This is not the answer to a sign-in that this browser began. Sign in again.")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._client_id,
            "code_verifier": handshake.verifier,
        }
        if self._client_secret is not None:
            form["client_secret"] = self._client_secret
        try:
            answer = _asked(self._discovered()["token_endpoint"], urlencode(form).encode())
        except HTTPError as error:
            raise IdentityRefused(
                "The identity provider does not know this sign-in any more. Sign in again."
            ) from error
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise IdentityRefused("The identity provider did not say who this is. Sign in again.")
        return self.identity(token, handshake.nonce)

    def identity(self, token: str, nonce: str) -> Identity:
        """Who an ID token says this is; IdentityRefused unless every part of it holds."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError("it is not signed with a key of the provider's")
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(header),
                algorithms=[header["alg"]],
                audience=self._client_id,
                issuer=self._issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.InvalidTokenError as error:
            raise IdentityRefused(f"The identity provider's answer does not hold: {error}. Sign in again.") from error
        audience = claims["aud"]
        party = claims.get("azp", self._client_id)
        if party != self._client_id or (isinstance(audience, list) and len(audience) > 1 and "azp" not in claims):
            raise IdentityRefused("The identity provider's answer is for somebody else. Sign in again.")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise IdentityRefused("The identity provider's answer is to another question. Sign in again.")
        return _identity(claims)

    def _key(self, header: Mapping[str, Any]) -> Any:
        """The published key that a token names; looked for again if it is new, but not at everybody's whim."""
        import jwt

        name = str(header.get("kid", ""))
        with self._lock:
            age = self._clock() - self._keys_at
            if age > _KEYS_KEPT or (name not in self._keys and age > _KEYS_REST):
                found = _asked(self._discovered()["jwks_uri"]).get("keys", [])
                self._keys = {str(key.get("kid", "")): key for key in found if isinstance(key, dict)}
                self._keys_at = self._clock()
            key = self._keys.get(name)
        # A provider with one key need not name it.
        if key is None and not name and len(self._keys) == 1:
            (key,) = self._keys.values()
        if key is None or key.get("use", "sig") != "sig":
            raise IdentityRefused(
                "The identity provider's answer is signed with a key that it does not publish. Sign in again."
            )
        try:
            return jwt.PyJWK(key, algorithm=header["alg"]).key
        except jwt.PyJWTError as error:
            raise IdentityRefused(
                "The identity provider's key does not fit what it is used for. Sign in again."
            ) from error

    def _discovered(self) -> Mapping[str, str]:
        if self._places is None:
            found = _asked(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            if found.get("issuer") != self._issuer or not all(_is_place(found.get(name)) for name in names):
                raise ProviderUnreachable(
                    f"{self._issuer} does not describe itself as an identity provider; check oidc.issuer."
                )
            self._places = {name: str(found[name]) for name in names}
        return self._places


def _is_place(value: object) -> bool:
    return isinstance(value, str) and urlsplit(value).scheme in ("https", "http") and bool(urlsplit(value).hostname)


def _identity(claims: Mapping[str, Any]) -> Identity:
    email = claims.get("email")
    # Providers let people write down any address; only one that was proven says who they are here.
    if not isinstance(email, str) or claims.get("email_verified") not in (True, "true"):
        raise IdentityRefused(
            "The identity provider does not vouch for an email address of yours. Confirm one there, and sign in again."
        )
    name = claims.get("name")
    return Identity(
        subject=str(claims["sub"]),
        email=email,
        name=name if isinstance(name, str) and name else email.partition("@")[0],
    )


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **more: object) -> None:
        """A provider that moved says so in its description, not by sending us on."""


def _asked(url: str, form: bytes | None = None) -> dict[str, Any]:
    """What the provider answers, as JSON."""
    request = Request(url, data=form, headers={"accept": "application/json"})
    try:
        with build_opener(_NoRedirect, ProxyHandler({})).open(request, timeout=_TIMEOUT) as response:
            read = orjson.loads(response.read(_MOST_READ))
    except HTTPError as error:
        if form is not None and error.code in (400, 401, 403):
            raise
        raise ProviderUnreachable(
            f"The identity provider {urlsplit(url).netloc} answers {error.code}. Try again, or check the settings."
        ) from error
    except (OSError, ValueError) as error:
        # Not what it answered: that may hold what was asked.
        raise ProviderUnreachable(
            f"The identity provider {urlsplit(url).netloc} does not answer as one: {type(error).__name__}. Try again."
        ) from error
    if not isinstance(read, dict):
        raise ProviderUnreachable(f"The identity provider {urlsplit(url).netloc} does not answer as one. Try again.")
    return read
