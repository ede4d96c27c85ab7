"""What is wrong with a template: every fault at once, each with its place and its remedy."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Literal

from docmill.model.errors import DocmillError

FaultCode = Literal[
    "yaml_syntax",
    "empty",
    "too_large",
    "too_deep",
    "alias_expansion",
    "unknown_alias",
    "yaml_tag",
    "many_documents",
    "duplicate_key",
    "bad_key",
    "bad_merge",
    "bad_text",
    "missing_key",
    "unknown_key",
    "wrong_type",
    "bad_choice",
    "bad_name",
    "bad_number",
    "bad_duration",
    "empty_text",
    "text_too_long",
    "bad_expression",
    "bad_schema",
    "no_steps",
    "too_many_steps",
    "duplicate_step_key",
    "unknown_step_type",
    "unknown_service",
    "unknown_processor",
    "unknown_prompt",
    "unknown_recovery",
    "service_missing",
    "optional_fail_job",
    "processor_default_not_last",
    "for_each_missing",
    "not_external",
    "unknown_dependency",
    "self_dependency",
    "duplicate_dependency",
    "dependency_on_finish",
    "dependency_later_group",
    "cycle",
    "too_many_dependencies",
    "unknown_result",
    "result_not_ready",
    "finish_missing",
    "finish_duplicate",
    "finish_not_last",
    "finish_kind",
    "finish_optional",
    "finish_condition",
    "finish_on_failure",
    "finish_for_each",
]
"""Every code a fault can have; stable, documented in docs/reference/templates.md."""
SHOWN = 50
"""Faults spelled out in the message of `TemplateInvalid`; the rest are counted."""
KEPT = 1000
"""Faults kept at all: a megabyte of nonsense must not become a hundred megabytes of complaints."""
SUGGESTIONS = 25
"""Comparing a misspelt word with every known one is the dearest thing a compile does, so it is rationed."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in the source, both numbers from 1, as editors count."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing to mend: where it is, a stable code, and a sentence that says what to do."""

    line: int
    column: int
    path: str
    """Where in the document, such as `steps[2].timeout`; empty for the whole file."""
    code: FaultCode
    message: str

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"line {self.line}, column {self.column}: {place}{self.message} [{self.code}]"


class TemplateInvalid(DocmillError):
    """The template was refused; `faults` lists everything to mend, in the order of the file."""

    code = "template_invalid"

    def __init__(self, source: str, faults: Iterable[Fault], *, unlisted: int = 0) -> None:
        self.source = source
        self.faults: tuple[Fault, ...] = tuple(faults)
        total = len(self.faults) + unlisted
        lines = [f"{source}: {total} fault{'' if total == 1 else 's'} in this template; nothing was stored."]
        lines += [f"  {fault}" for fault in self.faults[:SHOWN]]
        if total > SHOWN:
            lines.append(f"  … and {total - min(SHOWN, len(self.faults))} more; mend these first.")
        super().__init__("\n".join(lines), field="text", source=source, faults=[asdict(fault) for fault in self.faults])


class Faults:
    """Collects faults while a template (or another text of ours) is read, so that one run shows them all."""

    def __init__(self, what: str = "template") -> None:
        self.what = what
        """What is being read, for sentences about the whole of it."""
        self._kept: list[Fault] = []
        self._unlisted = 0
        self._suggestions = SUGGESTIONS

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, mark: Mark, path: str, code: FaultCode, message: str) -> None:
        """Note a fault and go on."""
        if len(self._kept) < KEPT:
            self._kept.append(Fault(line=mark.line, column=mark.column, path=path, code=code, message=message))
        else:
            self._unlisted += 1

    def suggest(self, word: str, known: Iterable[str]) -> str:
        """` Did you mean 'x'?` or nothing."""
        if self._suggestions <= 0 or len(word) > 100:
            return ""
        self._suggestions -= 1
        close = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
        return f" Did you mean '{close[0]}'?" if close else ""

    def listed(self) -> tuple[Fault, ...]:
        """Those that were kept, in the order of the file."""
        return tuple(sorted(self._kept, key=lambda fault: (fault.line, fault.column, fault.path, fault.code)))

    def raise_if_any(self, source: str) -> None:
        """Refuse the template if anything was found."""
        if self._kept:
            raise TemplateInvalid(source, self.listed(), unlisted=self._unlisted)
