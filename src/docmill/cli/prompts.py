"""`docmill prompts`: store, show, compare and try out what models are asked."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import acting_for
from docmill.cli.errors import EXIT_DIFFERENT, EXIT_WRONG_USE, WrongUse, report
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json, print_table, print_text, printable, record, when
from docmill.cli.sources import STDIN, parse_version, read_text, split_version

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.model.people import Principal
    from docmill.prompts.store import Prompt, PromptVersion
    from docmill.prompts.syntax import PromptInvalid
    from docmill.services.prompts import Prompts

MAX_ENTITY = 64 << 20

_SET_EXAMPLES = """\
Examples:
  docmill prompts set InvoiceTotal invoice-total.txt
  docmill prompts set Greeting --text 'Greet {!entity.name}.'"""
_DIFF_EXAMPLES = """\
Examples:
  docmill prompts diff InvoiceTotal        the last change
  docmill prompts diff InvoiceTotal 1      all that changed since version 1
  docmill prompts diff InvoiceTotal 1 3    from version 1 to version 3"""
_RENDER_EXAMPLES = """\
Examples:
  docmill prompts render InvoiceTotal --entity invoice.json
  docmill prompts render draft.txt --entity invoice.json --entity-type invoice"""
_IMPORT_EXAMPLES = """\
Examples:
  docmill prompts import prompts/*.txt"""
_EXPORT_EXAMPLES = """\
Examples:
  docmill prompts export --to prompts
  docmill prompts export InvoiceTotal@2 --to old"""

app = App(name="prompts", help="Store, show, compare and try out prompts.")

Reference = Annotated[str, Parameter(name="PROMPT", help="NAME, NAME@VERSION or the id of one version.")]
Name = Annotated[str, Parameter(name="NAME", help="Name of the prompt.")]
Shared = Annotated[
    bool, Parameter(negative="", help="The prompts of all organisations instead of your organisation's own.")
]


@app.command(name="list")
def list_prompts(*, shared: Shared = False, json: Json = False) -> int:
    """List the prompts, each with its newest version.

    Shared prompts are listed too, unless your organisation has its own of the same name.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        found = _prompts(installation, shared).list()
    if json:
        print_json({"prompts": [_record(prompt) for prompt in found]})
    elif found:
        _table(found)
    else:
        print("No prompts yet. Store one with `docmill prompts set NAME FILE`.", file=sys.stderr)
    return 0


@app.command
def show(prompt: Reference, /, *, shared: Shared = False, json: Json = False) -> int:
    """Print the text of a prompt.

    The text goes to stdout, what there is to say about it to stderr.
    """
    from docmill.cli.opening import opened
    from docmill.prompts.syntax import variables

    with opened() as installation:
        found = _find(_prompts(installation, shared), prompt)
    if json:
        used = [str(variable) for variable in variables(found.text)]
        print_json({"prompt": _record(found) | {"text": found.text, "variables": used}})
        return 0
    about = f"note: {found.name}@{found.version}, {'shared, ' if found.shared else ''}stored {when(found.created_at)}"
    print(f"{about}, id {found.id}", file=sys.stderr)
    print_text(found.text)
    return 0


@app.command(name="set", usage="docmill prompts set [OPTIONS] NAME [FILE]", help_epilogue=_SET_EXAMPLES)
def set_prompt(
    name: Name,
    file: Annotated[str | None, Parameter(name="FILE", help="The text; - reads stdin.")] = None,
    /,
    *,
    text: Annotated[str | None, Parameter(metavar="TEXT", help="The text itself, instead of a file.")] = None,
    description: Annotated[
        str | None, Parameter(metavar="TEXT", help="One line for people; without it the old one stays.")
    ] = None,
    shared: Shared = False,
    json: Json = False,
) -> int:
    """Store a prompt; a changed text becomes a new version.

    Steps that name the prompt use the new version from their next attempt on. A text that is the newest already is left
    as it is.
    """
    from docmill.prompts.syntax import PromptInvalid

    if (file is None) == (text is None):
        raise WrongUse("Give the text of the prompt as FILE (- for stdin) or with --text, one of them.")
    content = text if text is not None else read_text(file or STDIN)
    with acting_for() as (installation, acting):
        try:
            stored = _prompts(installation, shared, acting).put(name, content, description=description)
        except PromptInvalid as error:
            return _refused([(file or "--text", error)], verb="stored", json=json)
    if json:
        print_json({"prompt": _record(stored.prompt) | {"new": stored.new}})
    else:
        print(f"{name} version {stored.prompt.version} {'stored' if stored.new else 'unchanged'}")
    return 0


@app.command
def versions(name: Name, /, *, shared: Shared = False, json: Json = False) -> int:
    """List all versions of a prompt, the newest first."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = _prompts(installation, shared).versions(name)
    if json:
        print_json({"versions": [_record(prompt) for prompt in found]})
    else:
        rows = [(str(p.version), p.description, p.created_by or "", when(p.created_at), p.id) for p in found]
        print_table(("VERSION", "DESCRIPTION", "BY", "STORED", "ID"), rows, give_way=("DESCRIPTION", "BY"))
    return 0


@app.command(usage="docmill prompts diff [OPTIONS] NAME [OLD [NEW]]", help_epilogue=_DIFF_EXAMPLES)
def diff(
    name: Name,
    old: Annotated[str | None, Parameter(name="OLD", help="A version; the one before NEW if left out.")] = None,
    new: Annotated[str | None, Parameter(name="NEW", help="A version; the newest if left out.")] = None,
    /,
    *,
    shared: Shared = False,
    json: Json = False,
) -> int:
    """Show what changed between two versions, as a unified diff.

    Exit code 0 if they have the same text, 1 if they differ.
    """
    from docmill.cli.opening import opened

    before, after = (text if text is None else parse_version(text, "write a number, such as 1") for text in (old, new))
    with opened() as installation:
        change = _prompts(installation, shared).diff(name, before, after)
    if json:
        print_json({"old": _record(change.old), "new": _record(change.new), "diff": change.text})
    elif change.text:
        print_text(change.text)
    else:
        print(f"Versions {change.old.version} and {change.new.version} have the same text.", file=sys.stderr)
    return EXIT_DIFFERENT if change.text else 0


@app.command(help_epilogue=_RENDER_EXAMPLES)
def render(
    prompt: Annotated[
        str, Parameter(name="PROMPT_OR_FILE", help="A stored prompt (NAME, NAME@VERSION, id) or a file.")
    ],
    /,
    *,
    entity: Annotated[str | None, Parameter(metavar="FILE", help="The entity, a JSON object; - reads stdin.")] = None,
    entity_id: Annotated[str, Parameter(metavar="ID", help="What {!entityId} stands for.")] = "",
    entity_type: Annotated[str, Parameter(metavar="TYPE", help="What {!entityType} stands for.")] = "",
    shared: Shared = False,
    json: Json = False,
) -> int:
    """Print what a model would get.

    Variables for which the entity has nothing are listed on stderr. What looks like a file (a slash, .txt, .md or -) or
    is one is read as a file, and needs no database.
    """
    from docmill.prompts.substitution import blanks
    from docmill.prompts.substitution import render as rendered
    from docmill.prompts.syntax import PromptInvalid, check

    prompt_id = None
    data = _entity(entity)
    if _looks_like_file(prompt):
        text = read_text(prompt)
        if faults := check(text):
            return _refused([(prompt, PromptInvalid(prompt, faults))], verb="rendered", json=json)
    else:
        from docmill.cli.opening import opened

        with opened() as installation:
            found = _find(_prompts(installation, shared), prompt)
        text, prompt_id = found.text, found.id
    result = rendered(text, entity=data, entity_id=entity_id, entity_type=entity_type)
    empty = [str(each) for each in blanks(text, entity=data, entity_id=entity_id, entity_type=entity_type)]
    if json:
        print_json({"prompt_id": prompt_id, "text": result, "blanks": empty})
        return 0
    print_text(result)
    if empty:
        print(f"note: nothing to fill in for {', '.join(map(printable, empty))}.", file=sys.stderr)
    return 0


@app.command(name="import", usage="docmill prompts import [OPTIONS] FILE...", help_epilogue=_IMPORT_EXAMPLES)
def import_prompts(
    files: Annotated[
        tuple[Path, ...], Parameter(name="FILE", required=True, help="Text files, each named after its prompt.")
    ],
    /,
    *,
    shared: Shared = False,
    json: Json = False,
) -> int:
    """Store prompts from text files.

    The name of a file without .txt or .md is the name of the prompt. All files are checked first: if one has a fault,
    none is stored.
    """
    from docmill.prompts.files import name_of
    from docmill.prompts.store import check_name
    from docmill.prompts.syntax import PromptInvalid, check

    if Path(STDIN) in files:
        raise WrongUse("A prompt from stdin needs a name; use `docmill prompts set NAME -`.")
    texts = {file: read_text(str(file)) for file in files}
    for file in texts:
        check_name(name_of(file))
    if len({name_of(file) for file in texts}) < len(texts):
        raise WrongUse("Two of the files hold the same prompt; import one of them.")
    refused = [(str(file), PromptInvalid(name_of(file), faults)) for file in texts if (faults := check(texts[file]))]
    if refused:
        return _refused(refused, verb="stored", json=json)
    with acting_for() as (installation, acting):
        prompts = _prompts(installation, shared, acting)
        stored = {file: prompts.put(name_of(file), text) for file, text in texts.items()}
    if json:
        print_json({"prompts": [_record(each.prompt) | {"new": each.new} for each in stored.values()]})
        return 0
    for each in stored.values():
        print(f"{each.prompt.name} version {each.prompt.version} {'stored' if each.new else 'unchanged'}")
    return 0


@app.command(name="export", usage="docmill prompts export [OPTIONS] [PROMPT...]", help_epilogue=_EXPORT_EXAMPLES)
def export_prompts(
    prompts: Annotated[tuple[str, ...], Parameter(name="PROMPT", help="Which; all if none is named.")] = (),
    /,
    *,
    to: Annotated[Path, Parameter(metavar="FOLDER", help="Where to; made if it is not there.")] = Path(),
    force: Annotated[bool, Parameter(negative="", help="Overwrite files that hold another text.")] = False,
    shared: Shared = False,
    json: Json = False,
) -> int:
    """Write prompts to text files, NAME.txt each, as `docmill prompts import` reads them."""
    from docmill.cli.opening import opened
    from docmill.prompts.files import file_of

    with opened() as installation:
        store = _prompts(installation, shared)
        wanted = prompts or tuple(prompt.id for prompt in store.list())
        found = {to / file_of(prompt.name): prompt for prompt in (_find(store, each) for each in wanted)}
    if len(found) < len(wanted):
        raise WrongUse("Two of these would be written to the same file; export one of them at a time.")
    for file, prompt in found.items():
        if not force and file.exists() and file.read_bytes() != prompt.text.encode():
            raise WrongUse(f"{printable(str(file))} holds another text; --force overwrites it.")
    to.mkdir(parents=True, exist_ok=True)
    for file, prompt in found.items():
        file.write_bytes(prompt.text.encode())
    if json:
        print_json({"prompts": [_record(prompt) | {"file": str(file)} for file, prompt in found.items()]})
        return 0
    for file, prompt in found.items():
        print(f"{prompt.name} version {prompt.version} written to {printable(str(file))}")
    return 0


def _prompts(installation: "Installation", shared: bool, by: "Principal | None" = None) -> "Prompts":
    prompts = installation.prompts if by is None else installation.prompts.by(by)
    return prompts.shared if shared else prompts


def _find(prompts: "Prompts", reference: str) -> "Prompt":
    """The prompt that `NAME`, `NAME@VERSION` or an id means."""
    return prompts.get(*split_version(reference))


def _entity(file: str | None) -> Mapping[str, object] | None:
    import orjson

    if file is None:
        return None
    try:
        data = orjson.loads(read_text(file, MAX_ENTITY))
    except ValueError as error:
        raise WrongUse(f"--entity {printable(file)} is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise WrongUse(f'--entity {printable(file)} holds no JSON object; write {{"field": …}}.')
    return data


def _looks_like_file(name: str) -> bool:
    return "/" in name or name.endswith((".txt", ".md")) or Path(name).is_file()


def _refused(refused: Sequence[tuple[str, "PromptInvalid"]], *, verb: str, json: bool) -> int:
    """Tell every fault as FILE:LINE:COLUMN: message."""
    faults = [(file, fault) for file, error in refused for fault in error.faults]
    summary = f"{counted(len(faults), 'fault')} in {counted(len(refused), 'prompt')}; none was {verb}."
    if json:
        report(_Invalid(summary, faults=[record(fault, file=file) for file, fault in faults]), as_json=True)
        return EXIT_WRONG_USE
    for file, fault in faults:
        place = f"{printable(file)}:{fault.line}:{fault.column}"
        print(f"{place}: {printable(fault.message)} [{fault.code}]", file=sys.stderr)
    report(_Invalid(summary), as_json=False)
    return EXIT_WRONG_USE


class _Invalid(WrongUse):
    """Some prompts have faults; each was listed."""

    code = "prompt_invalid"


def _record(prompt: "PromptVersion") -> dict[str, object]:
    """What is known about a version, without its text."""
    return {name: value for name, value in record(prompt).items() if name != "text"}


def _table(found: Sequence["PromptVersion"]) -> None:
    rows = [(p.name, str(p.version), "shared" if p.shared else "own", p.description, when(p.created_at)) for p in found]
    print_table(("NAME", "VERSION", "WHOSE", "DESCRIPTION", "STORED"), rows, give_way=("NAME", "DESCRIPTION"))
