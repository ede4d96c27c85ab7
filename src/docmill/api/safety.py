"""What every request passes first: is it meant for us, does a page of another site send it; headers on every answer.

Without a check of the host, a page that resolves its own name to 127.0.0.1 could speak to an API on loopback.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docmill.api.problems import FieldFault, OriginRefused, answer_to, problem

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_SAFE = {"GET", "HEAD", "OPTIONS"}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class Safety:
    """Pure ASGI, so that streams stay streams."""

    def __init__(
        self, app: ASGIApp, *, hosts: tuple[str, ...], origins: tuple[str, ...], public_url: str | None = None
    ) -> None:
        self._app = app
        # What people outside know it by is its own name and origin too.
        public = () if public_url is None else (public_url,)
        names = (*LOOPBACK, *hosts, *(_name_of(urlsplit(url).netloc) for url in public))
        self._hosts = frozenset(name.lower() for name in names)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in (*origins, *public))
        secure = public_url is not None and public_url.startswith("https:")
        self._headers = _HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        sending = _with_headers(send, self._headers)
        if refusal is not None:
            # Also to a WebSocket: it is the answer to its handshake.
            await answer_to(scope["path"], refusal)(scope, receive, sending)
        elif scope["type"] == "websocket":
            await self._app(scope, receive, sending)
        elif "\0" in scope["path"] or b"%00" in scope["query_string"]:
            where, said = (
                "path" if "\0" in scope["path"] else "query",
                "The address holds a NUL character; leave it out.",
            )
            fault = FieldFault(field=where, message=said, remedy="Leave the NUL character (%00) out.")
            told = problem(scope["path"], 422, "invalid_input", said, errors=[fault])
            await told(scope, receive, sending)
        else:
            await self._app(scope, receive, sending)

    def _refusal(self, scope: Scope, headers: Headers) -> OriginRefused | None:
        host = headers.get("host", "").lower()
        if _name_of(host) not in self._hosts:
            return OriginRefused("The request names another host; reach the API by its own name (`api.hosts`).")
        origin = headers.get("origin")
        if origin is not None:
            own = {f"http://{host}", f"https://{host}"}
            if origin.lower() not in own | self._origins:
                return OriginRefused("A page of another site may not call this API (`api.origins`).")
        elif (
            scope["type"] == "http"
            and scope["method"] not in _SAFE
            and "cookie" in headers
            and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        ):
            return OriginRefused("A page of another site may not call this API (`api.origins`).")
        return None


def _name_of(host: str) -> str:
    """The host without its port."""
    try:
        parts = urlsplit(f"//{host}")
        return f"[{parts.hostname}]" if host.startswith("[") else parts.hostname or ""
    except ValueError:
        return ""


def _with_headers(send: Send, always: Mapping[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            for name, value in always.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
