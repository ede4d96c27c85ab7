"""Metadata as people type it: a JSON object, `key=text`, or `key:=JSON`."""

from collections.abc import Sequence

from docmill.cli.errors import WrongUse


def parse_metadata(entries: Sequence[str]) -> dict[str, object]:
    """All entries merged, later ones over earlier ones."""
    merged: dict[str, object] = {}
    for entry in entries:
        merged |= _parse(entry)
    return merged


def _parse(entry: str) -> dict[str, object]:
    import orjson

    if entry.lstrip().startswith("{"):
        try:
            value = orjson.loads(entry)
        except ValueError as error:
            raise WrongUse(f"--metadata is not a JSON object: {error}.") from None
        assert isinstance(value, dict)
        return value
    key, equals, text = entry.partition("=")
    raw = key.endswith(":")
    key = key.removesuffix(":").strip()
    if not equals or not key:
        raise WrongUse(f"--metadata {entry!r} is neither a JSON object, key=text nor key:=JSON.")
    if not raw:
        return {key: text}
    try:
        return {key: orjson.loads(text)}
    except ValueError as error:
        raise WrongUse(f"--metadata {key} is not JSON: {error}. For text write {key}=…, without the colon.") from None
