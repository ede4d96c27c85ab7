"""What people carry to prove who they are: made at random, shown once, stored as a hash.

They hold 256 bits of chance, so a plain hash is enough: nobody tries them all.
"""

import hashlib
import secrets

KEY, SESSION, INVITATION = "dmk_", "dms_", "dmi_"
"""How each begins: a person, and a scanner that looks for leaked secrets, sees what it is."""
HINT = 10
"""Letters of a key that are kept to tell it from others."""


def new_secret(kind: str) -> str:
    """Another one."""
    return kind + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """What is stored of it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
