"""`docmill templates`: what is right is stored, what is wrong is told in full."""

import re

import pytest

from tests.acceptance.mill import TEMPLATES, Mill

FAULTY = """\
name: faulty
processable_type: document
service_name: mill
steps:
  - {step_key: first, type: mill.ecko, depends_on: [second]}
  - {step_key: second, type: mill.echo, depends_on: [first]}
  - {step_key: third, type: mill.echo, processor_method: kept, max_attempts: many}
  - {step_key: finish, type: FinishProcessing}
"""


def test_valid_files_are_named_with_what_they_hold(mill: Mill) -> None:
    answer = mill("templates", "validate", "plain.yaml", "priced.yaml")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "plain.yaml: valid, template 'plain' with 3 steps",
        "priced.yaml: valid, template 'priced' with 4 steps",
    ]


def test_every_fault_is_listed_with_its_place_and_counted(mill: Mill) -> None:
    mill.write("faulty.yaml", FAULTY)
    answer = mill("templates", "validate", "plain.yaml", "faulty.yaml")
    assert answer.code == 2
    assert answer.err == "error: 4 faults in 1 of 2 files.\n"
    faults = [line for line in answer.out.splitlines() if line.startswith("faulty.yaml:")]
    assert [line.split(":")[1] for line in faults] == ["5", "5", "7", "7"]
    for wanted in (
        "faulty.yaml:5:29: steps[0].type: There is no step type 'mill.ecko'. Did you mean 'mill.echo'?",
        "These steps wait for each other: first → second → first.",
        "steps[2].processor_method",
        "steps[2].max_attempts: Expected a whole number, found the text 'many'",
    ):
        assert wanted in answer.out


def test_validate_as_json_has_every_file_and_fault(mill: Mill) -> None:
    mill.write("faulty.yaml", FAULTY)
    answer = mill("templates", "validate", "plain.yaml", "faulty.yaml", "--json")
    assert answer.code == 2
    assert answer.error["code"] == "template_invalid"
    good, bad = answer.data["templates"]
    assert good == {"file": "plain.yaml", "valid": True, "name": "plain", "steps": 3, "faults": []}
    assert (bad["file"], bad["valid"]) == ("faulty.yaml", False)
    assert {fault["code"] for fault in bad["faults"]} == {
        "unknown_step_type",
        "cycle",
        "unknown_processor",
        "wrong_type",
    }
    assert bad["faults"][0].keys() == {"line", "column", "path", "code", "message"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name: [", "yaml_syntax"),
        ("", "empty"),
        ("- a\n- b\n", "wrong_type"),
        ("name: x\nprocessable_type: document\nsteps: []\n", "no_steps"),
        (TEMPLATES["plain"].replace("mill.shaky", "mill.nobody"), "unknown_step_type"),
        (TEMPLATES["priced"].replace("service_name: mill", "service_name: nobody"), "unknown_service"),
        (TEMPLATES["priced"].replace("== true", "=="), "bad_expression"),
    ],
)
def test_a_broken_template_is_refused_by_its_name(mill: Mill, text: str, code: str) -> None:
    answer = mill("templates", "validate", "-", "--json", given=text)
    assert answer.code == 2
    assert code in {fault["code"] for fault in answer.data["templates"][0]["faults"]}


@pytest.mark.parametrize("command", ["validate", "import", "show"])
def test_a_file_that_cannot_be_read_is_wrong_use(mill: Mill, command: str) -> None:
    missing = mill("templates", command, "missing.yaml")
    assert (missing.code, missing.out) == (2, "")
    assert missing.err == "error: Cannot read missing.yaml: No such file or directory.\n"


def test_a_file_that_is_not_text_is_wrong_use(mill: Mill) -> None:
    (mill.folder / "image.yaml").write_bytes(b"name: x\n\xff\xfe\n")
    answer = mill("templates", "validate", "image.yaml")
    assert answer.code == 2
    assert answer.err == "error: image.yaml:2: not UTF-8 text; save the file as UTF-8.\n"


