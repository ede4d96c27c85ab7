"""Prompts as text files: the file is the text, letter by letter, and its name is the prompt's."""

from pathlib import Path

SUFFIX = ".txt"
_CUT = (SUFFIX, ".md")
"""Endings that are not part of the name. Only these: a name may have dots of its own."""


def name_of(file: Path) -> str:
    """The name of the prompt that a file holds."""
    return file.name.removesuffix(file.suffix) if file.suffix in _CUT else file.name


def file_of(name: str) -> str:
    """The name of the file that holds a prompt."""
    return f"{name}{SUFFIX}"
