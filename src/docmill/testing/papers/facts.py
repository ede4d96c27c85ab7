"""What a made-up invoice or receipt is about, drawn from a seed: the truth that is then put on paper."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random

from docmill.testing.papers.languages import LANGUAGES, Language

_CENT = Decimal("0.01")
_EPOCH = date(2025, 1, 6)


def cents(value: Decimal) -> Decimal:
    """Rounded as accountants do."""
    return value.quantize(_CENT, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A seller or a buyer."""

    name: str
    street: str
    postcode: str
    city: str
    country: str
    tax_id: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The address as it is printed below the name."""
        place = f"{self.city}, {self.postcode}" if self.country == "US" else f"{self.postcode} {self.city}"
        return (self.street, place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of an invoice."""

    description: str
    quantity: int
    price: Decimal
    rate: int
    """Percent of tax."""

    @property
    def amount(self) -> Decimal:
        return cents(self.price * self.quantity)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceFacts:
    """An invoice or a credit note."""

    language: Language
    number: str
    issued: date
    days: int
    seller: Party
    buyer: Party
    items: tuple[Item, ...]
    paid: Decimal
    iban: str | None
    date_form: int = 0
    credit: bool = False

    @property
    def due(self) -> date:
        return self.issued + timedelta(days=self.days)

    @property
    def subtotal(self) -> Decimal:
        return sum((item.amount for item in self.items), Decimal(0))

    @property
    def taxes(self) -> Mapping[int, tuple[Decimal, Decimal]]:
        """Rate -> what is taxed, and the tax."""
        rates = sorted({item.rate for item in self.items}, reverse=True)
        bases = {rate: sum((item.amount for item in self.items if item.rate == rate), Decimal(0)) for rate in rates}
        return {rate: (base, cents(base * rate / 100)) for rate, base in bases.items()}

    @property
    def tax(self) -> Decimal:
        return sum((tax for _, tax in self.taxes.values()), Decimal(0))

    @property
    def total(self) -> Decimal:
        return self.subtotal + self.tax

    @property
    def payable(self) -> Decimal:
        return self.total - self.paid

    def fields(self) -> dict[str, str]:
        """The labels."""
        return {
            "invoice_number": self.number,
            "issue_date": self.issued.isoformat(),
            "due_date": self.due.isoformat(),
            "currency": self.language.currency,
            "seller_name": self.seller.name,
            "buyer_name": self.buyer.name,
            "subtotal": str(cents(self.subtotal)),
            "tax": str(cents(self.tax)),
            "total": str(cents(self.total)),
            "amount_due": str(cents(self.payable)),
        }

    def rows(self) -> dict[str, tuple[Mapping[str, str], ...]]:
        """The labels of its tables."""
        items = tuple(
            {
                "description": item.description,
                "quantity": str(item.quantity),
                "unit_price": str(item.price),
                "amount": str(item.amount),
            }
            for item in self.items
        )
        return {"line_items": items}


def invoice_facts(
    seed: int,
    *,
    language: str | None = None,
    items: int | None = None,
    credit: bool = False,
    negative: bool = True,
    paid: bool | None = None,
) -> InvoiceFacts:
    """An invoice drawn from a seed; the same for the same arguments, on every machine.

    The amounts of a credit note are negative if it is to be printed; e-invoices of that type have positive ones.
    """
    random = Random(f"invoice {seed}")
    spoken = LANGUAGES[language or random.choice(sorted(LANGUAGES))]
    issued = _EPOCH + timedelta(days=random.randrange(600))
    count = items or random.randint(1, 6)
    sign = -1 if credit and negative else 1
    lines = tuple(
        Item(
            description=_good(spoken, random, place),
            quantity=random.randint(1, 12),
            price=sign * Decimal(random.randint(150, 48_000)) / 100,
            rate=spoken.rates[0] if place == 0 or random.random() < 0.8 else spoken.rates[1],
        )
        for place in range(count)
    )
    forms = ("{year}-{n:04}", "INV-{n:06}", "{n:05}/{short}", "RE{year}{n:05}", "{n:07}")
    number = random.choice(forms).format(year=issued.year, short=f"{issued:%y}", n=random.randint(11, 9_989))
    seller = _party(spoken, spoken.sellers, random)
    facts = InvoiceFacts(
        language=spoken,
        number=number,
        issued=issued,
        days=random.choice((7, 14, 30, 45)),
        seller=seller,
        buyer=_party(spoken, spoken.buyers, random, but=seller),
        items=lines,
        paid=Decimal(0),
        iban=_iban(spoken.iban, random) if spoken.iban else None,
        date_form=random.randrange(len(spoken.dates)),
        credit=credit,
    )
    with_deposit = random.random() < 0.2 if paid is None else paid
    if not with_deposit or credit:
        return facts
    deposit = cents(facts.total * random.randint(1, 6) / 10)
    return InvoiceFacts(**{name: getattr(facts, name) for name in facts.__slots__} | {"paid": deposit})


