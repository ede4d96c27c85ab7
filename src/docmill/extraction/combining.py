"""A model, cross-checked by the local reader: what both read is believed, where they differ is doubt. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.extraction.suspicion import CHECK as SUSPECTED
from docmill.extraction.values.texts import loose

AGREES = "agrees"
"""The signal: 1 where both readers say the same, -1 where they differ or the model has nothing, else absent."""
AGREEMENT = "readers_agree"
"""The check of the same."""
_MOST = 0.99
_DOUBT = 0.5
"""What is left of the confidence in a value that the other reader contradicts."""
_DENIED = 0.6
"""… and in one that the other reader did not find."""
_ALTERNATIVES = 5
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
"""Not what begins with a zero: that is a code."""

Row = Mapping[str, FieldValue]


def combine(model: Extraction, local: Extraction) -> Extraction:
    """One extraction of both; checks and confidence are to be made anew with the calibration at hand.

    What the XML of an e-invoice says is exact, and stays as it is.
    """
    if local.reader is Reader.EINVOICE:
        return local
    # A document that tries to talk to machines gets its values from the reader that cannot be talked to.
    wary = any(check.name == SUSPECTED and not check.passed for check in model.checks)
    fields = {}
    for name in dict.fromkeys((*model.fields, *local.fields)):
        fields[name] = _judged(model.fields.get(name), local.fields.get(name), wary=wary)
    rows = {}
    notes: list[str] = [*model.notes, *(note for note in local.notes if note not in model.notes)]
    for name in dict.fromkeys((*model.rows, *local.rows)):
        ours, theirs = model.rows.get(name, ()), local.rows.get(name, ())
        rows[name] = _rows(ours, theirs, wary=wary)
        if ours and theirs and len(ours) != len(theirs):
            notes.append(f"{name}: the model read {len(ours)} rows, the local reader {len(theirs)}.")
    same_type = model.document_type == local.document_type
    named = {check.name for check in model.checks}
    return replace(
        model,
        reader=Reader.COMBINED,
        document_type=model.document_type if same_type or not wary else local.document_type,
        type_confidence=_both(model.type_confidence, local.type_confidence) if same_type else _DOUBT,
        fields=fields,
        rows=rows,
        checks=(*model.checks, *(check for check in local.checks if check.name not in named)),
        confidence=min((value.confidence for value in fields.values()), default=0.0),
        notes=tuple(notes),
        cut=local.cut,
    )


def _judged(model: FieldValue | None, local: FieldValue | None, *, wary: bool) -> FieldValue:
    if model is None or local is None:
        found = model or local
        assert found is not None
        # The model looked at everything, so what it does not name is doubtful; the local reader finds less.
        denied = model is None
        signals = {**_signals(model, local), **({AGREES: -1.0} if denied else {})}
        return replace(
            found,
            reader=Reader.COMBINED,
            confidence=found.confidence * (_DENIED if denied else 1.0),
            signals=signals,
        )
    if same(model.value, local.value):
        return _agreed(model, local)
    chosen, other = (local, model) if _prefers_local(model, local, wary=wary) else (model, local)
    others = (other.value, *chosen.alternatives, *other.alternatives)
    return replace(
        chosen,
        reader=Reader.COMBINED,
        confidence=min(chosen.confidence, 1 - other.confidence * _DOUBT) * _DOUBT,
        failed=tuple(dict.fromkeys((*chosen.failed, AGREEMENT))),
        signals={**_signals(model, local), AGREES: -1.0},
        alternatives=_distinct(others, chosen.value),
    )


def _agreed(model: FieldValue, local: FieldValue) -> FieldValue:
    return replace(
        model,
        reader=Reader.COMBINED,
        raw=local.raw or model.raw,
        confidence=_both(model.confidence, local.confidence),
        evidence=local.evidence or model.evidence,
        passed=tuple(dict.fromkeys((*model.passed, *local.passed, AGREEMENT))),
        failed=tuple(name for name in model.failed if name not in local.passed or not local.evidence),
        signals={**_signals(model, local), AGREES: 1.0},
        alternatives=_distinct((*model.alternatives, *local.alternatives), model.value),
    )


def same(one: str, other: str) -> bool:
    """Whether two canonical values mean the same: numbers by worth, of texts only letters and digits count."""
    if one == other:
        return True
    if _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other):
        return Decimal(one) == Decimal(other)
    return bool(loose(one)) and loose(one) == loose(other)


def _prefers_local(model: FieldValue, local: FieldValue, *, wary: bool) -> bool:
    """The model sees more and is right more often, as long as the page bears it out."""
    if wary and local.grounded:
        return True
    return local.grounded and not model.grounded


def _rows(model: Sequence[Row], local: Sequence[Row], *, wary: bool) -> list[Row]:
    """Row by row where both found as many; else those of the model, or all that there is."""
    if len(model) != len(local):
        chosen = local if (wary and local) or not model else model
        return [{name: replace(cell, reader=Reader.COMBINED) for name, cell in row.items()} for row in chosen]
    return [
        {name: _judged(ours.get(name), theirs.get(name), wary=wary) for name in dict.fromkeys((*ours, *theirs))}
        for ours, theirs in zip(model, local, strict=True)
    ]


def _signals(model: FieldValue | None, local: FieldValue | None) -> dict[str, float]:
    """Both readers' own; those of the local one keep their names, which its calibration knows."""
    return {**(local.signals if local else {}), **(model.signals if model else {})}


def _both(one: float, other: float) -> float:
    """Two that are wrong independently are seldom wrong together; a little less than that would say."""
    return min(_MOST, 1 - (1 - one) * (1 - other) * 1.5) if max(one, other) > _DOUBT else max(one, other)


def _distinct(values: Sequence[str], chosen: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value != chosen))[:_ALTERNATIVES]
