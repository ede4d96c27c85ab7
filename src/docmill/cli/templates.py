"""`docmill templates`: check, draw, store and list process templates."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.errors import EXIT_WRONG_USE, WrongUse, report
from docmill.cli.output import Json, counted, print_json, print_table, printable, record, when
from docmill.cli.sources import read_text, split_version

if TYPE_CHECKING:
    from docmill.services.templates import Templates, TemplateVersion
    from docmill.templates.catalogue import Catalogue
    from docmill.templates.compile import CompiledTemplate
    from docmill.templates.faults import TemplateInvalid

app = App(name="templates", help="Check, show, store and list process templates.")

Files = Annotated[tuple[str, ...], Parameter(name="FILE", required=True, help="Template files; - reads stdin.")]


@app.command(usage="docmill templates validate [OPTIONS] FILE...")
def validate(files: Files, /, *, json: Json = False) -> int:
    """Check template files and list every fault.

    Faults are printed as FILE:LINE:COLUMN: message. Step types, services and processors are checked against the
    plug-ins installed here; no database is needed.
    """
    from docmill.templates.faults import TemplateInvalid

    catalogue = _catalogue()
    results: list[dict[str, object]] = []
    faults = 0
    for file in files:
        try:
            plan = _compile(file, catalogue).plan
        except TemplateInvalid as error:
            faults += len(error.faults)
            results.append({"file": file, "valid": False, "faults": [record(fault) for fault in error.faults]})
            if not json:
                print("\n".join(fault_lines(error)))
        else:
            results.append({"file": file, "valid": True, "name": plan.name, "steps": len(plan.steps), "faults": []})
            if not json:
                print(f"{file}: valid, template {plan.name!r} with {counted(len(plan.steps), 'step')}")
    if json:
        print_json({"templates": results})
    if not faults:
        return 0
    bad = sum(not result["valid"] for result in results)
    summary = f"{counted(faults, 'fault')} in {bad} of {counted(len(results), 'file')}."
    report(_Invalid(summary), as_json=json)
    return EXIT_WRONG_USE


@app.command
def show(
    template: Annotated[
        str, Parameter(name="FILE_OR_NAME", help="A file, or a stored template: NAME or NAME@VERSION.")
    ],
    /,
    *,
    json: Json = False,
) -> int:
    """Draw a template, its groups from top to bottom.

    What looks like a file (a slash, .yaml, .yml or -) or is one is read as a file; all else names a stored template.
    """
    from docmill.templates.describe import draw
    from docmill.templates.document import plan_from_document

    stored: dict[str, object] | None = None
    if looks_like_file(template):
        compiled = compiled_files([template], _catalogue(), verb="drawn", json=json)
        if compiled is None:
            return EXIT_WRONG_USE
        document = compiled[0].document
    else:
        from docmill.cli.opening import opened

        with opened() as installation:
            version = find_template(installation.templates, template)
            document = installation.templates.document(version.id)
        stored = record(version)
    if json:
        print_json({"template": stored, "definition": document})
    else:
        if stored:
            print(f"version {stored['version']}, stored {when(version.created_at)}")
        sys.stdout.write(draw(plan_from_document(document)))
    return 0


@app.command(usage="docmill templates add [OPTIONS] FILE...")
def add(files: Files, /, *, json: Json = False) -> int:
    """Store templates.

    A changed one becomes a new version, an unchanged one is left as it is. All files are checked first: if one has a
    fault, none is stored.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        compiled = compiled_files(files, installation.catalogue, verb="stored", json=json)
        if compiled is None:
            return EXIT_WRONG_USE
        added = [installation.templates.add(template) for template in compiled]
    if json:
        print_json({"templates": [record(entry.template, new=entry.new) for entry in added]})
        return 0
    for entry in added:
        news = "stored" if entry.new else "unchanged"
        print(f"{entry.template.name} version {entry.template.version} {news}")
    return 0


@app.command(name="list")
def list_templates(*, json: Json = False) -> int:
    """List the stored templates, each with its newest version."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.templates.list()
    if json:
        print_json({"templates": [record(template) for template in found]})
    elif found:
        rows = [(t.name, str(t.version), t.processable_type, t.task_type, when(t.created_at)) for t in found]
        print_table(("NAME", "VERSION", "PROCESSES", "TASK", "STORED"), rows, give_way=("NAME", "TASK"))
    else:
        print("No templates yet. Store one with `docmill templates add FILE`.", file=sys.stderr)
    return 0


class _Invalid(WrongUse):
    """Some of the files have faults; each was listed."""

    code = "template_invalid"


def find_template(templates: "Templates", name: str) -> "TemplateVersion":
    """The template that `NAME` or `NAME@VERSION` means."""
    return templates.find(*split_version(name))


def looks_like_file(name: str) -> bool:
    """Whether the person means a file rather than a stored template."""
    return "/" in name or name.endswith((".yaml", ".yml")) or Path(name).is_file()


def fault_lines(error: "TemplateInvalid") -> list[str]:
    """Every fault as editors and terminals understand it: FILE:LINE:COLUMN: message."""
    return [
        f"{error.source}:{fault.line}:{fault.column}: {_place(fault.path)}{printable(fault.message)} [{fault.code}]"
        for fault in error.faults
    ]


def _place(path: str) -> str:
    return f"{printable(path)}: " if path else ""


def compiled_files(
    files: Sequence[str], catalogue: "Catalogue", *, verb: str, json: bool
) -> "list[CompiledTemplate] | None":
    """All of them compiled; None if one has faults, which have been told on stderr."""
    from docmill.templates.faults import TemplateInvalid

    compiled, refused = [], []
    for file in files:
        try:
            compiled.append(_compile(file, catalogue))
        except TemplateInvalid as error:
            refused.append(error)
    if not refused:
        return compiled
    count = sum(len(each.faults) for each in refused)
    summary = f"{counted(count, 'fault')} in {len(refused)} of {counted(len(files), 'file')}; none was {verb}."
    if json:
        faults = [record(fault, file=each.source) for each in refused for fault in each.faults]
        report(_Invalid(summary, faults=faults), as_json=True)
    else:
        for each in refused:
            print("\n".join(fault_lines(each)), file=sys.stderr)
        report(_Invalid(summary), as_json=False)
    return None


def _compile(file: str, catalogue: "Catalogue") -> "CompiledTemplate":
    from docmill.templates.compile import compile_template

    return compile_template(read_text(file), catalogue=catalogue, source=file)


def _catalogue() -> "Catalogue":
    from docmill.bootstrap import catalogue_of, load_registry
    from docmill.cli.opening import read_settings

    return catalogue_of(load_registry(read_settings().plugins))
