"""Lines of a document that speak to a machine instead of a reader. Pure.

A document is data: whatever it says, it cannot change what a step does. But a model that reads it may be swayed, so
what looks like an instruction is pointed out, and a value that stands nowhere else is not believed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from docmill.documents.reading import Page, Reading
from docmill.extraction.result import Check
from docmill.extraction.values.texts import bare

CHECK = "prompt_injection_suspected"
_SHOWN = 120
_TOLD = 3

_WHAT = r"(?:instructions?|prompts?|rules?|guidelines?|commands?|directions?|context)"
_PHRASES = (
    rf"\b(?:ignore|disregard|forget|override|bypass)\b.{{0,40}}\b{_WHAT}\b",
    r"\b(?:ignore|disregard|forget)\b.{0,20}\b(?:above|before|everything|previous|prior|preceding|earlier)\b",
    r"\b(?:system|developer|hidden|secret)[ -]?prompt\b(?! pay)",
    r"\b(?:you are|you're|act as|behave as|pretend to be)\b.{0,25}"
    r"\b(?:ai|a\.i\.|assistant|language model|llm|chatbot|gpt|model)\b",
    r"\b(?:as|dear|attention|note to|message to|instructions? (?:to|for))\b.{0,15}"
    r"\b(?:ai|llms?|assistants?|language models?|chatbots?|gpt)\b",
    r"\bnew (?:instructions?|task|system message)\b\s*:",
    r"\b(?:auto[- ]?)?approve (?:this|the)\b.{0,30}\b(?:invoice|document|receipt|payment|bill)\b",
    r"\b(?:mark|treat|classify|report|return|set|change|replace)\s+(?:the|this|its|all)\s+(?:\w+\s+){0,2}"
    r"(?:total|amount|iban|vendor|seller|invoice|document|confidence|status)\b.{0,20}(?:\b(?:as|to|with)\b|=)",
    r"\b(?:do not|don't|never)\b.{0,25}\b(?:flag|review|escalate|reject|tell the user|mention this)\b",
    r"</?(?:system|assistant|instructions?|prompt)>|\[/?inst\]|<\|(?:im_start|im_end|system|endoftext)\|>",
    r"\bignorier(?:e|en)\b.{0,40}\b(?:anweisung(?:en)?|vorgaben|regeln)\b",
    r"\bignor(?:ez|e|er|a|are|ar|ad)\b.{0,40}\b(?:instructions?|consignes|instrucciones|istruzioni|instrucoes)\b",
    r"\bnegeer\b.{0,40}\b(?:instructies|opdrachten)\b",
)
_PATTERN = re.compile("|".join(f"(?:{phrase})" for phrase in _PHRASES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A line that looks like an instruction."""

    page: int | None
    """None: in a section of a document without pages."""
    text: str


def suspects(reading: Reading) -> tuple[Suspect, ...]:
    """All such lines; an instruction over two lines is found as well."""
    found = [Suspect(page=page.number, text=page.lines[index].text) for page in reading.pages for index in _of(page)]
    for section in reading.sections:
        found += [Suspect(page=None, text=line) for line in section.text.splitlines() if _speaks(line)]
    return tuple(found)


def without_suspects(reading: Reading) -> Reading:
    """The document as if such lines were not in it: for looking up where a value stands."""
    pages = []
    for page in reading.pages:
        left_out = set(_of(page))
        kept = tuple(line for index, line in enumerate(page.lines) if index not in left_out)
        pages.append(replace(page, lines=kept) if left_out else page)
    return replace(reading, pages=tuple(pages))


def told(found: Sequence[Suspect]) -> Check | None:
    """The failed check that says so; None if there is nothing to say."""
    if not found:
        return None
    lines = "; ".join(
        f"{'' if one.page is None else f'page {one.page}: '}{_short(one.text)!r}" for one in found[:_TOLD]
    )
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return Check(
        name=CHECK,
        passed=False,
        message=f"The document seems to give instructions to a machine ({lines}{more}). They change nothing of what is "
        "done with it; look at the values with care.",
    )


def _of(page: Page) -> list[int]:
    """Numbers of the lines: each by itself, and each with the one that follows it."""
    lines = [line.text for line in page.lines]
    found = {index for index, text in enumerate(lines) if _speaks(text)}
    for index, (first, second) in enumerate(pairwise(lines)):
        if not {index, index + 1} & found and _speaks(f"{first} {second}"):
            found |= {index, index + 1}
    return sorted(found)


def _speaks(text: str) -> bool:
    return _PATTERN.search(bare(text)) is not None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
