"""The data of a resolution as people type it: JSON, a file, or keys one by one."""

from collections.abc import Sequence

from docmill.cli.errors import WrongUse
from docmill.cli.sources import read_text


def parse_answer(*, data: str | None, file: str | None, entries: Sequence[str]) -> object:
    """All of it together; None when nothing was given."""
    if data is not None and file is not None:
        raise WrongUse("--data and --data-file exclude each other; give one of them.")
    answer: object = None
    if data is not None:
        answer = _json(data, "--data")
    elif file is not None:
        answer = _json(read_text(file), file)
    for entry in entries:
        key, equals, text = entry.partition("=")
        if not equals or not key.strip():
            raise WrongUse(f"--set {entry!r} is not KEY=VALUE, such as total=110.")
        if answer is not None and not isinstance(answer, dict):
            raise WrongUse("--set adds keys to an object; the data given is none.")
        answer = {**(answer or {}), key.strip(): _value(text)}
    return answer


def _json(text: str, where: str) -> object:
    import orjson

    try:
        return orjson.loads(text)
    except ValueError as error:
        raise WrongUse(f"{where} is not JSON: {error}. Single keys are easier with --set total=110.") from None


def _value(text: str) -> object:
    """What is no JSON is text: `EUR`, `007` and `2026-01-31` need no quotes."""
    import orjson

    try:
        return orjson.loads(text)
    except ValueError:
        return text
