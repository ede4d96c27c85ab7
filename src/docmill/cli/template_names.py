"""What a person means by a template on the command line: a stored one, a version of it, or a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from docmill.cli.sources import split_version

if TYPE_CHECKING:
    from docmill.services.templates import Templates, TemplateVersion

SUFFIXES = (".yaml", ".yml")


def find_template(templates: "Templates", name: str) -> "TemplateVersion":
    """The template that `NAME` or `NAME@VERSION` means."""
    return templates.find(*split_version(name))


def looks_like_file(name: str) -> bool:
    """Whether the person means a file rather than a stored template."""
    return "/" in name or name.endswith(SUFFIXES) or Path(name).is_file()


def is_version(word: str) -> bool:
    """Whether it is the number of a version."""
    return word.isascii() and word.isdigit() and len(word) <= 10 and 0 < int(word) < 2**31
