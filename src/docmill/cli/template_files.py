"""Template files as the commands take them: named, read, compiled together, their faults told."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.errors import WrongUse, report
from docmill.cli.output import counted, printable, record
from docmill.cli.sources import read_text
from docmill.cli.template_names import SUFFIXES

if TYPE_CHECKING:
    from docmill.templates.catalogue import Catalogue
    from docmill.templates.compile import CompiledTemplate
    from docmill.templates.faults import TemplateInvalid

FILES_HELP = "Template files, or folders of them; - reads stdin."
Files = Annotated[tuple[str, ...], Parameter(name="FILE", required=True, help=FILES_HELP)]


class Invalid(WrongUse):
    """Some of the files have faults; each was listed."""

    code = "template_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The text of a template and what its faults are told under."""

    label: str
    text: str


def sources_of(names: Iterable[str]) -> list[Source]:
    """The files, and those in the folders, read."""
    return [Source(label=file, text=read_text(file)) for name in names for file in _expanded(name)]


def one_source(file: str) -> Source:
    """One file, read."""
    if Path(file).is_dir():
        raise WrongUse(f"{printable(file)} is a folder; name one template file.")
    return Source(label=file, text=read_text(file))


def shipped_sources(names: Iterable[str]) -> list[Source]:
    """Templates that come with Docmill."""
    from docmill.templates.shipped import shipped_text

    return [Source(label=f"shipped {name}", text=shipped_text(name)) for name in names]


def compiled_sources(
    sources: Sequence[Source], catalogue: "Catalogue", *, verb: str, json: bool
) -> "list[CompiledTemplate] | None":
    """All of them compiled; None if one has faults, which have been told on stderr."""
    from docmill.templates.faults import TemplateInvalid

    compiled, refused = [], []
    for source in sources:
        try:
            compiled.append(compiled_source(source, catalogue))
        except TemplateInvalid as error:
            refused.append(error)
    if not refused:
        return compiled
    count = sum(len(each.faults) for each in refused)
    summary = f"{counted(count, 'fault')} in {len(refused)} of {counted(len(sources), 'file')}; none was {verb}."
    if json:
        faults = [record(fault, file=each.source) for each in refused for fault in each.faults]
        report(Invalid(summary, faults=faults), as_json=True)
    else:
        for each in refused:
            print("\n".join(fault_lines(each)), file=sys.stderr)
        report(Invalid(summary), as_json=False)
    return None


def compiled_source(source: Source, catalogue: "Catalogue") -> "CompiledTemplate":
    """One of them compiled; TemplateInvalid if it has faults."""
    from docmill.templates.compile import compile_template

    return compile_template(source.text, catalogue=catalogue, source=source.label)


def installed_catalogue() -> "Catalogue":
    """What a template may name here; needs the plug-ins, no database."""
    from docmill.bootstrap import catalogue_of, load_registry
    from docmill.cli.opening import read_settings

    return catalogue_of(load_registry(read_settings().plugins))


def fault_lines(error: "TemplateInvalid") -> list[str]:
    """Every fault as editors and terminals understand it: FILE:LINE:COLUMN: message."""
    return [
        f"{error.source}:{fault.line}:{fault.column}: {_place(fault.path)}{printable(fault.message)} [{fault.code}]"
        for fault in error.faults
    ]


def _place(path: str) -> str:
    return f"{printable(path)}: " if path else ""


def _expanded(name: str) -> Iterator[str]:
    """The file itself, or the template files in a folder: not those below it, nor the settings that may lie there."""
    from docmill.settings import config_file

    folder = Path(name)
    if not folder.is_dir():
        yield name
        return
    settings = config_file().resolve()
    found = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix in SUFFIXES and path.is_file() and path.name[0] != "." and path.resolve() != settings
    ]
    if not found:
        raise WrongUse(f"There is no template file (*.yaml, *.yml) in the folder {printable(name)}.")
    yield from map(str, found)
