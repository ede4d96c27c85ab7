"""The reader for any schema: candidates of the right type, chosen by the labels beside them.

It needs nothing but the schema: no training, no model. Fields of the shipped schemas that matter most have a learned
reader (`docmill.extraction.local`); this one reads their other fields, and all fields of a schema of one's own.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from docmill.documents.reading import Box, Reading
from docmill.extraction.addresses import address_beneath
from docmill.extraction.labels import Label, book_of
from docmill.extraction.neighbours import LEAD, ByHeight, Rows
from docmill.extraction.pages import Pages, Place
from docmill.extraction.result import FieldValue, Reader
from docmill.extraction.schema import Field, FieldSchema
from docmill.extraction.spotting import Spot, spots
from docmill.extraction.values.kinds import FieldType
from docmill.extraction.values.texts import bare, clean

_SHAPED = frozenset({FieldType.IBAN, FieldType.CURRENCY, FieldType.TAX_ID, FieldType.TIME})
"""Types that are recognised without a label."""
_LABEL_TELLS = frozenset({FieldType.TAX_ID, FieldType.BIC})
_ENOUGH = 0.3
"""Score below which nothing is said."""
_SHAPELY = 0.6
"""Weight from which on a candidate may be taken without a label."""
_ALTERNATIVES = 4
_MOST_OWN = 100
"""Labels of one field that are looked at: the first and the last half of them."""
NOTHING: Mapping[str, FieldValue] = MappingProxyType({})
_LONGEST_TEXT = 300
_LINES = 5
"""Of a paragraph that are read at most."""
_COLON = re.compile(r"[^:]{1,40}:\s|.{1,40}:$")


@dataclass(frozen=True, slots=True)
class _Choice:
    field: str
    spot: Spot
    score: float
    label: float


def read_labelled(
    reading: Reading | Pages,
    schema: FieldSchema,
    names: Iterable[str] | None = None,
    known: Mapping[str, FieldValue] = NOTHING,
) -> dict[str, FieldValue]:
    """The fields of a schema that were found, by name; `names` limits which are looked for, not which labels count.

    `known` are fields that another reader found: the address of a party is looked for below its name.
    """
    whole = reading if isinstance(reading, Pages) else Pages(reading)
    pages = whole.edges
    wanted = [schema.fields[name] for name in (schema.fields if names is None else names) if name in schema.fields]
    labels = book_of(schema).find(pages)
    # `seller_tax_id` belongs to the party that `seller_name` names.
    roles = {name: name.removesuffix("_name") for name in schema.fields if name.endswith("_name")}
    rows = Rows(pages, labels, roles)
    choices: list[_Choice] = []
    for field in wanted:
        if field.printed:
            choices += _choices(field, pages, labels, rows, roles)
    found = _decided(choices, wanted)
    parties = {**found, **known}
    for field in wanted:
        name = parties.get(field.name.removesuffix("_address") + "_name")
        beneath = address_beneath(name, whole) if field.name.endswith("_address") and name else None
        if beneath is not None:
            found[field.name] = beneath
    for text in pages.notes:
        whole.note(text)
    return {field.name: found[field.name] for field in wanted if field.name in found}


def _choices(field: Field, pages: Pages, labels: list[Label], rows: Rows, roles: Mapping[str, str]) -> list[_Choice]:
    own = [label for label in labels if field.name in label.fields]
    if len(own) > _MOST_OWN:
        own = own[: _MOST_OWN // 2] + own[-_MOST_OWN // 2 :]
    if field.type is FieldType.TEXT and field.pattern is None:
        beside = [found for label in own for found in _texts_beside(label, pages, rows)]
        beside += _phrased(field, pages)
        return [_Choice(field.name, spot, score, score) for spot, score in beside]
    unlabelled = field.type in _SHAPED or field.pattern is not None or (field.type is FieldType.ENUM)
    if not own and not unlabelled:
        return []
    found = spots(field, pages)
    best: dict[int, float] = defaultdict(float)
    told: set[int] = set()
    crowds = _crowds(field, found, pages)
    by_height = _by_height(field, found, pages)
    for label in own:
        rank = 0.05 * label.fields.index(field.name)
        middle, height = label.place.box.middle, max(label.place.box.height, 0.006)
        # Values stand to the right and below.
        for index in by_height.near(label.place.page, middle - 1.5 * height, middle + 6 * height):
            near = rows.nearness(label, found[index]) - 0.12 * crowds[index]
            if near > 0:
                best[index] = max(best[index], near * _trust(label) - rank)
                if not rank:
                    told.add(index)
    repeats = Counter(spot.value for spot in found)
    own_role = next((role for role in roles.values() if field.name.startswith(role + "_")), None)
    roles_first = next(iter(roles.values()), None)
    choices = []
    for index, spot in enumerate(found):
        label_score = best.get(index, 0.0)
        if not label_score and not (unlabelled and spot.weight >= _SHAPELY):
            continue
        free = 0.0 if label_score or not unlabelled else 0.35 + 0.05 * min(repeats[spot.value], 4)
        # Beside its label, a number of a shape that many numbers have is what the label says.
        sure = spot.weight if free or field.type not in _LABEL_TELLS else (1 + spot.weight) / 2
        score = max(label_score, free) * sure
        if own_role:
            role = rows.party(spot)
            score += 0.1 if role == own_role else 0.0 if role is None else -0.3
            # Whoever wrote the document names itself; the other party's numbers need its name above or beside them.
            score -= 0.35 if role is None and own_role != roles_first and index not in told else 0.0
        choices.append(_Choice(field.name, spot, min(1.0, score), label_score))
    return choices


def _by_height(field: Field, found: Sequence[Spot], pages: Pages) -> ByHeight[int]:
    """Places of the candidates; as `spots`, once for all fields that share them."""
    key = ("heights", field.type, field.pattern, field.enum)
    if key not in pages.kept:
        places = ((spot.place.page, spot.box.middle, index) for index, spot in enumerate(found))
        pages.kept[key] = ByHeight(places)
    kept: ByHeight[int] = pages.kept[key]
    return kept


def _crowds(field: Field, found: Sequence[Spot], pages: Pages) -> list[int]:
    """For sums of money, how many others stand to the right in the same row: the last is what the row comes to."""
    if field.type is not FieldType.AMOUNT:
        return [0] * len(found)
    kept: list[int] | None = pages.kept.get(("crowds", field.type))
    if kept is not None:
        return kept
    counts = [0] * len(found)
    order = sorted(range(len(found)), key=lambda index: (found[index].place.page, found[index].box.middle))
    for at, index in enumerate(order):
        spot = found[index]
        for near in order[at + 1 : at + 40]:
            other = found[near]
            if other.place.page != spot.place.page or other.box.middle - spot.box.middle > 0.5 * spot.box.height:
                break
            left = index if spot.box.left < other.box.left else near
            counts[left] = min(3, counts[left] + 1)
    pages.kept["crowds", field.type] = counts
    return counts


def _trust(label: Label) -> float:
    """How sure it is that the words are meant as a label: several of them, alone in front, with a colon behind."""
    return min(1.0, 0.72 + 0.1 * min(label.words, 3) + 0.06 * label.alone + 0.06 * label.marked)


def _decided(choices: list[_Choice], wanted: list[Field]) -> dict[str, FieldValue]:
    """The best choices, each place given to one field only."""
    fields = {field.name: field for field in wanted}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    others: dict[str, list[str]] = defaultdict(list)
    for choice in choices:
        counts[choice.field][choice.spot.value] += 1
    taken: set[tuple[int, int]] = set()
    chosen: dict[str, _Choice] = {}
    for choice in sorted(choices, key=lambda one: (-one.score, one.spot.place.page, one.spot.box.top)):
        if choice.field in chosen:
            others[choice.field].append(choice.spot.value)
            continue
        place = (choice.spot.line, choice.spot.start)
        exclusive = fields[choice.field].type is not FieldType.CURRENCY
        if choice.score < _ENOUGH or (exclusive and place in taken):
            continue
        chosen[choice.field] = choice
        if exclusive:
            taken.add(place)
    return {
        name: _value(choice, counts[name][choice.spot.value], others[name])
        for name, choice in sorted(chosen.items(), key=lambda pair: list(fields).index(pair[0]))
    }


def _value(choice: _Choice, repeats: int, others: list[str]) -> FieldValue:
    rest = tuple(value for value in dict.fromkeys(others) if value != choice.spot.value)
    return FieldValue(
        value=choice.spot.value,
        raw=choice.spot.place.text,
        confidence=round(max(0.05, min(0.97, choice.score * 0.95)), 4),
        evidence=(choice.spot.place.evidence,),
        reader=Reader.LOCAL,
        signals={"label": round(choice.label, 4), "repeats": float(repeats), "score": round(choice.score, 4)},
        alternatives=rest[:_ALTERNATIVES],
    )


def _texts_beside(label: Label, pages: Pages, rows: Rows) -> Iterable[tuple[Spot, float]]:
    """Free text behind a label: the rest of its line, else what stands to the right, else what stands below."""
    line = pages.lines[label.line]
    cut = min(
        (other.start for other in rows.in_line(label.line) if _ends(label, other)),
        default=len(line.text),
    )
    text = line.text[label.end : cut]
    start = label.end + len(text) - len(text.lstrip(LEAD))
    trust = _trust(label)
    if clean(line.text[start:cut]):
        yield _text_spot(pages, label.line, start, cut), trust * (1.0 if label.marked else 0.7 if label.alone else 0.3)
        return
    box = label.place.box
    right: list[tuple[float, int]] = []
    below: list[tuple[float, int]] = []
    for index in rows.lines_near(line.page, box.top - box.height, box.bottom + 4 * max(box.height, 0.006)):
        other = pages.lines[index]
        if index == label.line:
            continue
        if abs(other.box.middle - box.middle) < 0.6 * box.height and other.box.left >= box.right - 0.01:
            right.append((other.box.left - box.right, index))
        drop = (other.box.top - box.bottom) / max(box.height, 0.006)
        if -0.4 <= drop <= 2.5 and _over(box, other.box):
            below.append((drop, index))
    for near, weight in ((right, 0.9), (below, 0.75)):
        for distance, index in sorted(near)[:1]:
            if not any(other.start == 0 for other in rows.in_line(index)):
                spot = _text_spot(pages, index, 0, len(pages.lines[index].text))
                yield spot, trust * weight * max(0.3, 1 - 0.3 * distance)
                return


def _ends(label: Label, other: Label) -> bool:
    """Whether another label in the line ends the text of this one: it has a colon, or a wide gap before it."""
    return other.start > label.end and (other.marked or other.alone) and other.place.box.left > label.place.box.right


def _phrased(field: Field, pages: Pages) -> Iterable[tuple[Spot, float]]:
    """Free text that needs no label, because it begins with words of its own."""
    if not field.phrases:
        return
    openings = [opening for phrase in field.phrases if (opening := bare(phrase)) in pages.bare]
    for index, line in enumerate(pages.lines):
        folded = line.bare
        for opening in openings:
            at = folded.find(opening)
            if at < 0 or (at > 0 and folded[at - 1].isalnum()):
                continue
            # From the beginning of the sentence, which may be a few words earlier.
            start = max(line.text.rfind(sign, 0, at) for sign in ".:;|") + 1
            yield _paragraph(pages, index, start), 0.75 if at == 0 else 0.6
            break


def _paragraph(pages: Pages, index: int, start: int) -> Spot:
    """From a place in a line to the end of its paragraph: lines close below that begin at the same edge."""
    first = _text_spot(pages, index, start, len(pages.lines[index].text))
    last, texts, boxes = pages.lines[index], [first.value], [first.box]
    for line in pages.lines[index + 1 : index + _LINES]:
        gap = line.box.top - last.box.bottom
        if line.page != last.page or abs(line.box.left - last.box.left) > 0.01 or gap > 0.5 * last.box.height:
            break
        if texts[-1].endswith(".") or _COLON.match(line.text):
            break
        texts.append(clean(line.text))
        boxes.append(line.box)
        last = line
    text = " ".join(texts)[:_LONGEST_TEXT]
    return replace(first, value=text, place=Place(first.place.page, boxes[0].around(*boxes[1:]), text))


def _over(one: Box, other: Box) -> bool:
    return min(one.right, other.right) > max(one.left, other.left) or abs(one.left - other.left) < 0.02


def _text_spot(pages: Pages, index: int, start: int, end: int) -> Spot:
    line = pages.lines[index]
    place: Place = line.place(start, end)
    value = clean(line.text[start:end].strip(" |;"))[:_LONGEST_TEXT]
    return Spot(index, start, end, value, place)
