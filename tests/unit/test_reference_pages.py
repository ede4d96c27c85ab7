"""The reference pages tell the truth: compared with the code, table by table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from cyclopts import App
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from docmill.cli.program import build
from docmill.engine.decide import SUSPECT_CRASHES
from docmill.engine.lane_a import MAX_BYTES, MAX_STEPS
from docmill.engine.lane_b import MAX_STEPS as MAX_APPLIES
from docmill.model.callbacks import CallbackOutcome
from docmill.model.review import REVIEW_TRANSITIONS
from docmill.model.statuses import JOB_TRANSITIONS, STEP_TRANSITIONS, FailureAction, JobStatus
from docmill.services.batches import DEFAULT_LIMIT, MOST_JOBS
from docmill.services.callback_payload import DEEPEST, MOST_BYTES
from docmill.settings import Settings
from docmill.steps.external import MOST_SENT
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template

ROOT = Path(__file__).parents[2]
ENGINE = (ROOT / "docs/reference/engine.md").read_text()
BATCHES = (ROOT / "docs/reference/batches.md").read_text()
README = (ROOT / "README.md").read_text()
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")])
EXTERNAL = (ROOT / "docs/reference/external-steps.md").read_text()
DECISIONS = ROOT / "docs/adr"
REVIEW = (ROOT / "docs/reference/review.md").read_text()
SETTINGS = (ROOT / "docs/reference/settings.md").read_text()


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = page[page.index(f"\n{heading}\n") :]
    table = section[section.index("\n|") + 1 :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize(
    ("page", "heading", "transitions"),
    [
        (ENGINE, "## Statuses of a job", JOB_TRANSITIONS),
        (ENGINE, "## Statuses of a step", STEP_TRANSITIONS),
        (REVIEW, "## Where an item stands", REVIEW_TRANSITIONS),
    ],
    ids=["job", "step", "review item"],
)
def test_the_documented_transitions_are_the_legal_ones(
    page: str, heading: str, transitions: dict[str, frozenset[str]]
) -> None:
    documented = {words(status)[0]: sorted(words(after)) for status, _, after in rows(page, heading)}
    assert documented == {str(status): sorted(map(str, after)) for status, after in transitions.items()}


def test_the_list_of_decisions_tells_what_their_records_say() -> None:
    listed = [
        tuple(re.fullmatch(r"\| \[(\d{4})\]\((.+)\) \| (.+) \| (\w+) \|", line).groups())  # type: ignore[union-attr]
        for line in (DECISIONS / "README.md").read_text().splitlines()
        if line.startswith("| [")
    ]
    records = sorted(path for path in DECISIONS.glob("[0-9]*.md") if path.stem != "0000-template")
    told = []
    for record in records:
        number, _, title = record.read_text().partition("\n")[0].removeprefix("# ").partition(": ")
        status = re.search(r"^Status: (\w+)", record.read_text(), flags=re.MULTILINE)
        assert status is not None, record.name
        assert record.name.startswith(f"{number}-")
        told.append((number, record.name, title, status[1]))
    assert listed == told


def test_every_failure_action_is_documented() -> None:
    assert [words(row[0])[0] for row in rows(ENGINE, "## When a step fails")] == [
        str(action) for action in FailureAction
    ]


def test_the_documented_limits_are_those_of_the_code() -> None:
    text = " ".join(ENGINE.split())
    assert f"up to {MAX_STEPS} steps or {MAX_BYTES >> 20} MB" in text
    assert f"up to {MAX_APPLIES} steps of one organisation" in text
    assert SUSPECT_CRASHES == 2
    assert "From its second crash on" in text


def test_the_documented_batches_are_those_of_the_code() -> None:
    statuses = [words(row[0])[0] for row in rows(BATCHES, "## How it stands")]
    assert sorted(statuses) == sorted(JobStatus)
    assert f"limit={DEFAULT_LIMIT}," in BATCHES
    assert f"up to {MOST_JOBS:,} jobs" in " ".join(BATCHES.split())


def settings_of(model: type[BaseModel], prefix: str = "") -> dict[str, str]:
    """Every setting by its dotted name, with its default as the page writes it."""
    found: dict[str, str] = {}
    for name, entry in model.model_fields.items():
        if isinstance(entry.annotation, type) and issubclass(entry.annotation, BaseModel):
            found |= settings_of(entry.annotation, f"{prefix}{name}.")
            continue
        default: Any = entry.get_default(call_default_factory=True)
        written = "required" if default is PydanticUndefined else f"`{default}`"
        if isinstance(default, tuple) and default:
            written = f"`{','.join(default)}`"
        found[prefix + name] = written if default not in (None, (), {}) else "none"
        for section, stars in sections_in(entry.annotation):
            found |= settings_of(section, f"{prefix}{name}.{stars}")
    return found


def sections_in(annotation: Any, stars: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """The sections inside a mapping (or a mapping of mappings) by names of one's own, each name a star."""
    for part in get_args(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield part, f"{stars}*."
        elif get_origin(part) is dict:
            yield from sections_in(part, f"{stars}*.")


def test_every_setting_is_documented_with_its_default() -> None:
    documented = {}
    for line in SETTINGS.splitlines():
        if line.startswith("| `"):
            name, variable, default, _ = (cell.strip() for cell in line.strip("|").split("|"))
            documented[words(name)[0]] = default
            spelled = words(name)[0].replace("*", "name").replace(".", "__").upper()
            assert words(variable) == [f"DOCMILL_{spelled}"]
    expected = settings_of(Settings)
    expected["home"] = "`~/.docmill`"
    assert documented == expected


def test_every_outcome_of_a_callback_is_documented() -> None:
    documented = rows(EXTERNAL, "## What is sent back")
    assert [words(row[0])[0] for row in documented][:1] == ["status"]
    outcomes = {words(line.split("|")[1])[0] for line in EXTERNAL.splitlines() if line.startswith("| `")}
    assert {outcome.value for outcome in CallbackOutcome} <= outcomes
    limits = " ".join(EXTERNAL.split())
    assert f"At most {MOST_BYTES >> 20} MB and {DEEPEST} levels" in limits
    assert f"At most {MOST_SENT >> 20} MB are sent" in limits


def test_the_example_of_the_readme_compiles() -> None:
    found = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    plan = compile_template(found[1], catalogue=Catalogue.permissive()).plan
    assert list(plan.positions) == ["add_up", "approval", "finish"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    dead = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not dead


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command below this one, with the names of its options."""
    for name in app:
        if not name.startswith("-"):
            yield from commands(app[name], (*path, name))
    if path and app.default_command is not None:
        yield path, {name for each in app.assemble_argument_collection() for name in each.names if name[:2] == "--"}


CLI = (ROOT / "docs/reference/cli.md").read_text()
OF_ALL_COMMANDS = {"--json", "--limit"}
"""Explained once, at the beginning of the page."""


def test_every_command_and_option_is_documented() -> None:
    heads = {section.split("\n")[0]: section for section in CLI.split("\n## ")[1:]}
    sections = {name: section for head, section in heads.items() for name in re.findall(r"`docmill (\w+)`", head)}
    for path, options in commands(build()):
        command, section = f"docmill {' '.join(path)}", sections[path[0]]
        assert all(re.search(rf"\b{word}\b", section) for word in path[1:]), f"{command} is not in cli.md"
        negative = {f"--{name.removeprefix('--no-')}" for name in options if name.startswith("--no-")}
        for option in options - negative - OF_ALL_COMMANDS:
            assert option in section, f"{command} {option} is not in cli.md"
