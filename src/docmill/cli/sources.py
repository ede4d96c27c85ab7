"""What people name on the command line: text files, standard input, versions of stored things."""

from docmill.cli.errors import WrongUse
from docmill.cli.output import printable

STDIN = "/dev/stdin"
MAX_BYTES = 4 << 20
"""More than any template or prompt may have; what is longer is refused by its reader after this much."""


def read_text(file: str, limit: int = MAX_BYTES) -> str:
    """The text of a file, as far as the limit."""
    try:
        with open(file, "rb") as source:
            data = source.read(limit)
    except OSError as error:
        raise WrongUse(f"Cannot read {printable(file)}: {error.strerror}.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WrongUse(f"{printable(file)}:{line}: not UTF-8 text; save the file as UTF-8.") from error


def split_version(name: str) -> tuple[str, int | None]:
    """`NAME` or `NAME@VERSION` taken apart."""
    base, at, version = name.rpartition("@")
    if not at:
        return name, None
    return base, parse_version(version, f"write NAME@VERSION with a number, such as {base}@1")


def parse_version(text: str, remedy: str) -> int:
    """A version as people type it."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:10]) < 2**31:
        raise WrongUse(f"{text!r} is not a version; {remedy}.")
    return int(text[:10])