def test_importing_makes_a_version_only_of_what_is_new(either: Mill) -> None:
    again = either("templates", "import", "plain.yaml")
    assert (again.code, again.out, again.err) == (0, "plain version 1 unchanged\n", "")
    changed = TEMPLATES["plain"].replace("mill.shaky", "mill.echo")
    either.write("plain.yaml", changed)
    added = either("templates", "import", "plain.yaml", "--json")
    (template,) = added.data["templates"]
    assert (template["name"], template["version"], template["new"]) == ("plain", 2, True)
    assert template.keys() == {
        "id",
        "name",
        "version",
        "processable_type",
        "task_type",
        "service_name",
        "digest",
        "created_at",
        "new",
    }
    either.submit("plain")
    listed = either("templates", "list", "--json").data["templates"]
    assert {each["name"]: each["version"] for each in listed} == {**dict.fromkeys(TEMPLATES, 1), "plain": 2}
    (plain,) = (each for each in listed if each["name"] == "plain")
    assert (plain["versions"], plain["steps"], plain["active_jobs"]) == (2, 3, 1)
    assert plain.keys() == (template.keys() - {"new"}) | {"versions", "steps", "active_jobs"}
    versions = either("templates", "versions", "plain", "--json").data["versions"]
    assert [(each["version"], each["steps"], each["active_jobs"]) for each in versions] == [(2, 3, 1), (1, 3, 0)]


def test_one_faulty_file_keeps_all_from_being_stored(mill: Mill) -> None:
    mill.write("faulty.yaml", FAULTY)
    mill.write("other.yaml", TEMPLATES["plain"].replace("name: plain", "name: other"))
    answer = mill("templates", "import", "other.yaml", "faulty.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert "faulty.yaml:5:29: steps[0].type" in answer.err
    assert answer.err.endswith("error: 4 faults in 1 of 2 files; none was stored.\n")
    assert "other" not in mill("templates", "list").out


def test_a_template_is_drawn_from_a_file_and_from_the_store(mill: Mill) -> None:
    from_file = mill("templates", "show", "priced.yaml")
    stored = mill("templates", "show", "priced")
    assert from_file.code == stored.code == 0
    assert "metadata.file == true" in from_file.out
    assert stored.out.startswith("version 1, stored ")
    assert stored.out.endswith(from_file.out)
    definition = mill("templates", "show", "priced@1", "--json").data
    assert definition["template"]["version"] == 1
    assert [step["step_key"] for step in definition["definition"]["steps"]] == ["read", "price", "file", "finish"]
    assert mill("templates", "show", "priced.yaml", "--json").data["template"] is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plane", "There is no template 'plane'. Did you mean 'plain'?"),
        ("nothing", "There is no template 'nothing'. `docmill templates list` shows those there are."),
        ("plain@7", "There is no version 7 of the template 'plain'."),
        ("plain@new", "'new' is not a version"),
    ],
)
def test_an_unknown_template_is_wrong_use(mill: Mill, name: str, says: str) -> None:
    for command in (
        ("templates", "show", name),
        ("templates", "export", name),
        ("templates", "diff", name),
        ("jobs", "submit", name, "document:1"),
    ):
        answer = mill(*command)
        assert (answer.code, answer.out) == (2, "")
        assert says in answer.err


def test_an_empty_list_says_so_on_stderr_only(bare: Mill) -> None:
    answer = bare("templates", "list")
    assert (answer.code, answer.out) == (0, "")
    assert "docmill templates import" in answer.err
    assert bare("templates", "list", "--json").data == {"templates": []}


def test_a_folder_is_imported_with_all_its_templates_and_nothing_else(bare: Mill) -> None:
    folder = bare.folder / "flows"
    folder.mkdir()
    for name in ("plain", "half"):
        bare.write(f"flows/{name}.yaml", TEMPLATES[name])
    bare.write("flows/notes.txt", "not a template")
    bare.write("flows/.hidden.yaml", "not a template")
    bare.write("flows/docmill.yaml", "drain_seconds: 3\n")
    configured = bare.having(DOCMILL_CONFIG=str(folder / "docmill.yaml"))
    answer = configured("templates", "import", "flows")
    assert (answer.code, answer.out.splitlines()) == (0, ["half version 1 stored", "plain version 1 stored"])
    assert configured("templates", "validate", "flows").out.count("valid, template") == 2
    (folder / "empty").mkdir()
    empty = configured("templates", "import", "flows/empty")
    assert (empty.code, empty.err) == (
        2,
        "error: There is no template file (*.yaml, *.yml) in the folder flows/empty.\n",
    )
    assert "is a folder; name one template file" in configured("templates", "show", "flows/").err


