"""The bytes of a stored file."""

from pathlib import Path

from docmill.documents.faults import FileTooLarge
from docmill.documents.limits import Limits


def load(path: str, limits: Limits) -> bytes:
    """All of them, unless there are too many."""
    size = Path(path).stat().st_size
    if size > limits.max_bytes:
        raise FileTooLarge(
            f"The file has {size} bytes; {limits.max_bytes} are the limit. Split it, or raise documents.max_bytes.",
            bytes=size,
        )
    return Path(path).read_bytes()
