"""The sample input: a folder of invoices, the same on every run, and what the books must say about them."""

from dataclasses import dataclass
from pathlib import Path

PAGES = 3
"""Pages of every paper; a page ends with a form feed."""
BUDGETS = ("travel", "office", "cloud")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """One invoice as it is known before anybody reads it: what the demo checks the results against."""

    number: int
    vendor: str
    purpose: str
    net: int
    """Whole euros; the tax is 19 percent."""
    misprint: float | None = None
    """The total that it says instead of the right one."""
    handwritten: bool = False
    unsigned: bool = False
    """The vendor's name is not on it."""
    items: int = 2

    @property
    def name(self) -> str:
        return f"{self.number:02} {self.vendor}"

    @property
    def tax(self) -> float:
        return self.net * 19 / 100

    @property
    def total(self) -> float:
        """The right one."""
        return self.net + self.tax

    @property
    def cents(self) -> int:
        return round(self.total * 100)

    def text(self) -> str:
        """The paper itself."""
        vendor = "" if self.unsigned else f"vendor {self.vendor}\n"
        manner = "(written by hand)\n" if self.handwritten else ""
        items = "".join(f"item {number}: delivery of part {number}\n" for number in range(1, self.items + 1))
        pages = (
            f"INVOICE 2026-{self.number:04}\n{vendor}purpose {self.purpose}\n",
            f"{manner}{items}",
            f"net {self.net:.2f}\ntax {self.tax:.2f}\ntotal {self.misprint or self.total:.2f}\nPayable in 30 days.\n",
        )
        return "\f".join(pages)


PAPERS = (
    Paper(number=1, vendor="Aurora AG", purpose="travel", net=420),
    Paper(number=2, vendor="Birch Co", purpose="office", net=1_250),
    Paper(number=3, vendor="Cobalt SA", purpose="cloud", net=88, handwritten=True),
    Paper(number=4, vendor="Dune Ltd", purpose="travel", net=314),
    Paper(number=5, vendor="Ember Inc", purpose="office", net=704, items=24),
    Paper(number=6, vendor="Fjord AS", purpose="catering", net=175),
    Paper(number=7, vendor="Grove Oy", purpose="cloud", net=100, misprint=191),
    Paper(number=8, vendor="Harbor BV", purpose="travel", net=303, handwritten=True),
    Paper(number=9, vendor="Kiosk", purpose="office", net=9, unsigned=True),
    Paper(number=10, vendor="Lumen KG", purpose="cloud", net=765),
)
"""Two are written by hand, one is long, one has no budget, one is wrong, one does not say whose it is."""


def paper_of(name: str) -> Paper:
    """The paper that a transaction is about."""
    return next(paper for paper in PAPERS if paper.name == name)


def write_papers(folder: Path) -> dict[str, Path]:
    """Write the papers into the folder; name -> file."""
    folder.mkdir(parents=True)
    files = {}
    for paper in PAPERS:
        path = folder / f"paper-{paper.number:02}.txt"
        path.write_text(paper.text())
        files[paper.name] = path
    return files
