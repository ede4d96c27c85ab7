"""A stand-in for an identity provider: a real HTTP server on loopback that speaks OpenID Connect, and lies if told."""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from docmill.bootstrap.clock import this_moment
from docmill.testing.loopback import LoopbackServer

CLIENT, SECRET = "docmill", "not a secret"


class StandInProvider(LoopbackServer):
    """Signs people in as whoever `claims` says. `visit` is the browser's part."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import rsa

        self.claims: dict[str, Any] = {"sub": "1", "email": "ann@example.com", "email_verified": True, "name": "Ann"}
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.key_id = "first"
        self.asked_for_keys = 0
        self._codes: dict[str, dict[str, str]] = {}
        super().__init__(_handler(self))

    @property
    def issuer(self) -> str:
        return self.address

    def visit(self, url: str) -> dict[str, str]:
        """A browser is sent here and signs in; what it is sent back with: code and state."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def token(self, nonce: str | None, **other: Any) -> str:
        """An ID token as it should be, but for what is given otherwise; None leaves a claim out."""
        import jwt

        now = int(this_moment().timestamp())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.claims}
        kept = {name: value for name, value in (claims | other).items() if value is not None}
        return jwt.encode(kept, self.key, algorithm="RS256", headers={"kid": self.key_id})

    def answer(self, path: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """What the provider says to a request."""
        if path == "/.well-known/openid-configuration":
            places = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            return 200, {"issuer": self.issuer} | {name: self.issuer + place for name, place in places.items()}
        if path == "/keys":
            self.asked_for_keys += 1
            return 200, {"keys": [self.public_key()]}
        asked = self._codes.pop(form.get("code", ""), None)
        if path != "/token" or asked is None or not _fits(asked, form):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.token(asked["nonce"])}

    def public_key(self) -> dict[str, Any]:
        """As it is published."""
        from jwt.algorithms import RSAAlgorithm

        published: dict[str, Any] = orjson.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
        return published | {"kid": self.key_id, "use": "sig", "alg": "RS256"}


def _fits(asked: Mapping[str, str], form: Mapping[str, str]) -> bool:
    """Whether who brings the code is who asked for it."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
    return (
        form.get("client_secret") == SECRET
        and form.get("redirect_uri") == asked["redirect_uri"]
        and challenge.decode() == asked["code_challenge"]
    )


def _handler(provider: StandInProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: Mapping[str, str]) -> None:
            status, told = provider.answer(urlsplit(self.path).path, form)
            content = orjson.dumps(told)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Silent."""

    return Handler
