"""YAML is read as plain data: nothing is executed, nothing explodes, and broken syntax is named with its line."""

import time

import pytest
import yaml

from docmill.templates import source
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.faults import Fault, TemplateInvalid

HEAD = "name: t\nprocessable_type: document\n"
FINISH = "steps:\n  - {step_key: finish, type: FinishProcessing}\n"


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers keep the promises: libyaml where its wheel is, PyYAML's own elsewhere."""
    if request.param == "python":
        monkeypatch.setattr(source, "_LOADER", yaml.SafeLoader)


def faults_of(text: str) -> list[Fault]:
    began = time.process_time()
    with pytest.raises(TemplateInvalid) as refused:
        compile_template(text, catalogue=Catalogue.permissive())
    assert time.process_time() - began < 5, "an attack must be refused quickly"
    return list(refused.value.faults)


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("name: [t\nsteps:\n", 2, "yaml_syntax"),
        ("name: t\n  bad: indent\n", 2, "yaml_syntax"),
        ("name: 'open\n", 2, "yaml_syntax"),
        ("name: t\nsteps: @x\n", 2, "yaml_syntax"),
        ("name: t\nb: \x07\n", 2, "yaml_syntax"),
        ("a: 1\n---\nb: 2\n", 2, "many_documents"),
        ("name: t\nname: u\n" + HEAD[8:] + FINISH, 2, "duplicate_key"),
        (HEAD + "x-a: *nobody\n" + FINISH, 3, "unknown_alias"),
        (HEAD + "x-a: &loop [*loop]\n" + FINISH, 3, "unknown_alias"),
        (HEAD + "? [a, b]\n: c\n" + FINISH, 3, "bad_key"),
        (HEAD + "<<: text\n" + FINISH, 3, "bad_merge"),
        (HEAD + 'x-a: "\\0"\n' + FINISH, 3, "bad_text"),
        (HEAD + "x-a: 99999999999999999999\n" + FINISH, 3, "bad_number"),
        (HEAD + "x-a: .nan\n" + FINISH, 3, "bad_number"),
        (HEAD + "x-a: 1e999\n" + FINISH, 3, "bad_number"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_by_line(text: str, line: int, code: str) -> None:
    assert [(fault.line, fault.code) for fault in faults_of(text)] == [(line, code)]


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['true']",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!binary aGk=",
        "!!set {a, b}",
        "!custom x",
    ],
)
def test_tags_are_refused_and_never_constructed(value: str) -> None:
    (fault,) = faults_of(HEAD + f"x-a: {value}\n" + FINISH)
    assert (fault.line, fault.code) == (3, "yaml_tag")


def test_a_billion_laughs_are_refused() -> None:
    lines = ["x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert [fault.code for fault in faults_of(HEAD + "\n".join(lines) + "\n" + FINISH)] == ["alias_expansion"]


def test_a_long_text_repeated_by_aliases_is_refused() -> None:
    text = HEAD + f"x-a: &a {'x' * 100_000}\nx-b: [{', '.join(['*a'] * 1000)}]\n" + FINISH
    assert [fault.code for fault in faults_of(text)] == ["alias_expansion"]


def test_merges_count_like_the_aliases_they_are() -> None:
    text = HEAD + f"x-a: &a {{k: {'x' * 100_000}}}\nx-b: [{', '.join(['{<<: *a}'] * 1000)}]\n" + FINISH
    assert [fault.code for fault in faults_of(text)] == ["alias_expansion"]


@pytest.mark.parametrize("text", ["x-a: " + "[" * 50_000, "x-a: " + "{a: " * 50_000, "- " * 50_000])
def test_deep_nesting_is_refused_before_it_is_built(text: str) -> None:
    assert [fault.code for fault in faults_of(text)] == ["too_deep"]


def test_nesting_hidden_in_aliases_is_refused() -> None:
    lines = ["x-0: &a0 [x]"] + [f"x-{n}: &a{n} [*a{n - 1}]" for n in range(1, 60)]
    assert [fault.code for fault in faults_of(HEAD + "\n".join(lines) + "\n" + FINISH)] == ["alias_expansion"]


def test_more_than_a_megabyte_is_refused_unread() -> None:
    assert [fault.code for fault in faults_of("#" * 1_000_001)] == ["too_large"]


def test_text_that_is_no_unicode_is_refused() -> None:
    assert [fault.code for fault in faults_of("name: \ud800")] == ["bad_text"]


@pytest.mark.parametrize("prefix", ["\ufeff", "---\n", "%YAML 1.2\n---\n", "# comment\r\n"])
def test_ordinary_openings_are_accepted(prefix: str) -> None:
    assert compile_template(prefix + HEAD + FINISH, catalogue=Catalogue.permissive()).plan.name == "t"


def test_windows_line_ends_keep_their_line_numbers() -> None:
    text = (HEAD + FINISH + "colour: red\n").replace("\n", "\r\n")
    assert [(fault.line, fault.column, fault.code) for fault in faults_of(text)] == [(5, 1, "unknown_key")]
