"""Labels on a page: where the words stand that a schema says are printed beside its fields.

The longest label wins a place, whichever field it belongs to, so `due date` is not also a `date`, and `sub total` not
a `total`. Words are compared without case, accents and punctuation; what OCR glued together (`InvoiceNo`) still counts.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from docmill.extraction.pages import PageLine, Pages, Place
from docmill.extraction.schema import Field, FieldSchema
from docmill.extraction.values.kinds import FieldType
from docmill.extraction.values.texts import bare

_WORD = re.compile(r"[^\W_]+")
_GENERIC = 3
"""Fields whose labels must share a word (`total`, `amount`) for it to say little beside a label of its own."""
PAGE_LABELS = 500
"""Of one page, which has some dozens; one made of nothing else must not cost more than it."""
_GLUED = 6
"""Letters from which on a label of several words is recognised without the spaces between them."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label that was found."""

    line: int
    """Index into `Pages.lines`."""
    start: int
    end: int
    fields: tuple[str, ...]
    """Fields it may belong to, best first."""
    words: int
    place: Place
    alone: bool
    """Nothing stands before it in its line, or a wide gap does."""
    marked: bool
    """A colon or the like stands behind it."""
    beside: tuple[str, ...] = ()
    """All fields named, where several labels stand side by side."""


class LabelBook:
    """The labels of a schema, ready to be looked up word by word."""

    def __init__(self, schema: FieldSchema) -> None:
        owners: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for field in schema.fields.values():
            for text in labels_of(field):
                words = tuple(_WORD.findall(bare(text)))
                if words and field.name not in owners[words]:
                    owners[words].append(field.name)
                glued = "".join(words)
                if len(words) > 1 and len(glued) >= _GLUED and field.name not in owners[(glued,)]:
                    owners[(glued,)].append(field.name)
        for field in schema.fields.values():
            self._share(field, schema, owners)
        users: dict[str, set[str]] = defaultdict(set)
        by_word: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(list)
        for words, fields in owners.items():
            by_word[words[0]].append((words, tuple(fields)))
            for word in words:
                users[word].update(fields)
        self._generic = {word for word, names in users.items() if len(names) >= _GENERIC}
        self._by_word = {first: sorted(entries, key=lambda entry: -len(entry[0])) for first, entries in by_word.items()}

    @staticmethod
    def _share(field: Field, schema: FieldSchema, owners: dict[tuple[str, ...], list[str]]) -> None:
        """What is printed for a number of the seller may stand for one of the buyer: its block decides."""
        roles = [name.removesuffix("_name") for name in schema.fields if name.endswith("_name")]
        role = next((role for role in roles if field.name.startswith(role + "_")), None)
        for other in roles:
            twin = schema.fields.get(field.name.replace(f"{role}_", f"{other}_", 1))
            if role is None or other == role or twin is None or twin.type is FieldType.TEXT:
                continue
            for names in owners.values():
                if field.name in names and twin.name not in names:
                    names.append(twin.name)

    def find(self, pages: Pages) -> list[Label]:
        """Every label on the pages; looked for once."""
        found: list[Label] | None = pages.kept.get(self)
        if found is None:
            found = pages.kept[self] = self._found(pages)
        return found

    def _found(self, pages: Pages) -> list[Label]:
        found: list[Label] = []
        page, before = None, 0
        for index, line in enumerate(pages.lines):
            if line.page != page:
                page, before = line.page, len(found)
            if len(found) - before >= PAGE_LABELS:
                pages.note(f"Page {page} has more words that look like labels than are looked at: {PAGE_LABELS}.")
                continue
            chain: list[Label] = []
            for label in self._in_line(index, line):
                if chain and not _beside(chain[-1], label, line):
                    found.append(self._merged(chain, line))
                    chain = []
                chain.append(label)
            if chain:
                found.append(self._merged(chain, line))
        return found

    def _merged(self, chain: list[Label], line: PageLine) -> Label:
        """Labels without a gap between them are one: `VAT total` is a tax, `Seller BIC` a BIC."""
        if len(chain) == 1:
            return chain[0]
        telling = [label for label in chain if not self._says_little(label, line)] or chain
        start, end = chain[0].start, chain[-1].end
        return replace(
            telling[-1],
            start=start,
            end=end,
            words=sum(label.words for label in chain),
            place=line.place(start, end),
            alone=chain[0].alone,
            marked=chain[-1].marked,
            beside=tuple(dict.fromkeys(name for label in chain for name in label.fields)),
        )

    def _says_little(self, label: Label, line: PageLine) -> bool:
        return all(word in self._generic for word in _WORD.findall(line.bare[label.start : label.end]))

    def _in_line(self, index: int, line: PageLine) -> Iterable[Label]:
        words = _WORD.findall(line.bare)
        if self._by_word.keys().isdisjoint(words):
            return
        places = [match.span() for match in _WORD.finditer(line.bare)]
        at = 0
        while at < len(words):
            entry = self._longest(words, at)
            if entry is None:
                at += 1
                continue
            wanted, fields = entry
            start, end = places[at][0], places[at + len(wanted) - 1][1]
            before, behind = line.text[:start].rstrip(), line.text[end:].lstrip(" .")
            yield Label(
                line=index,
                start=start,
                end=end,
                fields=fields,
                words=len(wanted),
                place=line.place(start, end),
                alone=not before or before[-1] in ":;|,.)",
                marked=behind[:1] in (":", "#", "=", "№") or not behind,
            )
            at += len(wanted)

    def _longest(self, words: list[str], at: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        for wanted, fields in self._by_word.get(words[at], ()):
            end = at + len(wanted)
            if len(wanted) == 1 or tuple(words[at:end]) == wanted:
                # `PO Box 123` is an address, and no purchase order.
                return None if wanted[-1] == "po" and words[end : end + 1] == ["box"] else (wanted, fields)
        return None


def _beside(one: Label, other: Label, line: PageLine) -> bool:
    """Whether nothing but a space stands between two labels of a line: wider gaps part the heads of columns."""
    if any(sign.isalnum() or sign in ":;|,()" for sign in line.text[one.end : other.start]):
        return False
    letter = one.place.box.width / max(1, one.end - one.start)
    return other.place.box.left - one.place.box.right < 1.6 * letter


def labels_of(field: Field) -> tuple[str, ...]:
    """The labels a field names; one that names none is looked for by its title, name and aliases."""
    if field.labels:
        return field.labels
    return (field.title, field.name.replace("_", " "), *(alias.replace("_", " ") for alias in field.aliases))


@lru_cache(maxsize=32)
def book_of(schema: FieldSchema) -> LabelBook:
    """The labels of a schema; kept, because making them takes longer than reading a page."""
    return LabelBook(schema)
