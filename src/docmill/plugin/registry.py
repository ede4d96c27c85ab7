"""What the plug-ins of an application have declared, by name."""

from types import ModuleType
from typing import Any, assert_never

from docmill.plugin.declarations import (
    Declaration,
    EntityLoader,
    PluginInvalid,
    Processor,
    Provider,
    StepType,
    marks,
)


class Registry:
    """Everything that was declared for an application. Made once at start; there is no global one."""

    def __init__(self) -> None:
        self.steps: dict[str, StepType] = {}
        self.processors: dict[tuple[str, str], Processor] = {}
        self.loaders: dict[str, EntityLoader] = {}
        self.providers: dict[str, Provider] = {}

    def add_module(self, module: ModuleType) -> None:
        """Take in everything declared in a module."""
        for function in list(vars(module).values()):
            for spec in marks(function):
                self.add(spec)

    def add(self, spec: Declaration) -> None:
        """Take in one declaration; a second one of the same name is refused."""
        match spec:
            case StepType():
                self._put(self.steps, spec.name, spec, f"step type {spec.name!r}")
            case Processor():
                name = f"processor {spec.service}.{spec.method}"
                self._put(self.processors, (spec.service, spec.method), spec, name)
            case EntityLoader():
                self._put(self.loaders, spec.entity_type, spec, f"loader of {spec.entity_type!r}")
            case Provider():
                self._put(self.providers, spec.name, spec, f"model provider {spec.name!r}")
            case _:
                assert_never(spec)

    @staticmethod
    def _put(table: dict[Any, Any], key: object, spec: Any, what: str) -> None:
        known = table.setdefault(key, spec)
        if known is not spec and known.function is not spec.function:
            raise PluginInvalid(
                f"The {what} is declared twice, in {known.function.__module__} and {spec.function.__module__}."
            )
