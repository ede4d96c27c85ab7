"""Entities of a batch as people give them: on the command line, one per line of a file, or as lines of JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from docmill.cli.errors import WrongUse
from docmill.cli.sources import STDIN, read_text

_KEYS = frozenset({"entity", "title", "metadata"})
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLine:
    """One entity with what belongs to its job alone."""

    entity: str
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


def read_entities(given: Sequence[str], file: str | None) -> list[EntityLine]:
    """The entities, from one place or the other."""
    if given and file is not None:
        raise WrongUse("Give entities or --from, not both.")
    if file is None:
        lines = [EntityLine(entity=entity) for entity in given]
    else:
        piped = file in ("-", STDIN)
        text = read_text(STDIN if piped else file, _MOST_BYTES)
        lines = parse_lines(text.splitlines(), "stdin" if piped else file)
    if not lines:
        raise WrongUse("There is no entity; name some as TYPE:ID, or give a file with --from.")
    return lines


def parse_lines(lines: Iterable[str], place: str) -> list[EntityLine]:
    """Lines of a file; empty ones and those that begin with # are passed over."""
    return [
        _parse(line.strip(), f"{place}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _parse(line: str, place: str) -> EntityLine:
    import orjson

    if not line.startswith("{"):
        return EntityLine(entity=line)
    try:
        value = orjson.loads(line)
    except ValueError as error:
        raise WrongUse(f"{place}: not a JSON object: {error}.") from None
    unknown = sorted(value.keys() - _KEYS)
    if unknown:
        raise WrongUse(f"{place}: {', '.join(unknown)} means nothing here; an object has entity, title and metadata.")
    entity, title, metadata = value.get("entity"), value.get("title", ""), value.get("metadata", {})
    if not isinstance(entity, str) or not isinstance(title, str) or not isinstance(metadata, dict):
        raise WrongUse(f'{place}: write {{"entity": "TYPE:ID", "title": "…", "metadata": {{…}}}}; entity is needed.')
    return EntityLine(entity=entity, title=title, metadata=metadata)
