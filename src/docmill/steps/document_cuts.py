"""Whether what was kept of a document may answer for it: not if a limit cut it that has been raised since.

Limits are no part of what results are known by: nobody wants a thousand documents read again because a limit that none
of them met was raised.
"""

import zlib

import orjson

from docmill.documents.limits import Limits

_MARK = b'"cut":'


def cut_short(kept: bytes, limits: Limits) -> bool:
    """Whether a stored reading or extraction lacks what would be read under these limits."""
    text = zlib.decompress(kept)
    # Hardly any was cut, and a book takes a while to parse. In what documents say, quotes have backslashes.
    if _MARK not in text:
        return False
    cut = orjson.loads(text).get("cut", {})
    return any(getattr(limits, name, 0) > at for name, at in cut.items())
