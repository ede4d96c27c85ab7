"""`docmill templates`: check, draw, store, list, compare and write out process templates."""

import sys
from collections import Counter
from typing import Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import acting_for
from docmill.cli.errors import EXIT_WRONG_USE, WrongUse, report
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json, print_table, record, when
from docmill.cli.template_changes import sides, tell
from docmill.cli.template_files import (
    FILES_HELP,
    Files,
    Invalid,
    compiled_source,
    compiled_sources,
    fault_lines,
    installed_catalogue,
    one_source,
    shipped_sources,
    sources_of,
)
from docmill.cli.template_names import find_template, looks_like_file

app = App(name="templates", help="Check, show, store, compare and export process templates.")

STORED_HELP = "A stored template: NAME for its newest version, or NAME@VERSION."


@app.command(usage="docmill templates validate [OPTIONS] FILE...")
def validate(files: Files, /, *, json: Json = False) -> int:
    """Check template files and list every fault.

    Faults are printed as FILE:LINE:COLUMN: message. Step types, services and processors are checked against the
    plug-ins installed here; no database is needed.
    """
    from docmill.templates.faults import TemplateInvalid

    catalogue = installed_catalogue()
    results: list[dict[str, object]] = []
    faults = 0
    for source in sources_of(files):
        file = source.label
        try:
            plan = compiled_source(source, catalogue).plan
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
    report(Invalid(summary), as_json=json)
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
        compiled = compiled_sources([one_source(template)], installed_catalogue(), verb="drawn", json=json)
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


@app.command(name="import", usage="docmill templates import [OPTIONS] (FILE... | --shipped NAME)")
def import_templates(
    files: Annotated[tuple[str, ...], Parameter(name="FILE", help=FILES_HELP, show_default=False)] = (),
    /,
    *,
    shipped: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="NAME",
            negative="",
            consume_multiple=False,
            help="A template that comes with Docmill; may be given several times.",
        ),
    ] = (),
    json: Json = False,
) -> int:
    """Store templates, all or none.

    A changed one becomes a new version, an unchanged one is left as it is; running jobs keep theirs. All are checked
    first: if one has a fault, none is stored.
    """

    if not files and not shipped:
        raise WrongUse("Name the template files to store, or --shipped NAME. See `docmill templates import --help`.")
    with acting_for() as (installation, acting):
        sources = sources_of(files) + shipped_sources(shipped)
        compiled = compiled_sources(sources, installation.catalogue, verb="stored", json=json)
        if compiled is None:
            return EXIT_WRONG_USE
        name, times = Counter(template.plan.name for template in compiled).most_common(1)[0]
        if times > 1:
            raise WrongUse(
                f"{times} of these files hold the template {name!r}; none was stored. Name only one of them."
            )
        added = installation.templates.by(acting).add_all(compiled)
    if json:
        print_json({"templates": [record(entry.template, new=entry.new) for entry in added]})
        return 0
    for entry in added:
        news = "stored" if entry.new else "unchanged"
        print(f"{entry.template.name} version {entry.template.version} {news}")
    return 0


