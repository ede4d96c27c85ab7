"""What changed between two texts, as a unified diff. Pure."""

from difflib import unified_diff

_NO_END = "\n\\ No newline at end of file\n"


def difference(old: str, new: str, *, old_label: str, new_label: str) -> str:
    """The diff, empty if the texts are the same."""
    lines = unified_diff(_lines(old), _lines(new), old_label, new_label)
    return "".join(line if line.endswith("\n") else line + _NO_END for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one, unlike for `splitlines`."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])
