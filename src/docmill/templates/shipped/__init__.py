"""Templates that come with Docmill, one YAML file each: offers, stored only when somebody imports them.

A file is named after its template. What a template names (step types, processors, prompts) may come from parts that an
installation lacks; `missing` tells.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files

from docmill.model.errors import NotFound
from docmill.templates.catalogue import Catalogue
from docmill.templates.plan import Plan

_SUFFIX = ".yaml"


def shipped_names() -> tuple[str, ...]:
    """The templates on offer, by name."""
    return tuple(sorted(entry.name[: -len(_SUFFIX)] for entry in files(__name__).iterdir() if _is_template(entry.name)))


def shipped_text(name: str) -> str:
    """The YAML of one; NotFound if there is none of this name."""
    names = shipped_names()
    if name not in names:
        close = get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise NotFound(
            f"Docmill ships no template {name!r}.{hint} `docmill templates shipped` lists those it does.", name=name
        )
    return files(__name__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def missing(plan: Plan, catalogue: Catalogue) -> tuple[str, ...]:
    """What the plan names and this installation does not have: `step type ai.generate`, `service transaction`."""
    return tuple(dict.fromkeys(_missing(plan, catalogue)))


def _missing(plan: Plan, catalogue: Catalogue) -> Iterator[str]:
    for step in plan.steps:
        if not catalogue.knows_type(step.step_type):
            yield f"step type {step.step_type}"
    services = catalogue.processors
    if plan.service_name is not None and services is not None:
        if plan.service_name not in services:
            yield f"service {plan.service_name}"
        else:
            methods = {choice.method for step in plan.steps for choice in step.processor}
            yield from (
                f"processor {plan.service_name}.{method}" for method in sorted(methods - services[plan.service_name])
            )
    if catalogue.prompts is not None:
        wanted = {step.prompt for step in plan.steps if step.prompt is not None}
        yield from (f"prompt {prompt}" for prompt in sorted(wanted - catalogue.prompts))


def _is_template(name: str) -> bool:
    return name.endswith(_SUFFIX)
