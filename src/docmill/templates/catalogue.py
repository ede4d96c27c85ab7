"""What a template may refer to: step types, processors and prompts that exist in this installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from docmill.model.statuses import StepKind

FINISH_TYPE = "FinishProcessing"
"""The step type every template ends with; always known, always of kind `system`."""

EXTERNAL_TYPE = "external.call"
"""The step type that sends an execution group to an outside executor, and so needs to be told which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepType:
    """A step type as far as templates need to know it."""

    kind: StepKind
    recoveries: frozenset[str] | None = None
    """Recovery strategies it offers; None: do not check."""
    takes_item: bool = False
    """It works on one item of a list at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Everything a template may name. None in any field means: do not check."""

    step_types: Mapping[str, StepType] | None = field(default_factory=dict)
    processors: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    """Service name -> its methods; compensation methods are methods of the same service."""
    prompts: frozenset[str] | None = None
    """Names and ids of stored prompts."""

    @classmethod
    def permissive(cls) -> "Catalogue":
        """Everything is allowed: for tests and for reading a template without an installation at hand."""
        return cls(step_types=None, processors=None, prompts=None)

    def knows_type(self, name: str) -> bool:
        return self.step_types is None or name == FINISH_TYPE or name in self.step_types

    def kind_of(self, name: str) -> StepKind:
        """The kind a step of this type has unless the template says otherwise; `rule` if nobody knows."""
        if name == FINISH_TYPE:
            return StepKind.SYSTEM
        known = (self.step_types or {}).get(name)
        return known.kind if known else StepKind.RULE

    def recoveries_of(self, name: str) -> frozenset[str] | None:
        known = (self.step_types or {}).get(name)
        return known.recoveries if known else None

    def takes_item(self, name: str) -> bool:
        """Whether a step of this type makes sense only for the items of a list."""
        known = (self.step_types or {}).get(name)
        return known is not None and known.takes_item
