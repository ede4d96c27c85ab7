"""`docmill templates diff`: which two templates are meant, and what lies between them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from docmill.cli.errors import EXIT_DIFFERENT, WrongUse
from docmill.cli.output import print_json, printable, record
from docmill.cli.template_files import compiled_source, one_source
from docmill.cli.template_names import find_template, is_version, looks_like_file

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.templates import Templates, TemplateVersion
    from docmill.templates.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two that are compared."""

    label: str
    plan: "Plan"
    template: "TemplateVersion | None"
    """None: a file."""


def sides(installation: "Installation", name: str, first: str | None, second: str | None) -> tuple[Side, Side]:
    """The two that the words on the command line mean, the older first."""
    base = _side(installation, name, name)
    if first is None:
        return _predecessor(installation.templates, base), base
    # A version alone is one of the template that was named, or that the named file holds.
    one = _side(installation, first, base.plan.name)
    if second is not None:
        return one, _side(installation, second, base.plan.name)
    return (one, base) if is_version(first) else (base, one)


def tell(old: Side, new: Side, *, json: bool) -> int:
    """Print what changed; the exit code."""
    from docmill.templates.compare import compare

    changes = compare(old.plan, new.plan)
    if json:
        print_json(
            {
                "old": {"label": old.label, "template": old.template and record(old.template)},
                "new": {"label": new.label, "template": new.template and record(new.template)},
                "same": not changes,
                "changes": [record(change, text=str(change)) for change in changes],
            }
        )
    else:
        heading = f"{printable(old.label)} -> {printable(new.label)}"
        print(f"{heading}:" if changes else f"{heading}: no difference")
        for change in changes:
            print(f"  {printable(str(change))}")
    return EXIT_DIFFERENT if changes else 0


def _side(installation: "Installation", word: str, family: str) -> Side:
    if is_version(word) and word != family:
        return _stored(installation.templates, installation.templates.find(family, int(word)))
    if not looks_like_file(word):
        return _stored(installation.templates, find_template(installation.templates, word))
    plan = compiled_source(one_source(word), installation.catalogue).plan
    return Side(label=word, plan=plan, template=None)


def _stored(templates: "Templates", version: "TemplateVersion") -> Side:
    return Side(label=f"{version.name} version {version.version}", plan=templates.plan(version.id), template=version)


def _predecessor(templates: "Templates", base: Side) -> Side:
    """What stands before it: of a stored version the one before, of a file the newest stored version of its name."""
    if base.template is None:
        return _stored(templates, templates.find(base.plan.name))
    if base.template.version == 1:
        raise WrongUse(
            f"{base.template.name} version 1 has no version before it; name a file or another version to compare with."
        )
    return _stored(templates, templates.find(base.template.name, base.template.version - 1))
