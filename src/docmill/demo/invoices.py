"""The sample input: a folder of small invoices, the same on every run."""

from dataclasses import dataclass
from pathlib import Path

PAGES = 3
"""Pages of every invoice; a page ends with a form feed."""
CENTS_PER_EURO = {"EUR": 100, "USD": 92, "GBP": 117}
"""What one unit of a currency is worth, in euro cents: fixed, so that the sums come out the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One invoice as it is known before anybody reads it: what the demo checks the results against."""

    number: int
    vendor: str
    currency: str
    amounts: tuple[int, int]
    """Cents on page 2 and on page 3."""
    handwritten: bool = False

    @property
    def name(self) -> str:
        return f"{self.number:02} {self.vendor}"

    @property
    def cents(self) -> int:
        """The total in euro cents."""
        return sum(self.amounts) * CENTS_PER_EURO[self.currency] // 100

    def text(self) -> str:
        """The invoice itself."""
        manner = "written by hand" if self.handwritten else "printed"
        lines = [f"amount {cents // 100}.{cents % 100:02}" for cents in self.amounts]
        pages = (
            f"INVOICE 2026-{self.number:04}\nvendor {self.vendor}\ncurrency {self.currency}\n({manner})",
            f"for services rendered\n{lines[0]}",
            f"for materials\n{lines[1]}\n\nPayable within 30 days.",
        )
        return "\f".join(pages) + "\n"


UNKNOWN_VENDOR = "Nimbus Ltd"
"""Not in the vendor register: looking it up fails, and the look-up is optional."""

SAMPLES = (
    Sample(number=1, vendor="Aurora AG", currency="EUR", amounts=(42_000, 9_950)),
    Sample(number=2, vendor="Birch & Co", currency="USD", amounts=(120_000, 5_000)),
    Sample(number=3, vendor="Cobalt SA", currency="EUR", amounts=(8_800, 1_200)),
    Sample(number=4, vendor="Dune GmbH", currency="EUR", amounts=(31_415, 2_718), handwritten=True),
    Sample(number=5, vendor="Ember Inc", currency="GBP", amounts=(64_000, 6_400)),
    Sample(number=6, vendor=UNKNOWN_VENDOR, currency="EUR", amounts=(15_000, 2_500)),
    Sample(number=7, vendor="Fjord AS", currency="EUR", amounts=(99_900, 100)),
    Sample(number=8, vendor="Grove Oy", currency="USD", amounts=(27_000, 3_300)),
    Sample(number=9, vendor="Harbor BV", currency="EUR", amounts=(5_000, 5_000)),
    Sample(number=10, vendor="Indigo SpA", currency="EUR", amounts=(76_500, 23_500)),
    Sample(number=11, vendor="Juniper KG", currency="GBP", amounts=(18_000, 1_000)),
    Sample(number=12, vendor="Kestrel SE", currency="EUR", amounts=(11_100, 900), handwritten=True),
)


def write_samples(folder: Path) -> dict[str, Path]:
    """Write the invoices into the folder; name -> file."""
    folder.mkdir(parents=True)
    files = {}
    for sample in SAMPLES:
        path = folder / f"invoice-{sample.number:02}.txt"
        path.write_text(sample.text())
        files[sample.name] = path
    return files
