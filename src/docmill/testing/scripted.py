"""A model that answers from a script: for tests, demos and trying out templates without a key.

In one process, a script in Python:

    model = Scripted({"gpt-4-turbo": ["cut of", {"total": 12}, ModelUnavailable("down")]})
    registry.add(model.provider())          # answers for scripted:gpt-4-turbo
    model.calls                             # what it was asked

The nth call of a model gets the nth line of its list, and the last line goes on for ever; `*` stands for models that
have no list. Text answers as it is, a mapping as JSON, an Answer as given, an exception is raised. Instead of lists a
function from the call to a line will do.

In worker processes, name this module in `plugins`, a JSON file of such lists in DOCMILL_SCRIPT, and a folder in
DOCMILL_WITNESS. Lines are objects there: `{"text": ...}` or `{"data": ...}` with `finish`, `input_tokens` and
`output_tokens` if need be, or `{"error": code, "retry_after": ...}`. Every call is written to the witness's log and
synced before it is answered; which line is due is counted there, so that all processes follow one script.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from docmill.model import ai_errors
from docmill.model.ai import Answer, FinishReason, ModelCall
from docmill.model.errors import DocmillError, RetryableError
from docmill.plugin import Provider, provider
from docmill.testing.witness import VARIABLE, Witness

SCRIPT = "DOCMILL_SCRIPT"
"""Names the script to the worker processes."""
CALLED = "called"
"""What the witness calls a call."""

Line = str | Mapping[str, object] | Answer | Exception
Script = Mapping[str, Sequence[Line]] | Callable[[ModelCall], Line]

_ERRORS: Mapping[str, type[DocmillError]] = {
    kind.code: kind
    for kind in vars(ai_errors).values()
    if isinstance(kind, type) and issubclass(kind, DocmillError) and kind.__module__ == ai_errors.__name__
}


class Scripted:
    """One script, and what was asked so far."""

    def __init__(self, script: Script, *, witness: Witness | None = None) -> None:
        self._script = script
        self._witness = witness
        self.calls: list[ModelCall] = []

    def provider(self, name: str = "scripted", *, limited: bool = True) -> Provider:
        """To be added to a registry."""
        return Provider(name=name, function=self.ask, limited=limited)

    async def ask(self, call: ModelCall) -> Answer:
        """Note the call, then do as the script says."""
        self.calls.append(call)
        if self._witness is not None:
            self._witness.note(CALLED, call.model, call.prompt, synced=True)
            nth = self._witness.count(CALLED, call.model)
        else:
            nth = sum(1 for earlier in self.calls if earlier.model == call.model)
        return _answer(call, self._line(call, nth))

    def _line(self, call: ModelCall, nth: int) -> Line:
        if callable(self._script):
            return self._script(call)
        lines = self._script.get(call.model) or self._script.get("*")
        if not lines:
            raise ai_errors.ModelUnknown(f"The script has no lines for {call.model!r}; add them, or some for '*'.")
        return lines[min(nth, len(lines)) - 1]


def _answer(call: ModelCall, line: Line) -> Answer:
    if isinstance(line, Exception):
        raise line
    if isinstance(line, Answer):
        return line
    text = line if isinstance(line, str) else json.dumps(line)
    return Answer(text=text, input_tokens=len(call.prompt.split()), output_tokens=len(text.split()))


def line_of(entry: Mapping[str, Any]) -> Line:
    """A line as a JSON file writes it."""
    if "error" in entry:
        kind = _ERRORS[entry["error"]]
        more = {"retry_after": entry.get("retry_after")} if issubclass(kind, RetryableError) else {}
        return kind(entry.get("message", "The script says so."), **more)
    text = entry["text"] if "text" in entry else json.dumps(entry["data"])
    return Answer(
        text=text,
        input_tokens=entry.get("input_tokens", 1),
        output_tokens=entry.get("output_tokens", len(text.split())),
        finish=FinishReason(entry.get("finish", "stop")),
    )


@cache
def _of_environment() -> Scripted:
    path = os.environ.get(SCRIPT)
    script = json.loads(Path(path).read_text()) if path else {"*": [{"text": "as scripted"}]}
    witness = Witness.of_environment() if VARIABLE in os.environ else None
    lines = {model: [line_of(entry) for entry in entries] for model, entries in script.items()}
    return Scripted(lines, witness=witness)


@provider("scripted")
async def scripted(call: ModelCall) -> Answer:
    """Answers for `scripted:...` in worker processes, as their environment says."""
    return await _of_environment().ask(call)