def test_a_template_is_imported_from_stdin(bare: Mill) -> None:
    assert bare("templates", "import", "-", given=TEMPLATES["plain"]).out == "plain version 1 stored\n"


def test_two_files_of_one_template_are_not_imported_together(mill: Mill) -> None:
    mill.write("twin.yaml", TEMPLATES["plain"].replace("mill.shaky", "mill.echo"))
    answer = mill("templates", "import", "plain.yaml", "twin.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert "2 of these files hold the template 'plain'; none was stored." in answer.err
    assert mill("templates", "list", "--json").data["templates"][-2]["version"] == 1


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_is_exported_is_imported_as_the_same_version(mill: Mill, name: str) -> None:
    exported = mill("templates", "export", name)
    assert (exported.code, exported.err) == (0, "")
    assert mill("templates", "import", "-", given=exported.out).out == f"{name} version 1 unchanged\n"
    written = mill("templates", "export", f"{name}@1", "--out", "out.yaml")
    assert (written.code, written.out) == (0, "")
    assert (mill.folder / "out.yaml").read_text() == exported.out
    as_json = mill("templates", "export", name, "--json").data
    assert (as_json["template"]["name"], as_json["text"]) == (name, exported.out)


def test_an_export_reads_as_a_person_writes(mill: Mill) -> None:
    assert (
        mill("templates", "export", "priced").out
        == """\
name: priced
processable_type: document
service_name: mill

steps:
  - step_key: read
    type: mill.echo

  - step_key: price
    type: mill.price
    depends_on: [read]
    processor_method: keep

  - step_key: file
    type: mill.echo
    depends_on: [price]
    condition: metadata.file == true

  - step_key: finish
    type: FinishProcessing
"""
    )


def test_an_export_that_cannot_be_written_is_told(mill: Mill) -> None:
    answer = mill("templates", "export", "plain", "--out", "nowhere/out.yaml")
    assert (answer.code, answer.err) == (1, "error: nowhere/out.yaml: No such file or directory.\n")


CHANGED = TEMPLATES["plain"].replace("type: mill.shaky", "type: mill.echo, timeout: 10m")
SAID = ["  shaky: type mill.shaky -> mill.echo", "  shaky: timeout 5m -> 10m"]


@pytest.mark.parametrize(
    ("words", "heading", "same"),
    [
        (("plain",), "plain version 1 -> plain version 2", False),
        (("plain", "1"), "plain version 1 -> plain version 2", False),
        (("plain@1", "2"), "plain version 2 -> plain version 1", False),
        (("plain", "1", "2"), "plain version 1 -> plain version 2", False),
        (("plain", "2", "2"), "plain version 2 -> plain version 2", True),
        (("plain@1", "changed.yaml"), "plain version 1 -> changed.yaml", False),
        (("plain", "changed.yaml"), "plain version 2 -> changed.yaml", True),
        (("plain", "1", "changed.yaml"), "plain version 1 -> changed.yaml", False),
        (("changed.yaml",), "plain version 2 -> changed.yaml", True),
        (("changed.yaml", "1"), "plain version 1 -> changed.yaml", False),
        (("plain.yaml", "changed.yaml"), "plain.yaml -> changed.yaml", False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_difference_is_told_in_words_with_the_exit_code_of_diff(
    mill: Mill, words: tuple[str, ...], heading: str, same: bool
) -> None:
    mill.write("changed.yaml", CHANGED)
    assert mill("templates", "import", "changed.yaml").code == 0
    answer = mill("templates", "diff", *words)
    assert (answer.code, answer.err) == (0 if same else 1, "")
    lines = answer.out.splitlines()
    assert lines[0] == f"{heading}: no difference" if same else f"{heading}:"
    if not same and "version 2 -> plain version 1" not in heading:
        assert lines[1:] == SAID


def test_a_difference_as_json(mill: Mill) -> None:
    mill.write("changed.yaml", CHANGED)
    answer = mill("templates", "diff", "plain", "changed.yaml", "--json")
    assert answer.code == 1
    assert (answer.data["same"], answer.data["old"]["template"]["version"], answer.data["new"]["template"]) == (
        False,
        1,
        None,
    )
    assert answer.data["changes"][1] == {
        "kind": "changed",
        "step_key": "shaky",
        "field": "timeout",
        "old": 300.0,
        "new": 600.0,
        "text": "shaky: timeout 5m -> 10m",
    }


def test_what_comes_through_a_pipe_is_compared_with_what_is_stored(mill: Mill) -> None:
    answer = mill("templates", "diff", "-", given=CHANGED)
    assert (answer.code, answer.out.splitlines()[1:]) == (1, SAID)
    assert mill("templates", "diff", "-", given=TEMPLATES["plain"]).code == 0


def test_nothing_to_compare_with_is_wrong_use(mill: Mill) -> None:
    first = mill("templates", "diff", "plain")
    assert (first.code, first.out) == (2, "")
    assert "plain version 1 has no version before it" in first.err
    assert mill("templates", "diff", "plain", "7").code == 2


def test_what_is_used_where_is_listed(either: Mill) -> None:
    answer = either("templates", "uses", "--type", "mill.broken", "--json")
    assert answer.data == {
        "uses": [
            {"name": "failing", "version": 1, "newest": True, "step_key": "scan"},
            {"name": "half", "version": 1, "newest": True, "step_key": "extra"},
        ]
    }
    assert "priced" in either("templates", "uses", "--processor", "mill.keep").out
    either.write("priced.yaml", TEMPLATES["priced"].replace(", processor_method: keep", ""))
    assert either("templates", "import", "priced.yaml").code == 0
    unused = either("templates", "uses", "--processor", "nobody")
    assert (unused.code, unused.out, unused.err) == (0, "", "Nothing uses it.\n")
    assert "priced" not in either("templates", "uses", "--processor", "keep").out
    assert "priced" in either("templates", "uses", "--processor", "keep", "--old").out


def test_shipped_templates_are_offered_with_what_they_lack_and_stored_only_when_asked(bare: Mill) -> None:
    listed = bare("templates", "shipped")
    assert listed.code == 0
    assert "transaction-import" in listed.out
    assert "service transaction" in listed.out
    text = bare("templates", "shipped", "transaction-import").out
    assert text.startswith("# A receipt or an invoice becomes a transaction")
    assert bare("templates", "list", "--json").data == {"templates": []}
    refused = bare("templates", "import", "--shipped", "transaction-import")
    assert refused.code == 2
    assert "shipped transaction-import:7:15: service_name: There is no service 'transaction'." in refused.err
    assert "none was stored" in refused.err
    assert "Did you mean 'transaction-import'" in bare("templates", "import", "--shipped", "transaction-imports").err


def test_a_shipped_template_is_imported_where_all_it_names_is_installed(bare: Mill) -> None:
    missing = bare("templates", "shipped", "transaction-import", "--json").data["missing"]
    text = bare("templates", "shipped", "transaction-import").out
    methods = sorted(set(re.findall(r"processor_method: (\w+)", text)))
    lines = ["from docmill.plugin import processor, step", "", "def save(ctx, result): ...", ""]
    lines += [f"save = processor('transaction', '{method}')(save)" for method in methods]
    for name in (word.removeprefix("step type ") for word in missing if word.startswith("step type ")):
        lines += [f"@step('{name}', kind='ai')", "async def compute(ctx): ...", ""]
    bare.write("ledger.py", "\n".join(lines))
    mill = bare.having(DOCMILL_PLUGINS="ledger")
    for prompt in (word.removeprefix("prompt ") for word in missing if word.startswith("prompt ")):
        assert mill("prompts", "set", prompt, "-", given="Look.").code == 0
    answer = mill("templates", "import", "--shipped", "transaction-import")
    assert (answer.code, answer.out, answer.err) == (0, "transaction-import version 1 stored\n", "")
    assert mill("templates", "shipped", "transaction-import", "--json").data["missing"] == []
    assert "finish by  finishTransactionProcessing" in mill("templates", "show", "transaction-import").out
