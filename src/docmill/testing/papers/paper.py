"""One sample document: its bytes, and what is truly written on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A document that the project made itself, with its labels."""

    name: str
    """A file name that fits its content."""
    content: bytes
    schema: str | None = None
    """The field schema it should be read by; None where there is nothing to extract."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """What stands on it, in canonical form: amounts `-1234.50`, dates `2026-11-16`, currencies as ISO codes."""
    rows: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    """Tables, such as `line_items`, in the same form."""
    pages: int = 1
    layout: str | None = None

    def write(self, folder: Path, name: str | None = None) -> Path:
        """Put it into a folder (made if need be) under its own name or another."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or self.name)
        path.write_bytes(self.content)
        return path

    def label(self) -> dict[str, object]:
        """Its line of a `labels.jsonl`, as `docmill eval` reads it."""
        line_count = {"line_count": len(self.rows["line_items"])} if "line_items" in self.rows else {}
        layout = {"layout": self.layout} if self.layout else {}
        return {"file": self.name, "fields": {**self.fields, **line_count}, **layout}
