"""The stand-in for a vendor of models: as slow as a model and as fallible, and it keeps books of its own.

`swift-1` cannot read handwriting, `careful-2` can. Both stop in the middle of an answer that is longer than allowed.
"""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from docmill.plugin import Answer, FinishReason, ModelCall, provider

SECONDS = {"swift-1": 1.3, "careful-2": 1.7}
"""How long each thinks."""
_LETTERS = 4
"""Of a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One call in the vendor's own books."""

    transaction: str
    asked: str
    """What was wanted: a page, or a field of the answer."""
    model: str
    max_tokens: int
    tokens: int
    finish: FinishReason


@provider("standin")
async def ask(call: ModelCall) -> Answer:
    """Think, answer, and charge for it."""
    await asyncio.sleep(SECONDS[call.model])
    asked, text = _answer(call)
    finish, limit = FinishReason.STOP, call.max_tokens * _LETTERS
    if "written by hand" in text and call.model == "swift-1":
        finish, text = FinishReason.REFUSED, "I can only read print."
    elif len(text) > limit:
        finish, text = FinishReason.LENGTH, text[:limit]
    answer = Answer(
        text=text,
        input_tokens=(len(call.prompt) + sum(len(page.data) for page in call.attachments)) // _LETTERS,
        output_tokens=len(text) // _LETTERS,
        finish=finish,
    )
    charge = Charge(
        transaction=_found("Transaction", call.prompt) or "?",
        asked=asked,
        model=call.model,
        max_tokens=call.max_tokens,
        tokens=answer.output_tokens,
        finish=finish,
    )
    _charge(_books(Path(os.environ["DOCMILL_HOME"])), charge)
    return answer


def charges(home: Path) -> Iterator[Charge]:
    """What the vendor's books say."""
    books = _books(home)
    for line in books.read_text().splitlines() if books.exists() else ():
        entry = json.loads(line)
        yield Charge(**entry | {"finish": FinishReason(entry["finish"])})


def _answer(call: ModelCall) -> tuple[str, str]:
    """What is wanted, which the schema tells, and the answer."""
    if call.attachments:
        return str(call.options["page"]), call.attachments[0].data.decode()
    properties = (call.output_schema or {}).get("properties")
    fields = properties if isinstance(properties, dict) else {}
    return next(iter(fields)), json.dumps({field: _field(field, call.prompt) for field in fields})


def _field(field: str, prompt: str) -> object:
    match field:
        case "document_type":
            return "invoice" if "INVOICE" in prompt else "other"
        case "net" | "tax" | "total":
            return float(_found(field, prompt) or 0)
        case "line_items":
            return re.findall(r"^item \d+: (.+)$", prompt, re.MULTILINE)
        case "budget":
            return _chosen(_found("purpose", prompt), prompt)
        case "vendor_id":
            return _chosen(_found("vendor", prompt), prompt)
        case _:
            return _found(field, prompt)


def _found(word: str, prompt: str) -> str | None:
    match = re.search(rf"^{word} (.+)$", prompt, re.MULTILINE)
    return match[1] if match else None


def _chosen(wanted: str | None, prompt: str) -> str | None:
    """The id of what is wanted, out of a list in the prompt."""
    match = re.search(rf"id: (\S+), \w+: {re.escape(wanted or '')}(?:,|$)", prompt, re.MULTILINE)
    return match[1] if match else None


def _books(home: Path) -> Path:
    return home / "model-vendor.jsonl"


def _charge(books: Path, charge: Charge) -> None:
    # One write to a file opened for appending is never torn by the other workers' writes.
    descriptor = os.open(books, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, orjson.dumps(asdict(charge)) + b"\n")
    finally:
        os.close(descriptor)
