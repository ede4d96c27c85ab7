"""A page to draw text on at exact places, in millimetres, over fpdf2."""

from datetime import UTC, datetime
from typing import Any, Literal

from docmill.model.errors import DocmillError

WIDTH = 210.0
_POINT = 0.3528
"""Millimetres in a point."""
_MADE = datetime(2026, 1, 1, tzinfo=UTC)


class SamplesUnavailable(DocmillError):
    """Making sample documents needs libraries that only developers have."""

    code = "samples_unavailable"


def library(name: str) -> Any:
    """A library that writes documents; Docmill itself never does."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        package = {"fpdf": "fpdf2"}.get(name, name)
        raise SamplesUnavailable(
            f"Making this sample document needs {package}. Install it: pip install {package}.", package=package
        ) from error


class Sheet:
    """A PDF in the making."""

    def __init__(self, font: str = "helvetica") -> None:
        fpdf = library("fpdf")
        self.pdf: Any = fpdf.FPDF(unit="mm", format="A4")
        # What viewers take these fonts for; with it the euro sign can be written.
        self.pdf.core_fonts_encoding = "cp1252"
        self.pdf.set_auto_page_break(False)
        # Without these two, the same seed would give other bytes every second.
        self.pdf.set_creation_date(_MADE)
        self.pdf.set_producer("docmill.testing")
        self.font = font
        self.pages = 0
        self.new_page()

    def new_page(self) -> None:
        """Go on with an empty page."""
        self.pdf.add_page()
        self.pages += 1

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 10,
        bold: bool = False,
        align: Literal["left", "right", "middle"] = "left",
        grey: int = 0,
    ) -> None:
        """Write text with its baseline at y, and its left end, right end or middle at x."""
        self.pdf.set_font(self.font, style="B" if bold else "", size=size)
        self.pdf.set_text_color(grey, grey, grey)
        width = self.pdf.get_string_width(text)
        start = {"left": x, "right": x - width, "middle": x - width / 2}[align]
        self.pdf.text(start, y, text)

    def width(self, text: str, *, size: float = 10) -> float:
        """Of a text that is not bold."""
        self.pdf.set_font(self.font, style="", size=size)
        return float(self.pdf.get_string_width(text))

    def block(self, x: float, y: float, lines: tuple[str, ...], *, size: float = 10, bold_first: bool = False) -> float:
        """Several lines below each other; returns where the next would stand."""
        for place, line in enumerate(lines):
            self.text(x, y, line, size=size, bold=bold_first and place == 0)
            y += size * _POINT * 1.3
        return y

    def rule(self, x: float, y: float, end: float, *, width: float = 0.2) -> None:
        """A horizontal line."""
        self.pdf.set_line_width(width)
        self.pdf.line(x, y, end, y)

    def band(self, x: float, y: float, width: float, height: float, colour: tuple[int, int, int]) -> None:
        """A filled rectangle."""
        self.pdf.set_fill_color(*colour)
        self.pdf.rect(x, y, width, height, style="F")

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """An empty rectangle."""
        self.pdf.set_line_width(0.2)
        self.pdf.rect(x, y, width, height)

    def finish(self, *, password: str | None = None) -> bytes:
        """The bytes of the file; with a password it can be opened only by who knows it."""
        if password is not None:
            self.pdf.set_encryption(owner_password=password + "!", user_password=password)
        return bytes(self.pdf.output())
