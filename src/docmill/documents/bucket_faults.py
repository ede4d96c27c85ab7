"""What a bucket, or the way to it, says is wrong: in a sentence for whoever set it up.

The library writes down all it knows, its own insides included; what a person can use of it is a few words.
"""

import re

from docmill.documents.blobs import StorageUnavailable

_INSIDES = "Debug source:"
_SAID = re.compile(r"<Code>([^<]*)</Code>(?:<Message>([^<]*)</Message>)?")
_BENEATH = re.compile(r'message: "([^"]{1,200})"|(failed to lookup address[^"\\]{0,200})')
_NO_BUCKET = "NoSuchBucket"
_SHOWN = 300


def is_no_bucket(error: BaseException) -> bool:
    """Whether nothing was found because the bucket is not there."""
    return _NO_BUCKET in str(error)


def explained(error: BaseException, *, name: str, endpoint: str | None) -> StorageUnavailable:
    """Our error for one of the library's."""
    told, _, insides = str(error).partition(_INSIDES)
    where = f" at {endpoint}" if endpoint else ""
    if is_no_bucket(error):
        return StorageUnavailable(f"There is no bucket {name!r}{where}. Correct `storage.bucket`, or make the bucket.")
    if said := _SAID.search(told):
        reason = ": ".join(part.rstrip(".") for part in said.groups() if part)
        return StorageUnavailable(
            f"The bucket {name!r}{where} cannot be used: {reason}. Check `storage` and the credentials."
        )
    if "error sending request" in told:
        beneath = _BENEATH.search(insides)
        reason = f" ({beneath[1] or beneath[2]})" if beneath else ""
        return StorageUnavailable(
            f"The bucket {name!r}{where} cannot be reached{reason}. Check `storage.endpoint`, and whether it runs."
        )
    # What the library did stands before the last dash, with addresses and times; what came of it stands behind.
    reason = " ".join(told.rpartition(" - ")[2].split()).rstrip(" .:")[:_SHOWN]
    return StorageUnavailable(
        f"The bucket {name!r}{where} cannot be used: {reason}. Check `storage` and the credentials."
    )