def _good(language: Language, random: Random, place: int) -> str:
    good = language.goods[(place + random.randrange(2)) % len(language.goods)]
    return f"{good} {random.choice('ABCDEFGH')}{random.randint(10, 99)}" if random.random() < 0.5 else good


def _party(language: Language, names: tuple[str, ...], random: Random, *, but: Party | None = None) -> Party:
    """Somebody who does not live where the other one does."""
    postcode, city = random.choice([place for place in language.cities if but is None or place[1] != but.city])
    return Party(
        name=random.choice(names),
        street=random.choice([street for street in language.streets if but is None or street != but.street]),
        postcode=postcode,
        city=city,
        country=language.country,
        tax_id=_digits(language.tax_id, random),
    )


def _digits(pattern: str, random: Random) -> str:
    return "".join(str(random.randint(1, 9)) if char == "#" else char for char in pattern)


def _iban(pattern: str, random: Random) -> str:
    """An account number with right check digits, which are the third and fourth characters."""
    drawn = _digits(pattern, random)
    plain = drawn.replace(" ", "")
    number = int("".join(str(int(char, 36)) for char in plain[4:] + plain[:2] + "00"))
    return f"{drawn[:2]}{98 - number % 97:02}{drawn[4:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFacts:
    """A till receipt."""

    company: str
    registration: str
    address: tuple[str, ...]
    day: date
    time: str
    number: str
    items: tuple[Item, ...]
    symbol: str
    currency: str
    rate: int
    cash: Decimal
    day_form: str

    @property
    def total(self) -> Decimal:
        """Tax included."""
        return sum((item.amount for item in self.items), Decimal(0))

    @property
    def tax(self) -> Decimal:
        """Contained in the total."""
        return cents(self.total * self.rate / (100 + self.rate))

    def fields(self) -> dict[str, str]:
        """The labels."""
        return {
            "company": self.company,
            "date": self.day.isoformat(),
            "address": ", ".join(self.address),
            "total": str(cents(self.total)),
        }


_SHOPS = (
    ("GREENLEAF GROCERS LTD", ("22 ORCHARD ROAD", "CF10 2AB CARDIFF"), "£", "GBP", 20),
    ("KEDAI BUKU SERI MEWAH", ("LOT 14 JALAN KENANGA", "43000 KAJANG, SELANGOR"), "RM", "MYR", 6),
    ("SUNRISE HARDWARE INC.", ("700 MAPLE BOULEVARD", "DENVER, CO 80203"), "$", "USD", 8),
    ("PASAR MINI HARAPAN SDN BHD", ("NO 8 JALAN TEMBUSU 3", "81100 JOHOR BAHRU, JOHOR"), "RM", "MYR", 6),
    ("CORNER BAKERY & CAFE", ("5 STATION PARADE", "M1 2PB MANCHESTER"), "£", "GBP", 20),
)
_SHELF = (
    "WHITE BREAD",
    "GREEN TEA 25S",
    "COPY PAPER A4",
    "LED BULB 9W",
    "PENCIL HB X12",
    "APPLE JUICE 1L",
    "TAPE 48MM",
)


def receipt_facts(seed: int, *, items: int | None = None) -> ReceiptFacts:
    """A receipt drawn from a seed."""
    random = Random(f"receipt {seed}")
    company, address, symbol, currency, rate = random.choice(_SHOPS)
    lines = tuple(
        Item(
            description=random.choice(_SHELF),
            quantity=random.randint(1, 4),
            price=Decimal(random.randint(20, 990)) * 5 / 100,
            rate=rate,
        )
        for _ in range(items or random.randint(1, 6))
    )
    total = sum((item.amount for item in lines), Decimal(0))
    return ReceiptFacts(
        company=company,
        registration=f"{random.randint(100_000, 999_999)}-{random.choice('HKTX')}",
        address=address,
        day=_EPOCH + timedelta(days=random.randrange(600)),
        time=f"{random.randint(8, 21):02}:{random.randint(0, 59):02}",
        number=f"{random.randint(1, 9)}{random.randint(10_000, 99_999)}",
        items=lines,
        symbol=symbol,
        currency=currency,
        rate=rate,
        cash=Decimal(int(total) // 10 * 10 + 10),
        day_form=random.choice(
            ("%d/%m/%Y", "%d-%m-%Y", "%Y-%m-%d") if currency != "USD" else ("%m/%d/%Y", "%b %d, %Y")
        ),
    )
