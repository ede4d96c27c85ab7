"""Stand-ins for the providers of models: real HTTP on loopback, in the providers' own words, errors included.

    with ProviderServer(lambda asked: Says({"total": "12.00"})) as server:
        access = Access(name="google", kind=Kind.GOOGLE, key=server.key, base_url=server.base_url(Kind.GOOGLE))

`asked` is what was understood of a request, documents decoded; what it is answered with is one of the reactions. Each
dialect checks what its provider would: key, path, shape of the body, media types.
"""

from docmill.testing.providers.exchange import (
    Asked,
    CutsOff,
    Document,
    Fails,
    Fault,
    Garbles,
    Hangs,
    Reaction,
    Refuses,
    Says,
    Truncates,
)
from docmill.testing.providers.server import ProviderServer

__all__ = [
    "Asked",
    "CutsOff",
    "Document",
    "Fails",
    "Fault",
    "Garbles",
    "Hangs",
    "ProviderServer",
    "Reaction",
    "Refuses",
    "Says",
    "Truncates",
]
