"""`docmill templates`: what is right is stored, what is wrong is told in full."""

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


def test_adding_makes_a_version_only_of_what_is_new(either: Mill) -> None:
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
    listed = either("templates", "list", "--json").data["templates"]
    assert {each["name"]: each["version"] for each in listed} == {**dict.fromkeys(TEMPLATES, 1), "plain": 2}


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
        ("nothing", "There is no template 'nothing'. `docmill templates list` shows those there are."),
        ("plain@7", "There is no version 7 of the template 'plain'."),
        ("plain@new", "'new' is not a version"),
    ],
)
def test_an_unknown_template_is_wrong_use(mill: Mill, name: str, says: str) -> None:
    for command in (("templates", "show", name), ("jobs", "submit", name, "document:1")):
        answer = mill(*command)
        assert (answer.code, answer.out) == (2, "")
        assert says in answer.err


def test_an_empty_list_says_so_on_stderr_only(bare: Mill) -> None:
    answer = bare("templates", "list")
    assert (answer.code, answer.out) == (0, "")
    assert "docmill templates import" in answer.err
    assert bare("templates", "list", "--json").data == {"templates": []}