@app.command
def export(
    template: Annotated[str, Parameter(name="NAME", help=STORED_HELP)],
    /,
    *,
    out: Annotated[
        str | None, Parameter(metavar="FILE", help="Write to this file instead of stdout.", show_default=False)
    ] = None,
    json: Json = False,
) -> int:
    """Write a stored template as YAML.

    Importing the file gives the same template again. Defaults are left out; comments of the file it came from are
    not kept.
    """
    from docmill.cli.opening import opened
    from docmill.templates.export import export_template

    with opened() as installation:
        version = find_template(installation.templates, template)
        text = export_template(installation.templates.plan(version.id), catalogue=installation.catalogue)
    if out is not None:
        with open(out, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    if json:
        print_json({"template": record(version), "text": text})
    elif out is None:
        sys.stdout.write(text)
    return 0


@app.command(usage="docmill templates diff [OPTIONS] NAME [A] [B]")
def diff(
    template: Annotated[str, Parameter(name="NAME", help=f"{STORED_HELP} Or a file.")],
    first: Annotated[str | None, Parameter(name="A", help="A version or a file.", show_default=False)] = None,
    second: Annotated[str | None, Parameter(name="B", help="A version or a file.", show_default=False)] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Say what changed between two templates.

    NAME alone: between the version before and this one; a file alone: between what is stored and the file. NAME A:
    from version A to NAME, or from NAME to the file A. NAME A B: from A to B. Exit code 0 if they are the same, 1 if
    they differ.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        old, new = sides(installation, template, first, second)
    return tell(old, new, json=json)


@app.command(name="list")
def list_templates(*, json: Json = False) -> int:
    """List the stored templates, each with its newest version and its unfinished jobs."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.templates.list()
    if json:
        print_json(
            {
                "templates": [
                    record(each.template, versions=each.versions, steps=each.steps, active_jobs=each.active_jobs)
                    for each in found
                ]
            }
        )
    elif found:
        rows = [
            (
                each.template.name,
                str(each.template.version),
                str(each.steps),
                str(each.active_jobs),
                each.template.processable_type,
                each.template.task_type,
                when(each.template.created_at),
            )
            for each in found
        ]
        heads = ("NAME", "VERSION", "STEPS", "ACTIVE", "PROCESSES", "TASK", "STORED")
        print_table(heads, rows, give_way=("NAME", "TASK", "PROCESSES"))
    else:
        print("No templates yet. Store one with `docmill templates import FILE`.", file=sys.stderr)
    return 0


@app.command
def versions(
    template: Annotated[str, Parameter(name="NAME", help="A stored template.")], /, *, json: Json = False
) -> int:
    """List the versions of a stored template, the newest first."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.templates.versions(template)
    if json:
        rows = [record(each.template, steps=each.steps, active_jobs=each.active_jobs) for each in found]
        print_json({"versions": rows})
        return 0
    print_table(
        ("VERSION", "STEPS", "ACTIVE", "STORED", "DIGEST"),
        [
            (
                str(each.template.version),
                str(each.steps),
                str(each.active_jobs),
                when(each.template.created_at),
                each.template.digest[:12],
            )
            for each in found
        ],
    )
    return 0


@app.command
def uses(
    *,
    step_type: Annotated[
        str | None, Parameter(name="--type", metavar="TYPE", help="A step type.", show_default=False)
    ] = None,
    prompt: Annotated[
        str | None,
        Parameter(metavar="PROMPT", help="Name or id of a prompt, as templates write it.", show_default=False),
    ] = None,
    processor: Annotated[
        str | None, Parameter(metavar="METHOD", help="A processor: METHOD or SERVICE.METHOD.", show_default=False)
    ] = None,
    old: Annotated[bool, Parameter(negative="", help="Also look at versions that new jobs no longer take.")] = False,
    json: Json = False,
) -> int:
    """List the steps of stored templates that use a step type, a prompt or a processor."""
    from docmill.cli.opening import opened

    if step_type is prompt is processor is None:
        raise WrongUse("Say what is used: --type, --prompt or --processor.")
    with opened() as installation:
        asked = installation.templates.uses(step_type=step_type, prompt=prompt, processor=processor)
    found = [use for use in asked if use.newest or old]
    if json:
        print_json({"uses": [record(use) for use in found]})
    elif found:
        rows = [(use.name, str(use.version), use.step_key) for use in found]
        print_table(("NAME", "VERSION", "STEP"), rows, give_way=("NAME", "STEP"))
    else:
        print("Nothing uses it.", file=sys.stderr)
    return 0


@app.command(usage="docmill templates shipped [OPTIONS] [NAME]")
def shipped(
    name: Annotated[str | None, Parameter(name="NAME", help="Print this one as YAML.", show_default=False)] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """List the templates that come with Docmill, and what each needs that is not installed here.

    None is stored by itself: `docmill templates import --shipped NAME` does it.
    """
    from docmill.cli.opening import opened
    from docmill.templates.catalogue import Catalogue
    from docmill.templates.shipped import missing, shipped_names

    with opened() as installation:
        catalogue = installation.catalogue
    sources = shipped_sources([name] if name else shipped_names())
    plans = [compiled_source(source, Catalogue.permissive()).plan for source in sources]
    if json:
        facts = [
            {
                **{key: getattr(plan, key) for key in ("name", "description", "processable_type", "task_type")},
                "steps": len(plan.steps),
                "missing": missing(plan, catalogue),
                **({"text": source.text} if name else {}),
            }
            for source, plan in zip(sources, plans, strict=True)
        ]
        print_json(facts[0] if name else {"templates": facts})
    elif name:
        sys.stdout.write(sources[0].text)
    else:
        rows = [
            (plan.name, plan.processable_type, str(len(plan.steps)), ", ".join(missing(plan, catalogue)) or "ready")
            for plan in plans
        ]
        print_table(("NAME", "PROCESSES", "STEPS", "MISSING"), rows, give_way=("MISSING",))
    return 0
