"""What an installation can do: steps, processors, loaders and providers, built in and brought by plug-ins."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.bootstrap.clock import this_moment
from docmill.bootstrap.meanings import document_work, model_accesses, no_blobs
from docmill.model.errors import DocmillError
from docmill.settings import ExecutorSection, ProviderSection, Settings

if TYPE_CHECKING:
    from docmill.documents.handing_out import Originals
    from docmill.plugin import Registry
    from docmill.steps.document_work import DocumentWork
    from docmill.templates.catalogue import Catalogue

ENTRY_POINTS = "docmill.plugins"
BUILT_IN = (
    "docmill.steps.check",
    "docmill.steps.finish",
    "docmill.steps.generate",
    "docmill.steps.human",
    "docmill.steps.undo",
    "docmill.ai.local",
)
"""Modules that declare what every installation has."""


def plugin_modules(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Where steps, processors and loaders are declared: built in, by entry point, and in these modules."""
    from importlib.metadata import entry_points

    names = [*BUILT_IN, *(point.module for point in entry_points(group=ENTRY_POINTS)), *modules]
    return tuple(dict.fromkeys(names))


def load_registry(
    modules: tuple[str, ...],
    executors: Mapping[str, ExecutorSection] | None = None,
    providers: Mapping[str, ProviderSection] | None = None,
    work: "DocumentWork | None" = None,
    originals: "Originals | None" = None,
) -> "Registry":
    """All declared steps, processors and loaders; external steps go to these executors, models to these providers.

    Executors are given links to these originals.
    """
    from importlib import import_module

    from docmill.ai.providers.asking import provider_of
    from docmill.plugin import EntityLoader, PluginInvalid, Registry
    from docmill.steps.documents import document_declarations
    from docmill.steps.external import Executor, external_call

    registry = Registry()
    for name in plugin_modules(modules):
        try:
            module = import_module(name)
        except DocmillError:
            raise
        except (
            Exception
        ) as error:  # A plug-in is somebody else's code: whatever it raises, the person must hear its name.
            raise PluginInvalid(
                f"The plug-in module {name!r} cannot be imported: {type(error).__name__}: {error}. "
                "Install it or correct `plugins`.",
                module=name,
            ) from error
        registry.add_module(module)
    known = {
        name: Executor(url=section.url, key=section.key, timeout=section.timeout)
        for name, section in (executors or {}).items()
    }
    registry.add(external_call(known, this_moment, originals))
    for spec in document_declarations(work or document_work(Settings.model_construct(home=Path()), no_blobs)):
        # A plug-in of an earlier release may have documents of its own.
        if not (isinstance(spec, EntityLoader) and spec.entity_type in registry.loaders):
            registry.add(spec)
    for access in model_accesses(providers or {}).values():
        # A plug-in may bring a provider of its own under one of the names.
        if access.name not in registry.providers:
            registry.add(provider_of(access))
    return registry


def catalogue_of(registry: "Registry") -> "Catalogue":
    """What a template may name, given these declarations."""
    from docmill.templates.catalogue import Catalogue, StepType

    processors: dict[str, set[str]] = {}
    for service, method in registry.processors:
        processors.setdefault(service, set()).add(method)
    return Catalogue(
        step_types={
            name: StepType(kind=spec.kind, recoveries=frozenset(spec.recoveries), takes_item="item" in spec.needs)
            for name, spec in registry.steps.items()
        },
        processors={service: frozenset(methods) for service, methods in processors.items()},
    )
