"""`docmill prompts`: what is stored can be seen, compared, tried out, carried elsewhere, and is what steps get."""

import json

import pytest

from tests.acceptance.conftest import Worker
from tests.acceptance.mill import Mill

ASK = "Total of {!entity.code}? Lines: {!Array:entity.lines|no,amount}\n"
ENTITY = {"code": "R-7", "lines": [{"no": 1, "amount": 20}, {"no": 2, "amount": 5.5}]}
KEYS = {"id", "name", "version", "shared", "description", "digest", "created_by", "created_at"}
ASKING = """
name: asking
processable_type: document
steps:
  - {step_key: ask, type: mill.ask, prompt: PROMPT}
  - {step_key: finish, type: FinishProcessing}
"""


def stored(mill: Mill, name: str, *texts: str) -> list[str]:
    """Store these texts one after the other; the ids of the versions."""
    return [mill("prompts", "set", name, "-", "--json", given=text).data["prompt"]["id"] for text in texts]


def test_a_changed_prompt_becomes_a_version_and_an_unchanged_one_does_not(either: Mill) -> None:
    either.write("ask.txt", ASK)
    first = either("prompts", "set", "Ask", "ask.txt", "--description", "Adds up")
    assert (first.code, first.out, first.err) == (0, "Ask version 1 stored\n", "")
    assert either("prompts", "set", "Ask", "ask.txt").out == "Ask version 1 unchanged\n"
    second = either("prompts", "set", "Ask", "--text", "Add up.", "--json").data["prompt"]
    assert second.keys() == KEYS | {"new"}
    assert (second["version"], second["new"], second["description"], second["shared"]) == (2, True, "Adds up", False)
    listed = either("prompts", "list", "--json").data["prompts"]
    assert [(prompt["name"], prompt["version"]) for prompt in listed] == [("Ask", 2)]
    versions = either("prompts", "versions", "Ask", "--json").data["versions"]
    assert [prompt["version"] for prompt in versions] == [2, 1]
    assert versions[0].keys() == KEYS


def test_the_text_goes_to_stdout_and_what_is_known_of_it_to_stderr(mill: Mill) -> None:
    first, _ = stored(mill, "Ask", ASK, "Add up.")
    for reference in ("Ask@1", first):
        shown = mill("prompts", "show", reference)
        assert (shown.code, shown.out) == (0, ASK)
        assert shown.err.startswith("note: Ask@1, stored ")
        assert first in shown.err
    assert mill("prompts", "show", "Ask").out == "Add up.\n"
    prompt = mill("prompts", "show", "Ask@1", "--json").data["prompt"]
    assert prompt.keys() == KEYS | {"text", "variables"}
    assert (prompt["text"], prompt["variables"]) == (ASK, ["entity.code", "Array:entity.lines|no,amount"])


def test_prompts_and_versions_are_listed_in_tables(mill: Mill) -> None:
    stored(mill, "Ask", ASK, "Add up.")
    assert mill("prompts", "set", "Tell", "--text", "Tell.", "--shared").code == 0
    rows = [line.split() for line in mill("prompts", "list").out.splitlines()]
    assert rows[0] == ["NAME", "VERSION", "WHOSE", "DESCRIPTION", "STORED"]
    assert [row[:3] for row in rows[1:]] == [["Ask", "2", "own"], ["Tell", "1", "shared"]]
    assert [line.split()[0] for line in mill("prompts", "versions", "Ask").out.splitlines()] == ["VERSION", "2", "1"]


def test_an_empty_list_of_prompts_says_so_on_stderr_only(bare: Mill) -> None:
    answer = bare("prompts", "list")
    assert (answer.code, answer.out) == (0, "")
    assert "docmill prompts set NAME FILE" in answer.err
    assert bare("prompts", "list", "--json").data == {"prompts": []}


def test_every_fault_of_a_prompt_is_told_with_its_place(mill: Mill) -> None:
    mill.write("bad.txt", "Read {!code}\n{!Array:entity.lines}\n")
    answer = mill("prompts", "set", "Ask", "bad.txt")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines() == [
        "bad.txt:1:6: There is no variable 'code'. Did you mean 'entity.code'? [unknown_variable]",
        "bad.txt:2:1: A field is missing; write {!Array:entity.path|field1,field2}. [bad_fields]",
        "error: 2 faults in 1 prompt; none was stored.",
    ]
    error = mill("prompts", "set", "Ask", "bad.txt", "--json").error
    assert error["code"] == "prompt_invalid"
    assert [(fault["file"], fault["line"], fault["code"]) for fault in error["details"]["faults"]] == [
        ("bad.txt", 1, "unknown_variable"),
        ("bad.txt", 2, "bad_fields"),
    ]
    assert mill("prompts", "list", "--json").data == {"prompts": []}


@pytest.mark.parametrize(
    "command", [("show", "Aks"), ("versions", "Aks"), ("diff", "Aks"), ("render", "Aks"), ("export", "Aks")]
)
def test_an_unknown_prompt_is_wrong_use_with_a_suggestion(mill: Mill, command: tuple[str, ...]) -> None:
    stored(mill, "Ask", ASK)
    answer = mill("prompts", *command)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "error: There is no prompt 'Aks'. Did you mean 'Ask'? `docmill prompts list` shows those there are.\n"
    )
    assert mill("prompts", *command, "--json").error["code"] == "unknown_prompt"


def test_two_versions_are_compared(mill: Mill) -> None:
    stored(mill, "Ask", "same\nold\n", "same\nnew\n", "same\nnewer\n")
    last = mill("prompts", "diff", "Ask")
    assert (last.code, last.out) == (1, "--- Ask@2\n+++ Ask@3\n@@ -1,2 +1,2 @@\n same\n-new\n+newer\n")
    assert mill("prompts", "diff", "Ask", "1").out.startswith("--- Ask@1\n+++ Ask@3\n")
    change = mill("prompts", "diff", "Ask", "1", "2", "--json").data
    assert (change["old"]["version"], change["new"]["version"]) == (1, 2)
    assert "-old\n+new\n" in change["diff"]
    same = mill("prompts", "diff", "Ask", "2", "2")
    assert (same.code, same.out, same.err) == (0, "", "Versions 2 and 2 have the same text.\n")
    assert mill("prompts", "diff", "Ask", "7").code == 2


def test_a_stored_prompt_is_rendered_as_a_model_would_get_it(mill: Mill) -> None:
    (prompt_id,) = stored(mill, "Ask", "{!entityType} {!entityId}: " + ASK)
    mill.write("entity.json", json.dumps(ENTITY))
    answer = mill("prompts", "render", "Ask", "--entity", "entity.json", "--entity-id", "7", "--entity-type", "receipt")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "receipt 7: Total of R-7? Lines: no: 1, amount: 20, no: 2, amount: 5.5\n"
    empty = mill("prompts", "render", "Ask", "--entity", "-", "--json", given='{"code": "R-8"}').data
    assert empty == {
        "prompt_id": prompt_id,
        "text": " : Total of R-8? Lines: \n",
        "blanks": ["entityType", "entityId", "Array:entity.lines|no,amount"],
    }


def test_a_draft_is_rendered_from_a_file_and_what_stayed_empty_is_noted(bare: Mill) -> None:
    bare.write("draft.txt", "About {!entity.code}: {!entity.title}")
    answer = bare("prompts", "render", "draft.txt", "--entity", "-", given='{"code": 7}')
    assert (answer.code, answer.out) == (0, "About 7: \n")
    assert answer.err == "note: nothing to fill in for entity.title.\n"
    bare.write("draft.txt", "About {!entity.")
    refused = bare("prompts", "render", "draft.txt")
    assert refused.code == 2
    assert refused.err.startswith("draft.txt:1:7: This '{!' has no '}'")


@pytest.mark.parametrize(
    ("entity", "says"), [("{", "is not JSON"), ("[1]", "holds no JSON object"), ("7", "holds no JSON object")]
)
def test_an_entity_that_is_no_json_object_is_wrong_use(bare: Mill, entity: str, says: str) -> None:
    bare.write("draft.txt", "Hello.")
    bare.write("entity.json", entity)
    answer = bare("prompts", "render", "draft.txt", "--entity", "entity.json")
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_prompts_are_carried_from_one_installation_to_another(mill: Mill, bare: Mill) -> None:
    texts = {"Ask": ASK, "Ask.v2": "no line end", "Tell": "windows\r\nlines\r\n"}
    for name, text in texts.items():
        (mill.folder / "text").write_bytes(text.encode())
        assert mill("prompts", "set", name, "text").code == 0
    out = bare.folder / "out"
    exported = mill("prompts", "export", "--to", str(out))
    assert exported.code == 0
    assert sorted(path.name for path in out.iterdir()) == ["Ask.txt", "Ask.v2.txt", "Tell.txt"]
    imported = bare("prompts", "import", *(str(out / f"{name}.txt") for name in texts), "--json").data["prompts"]
    assert [(prompt["name"], prompt["new"]) for prompt in imported] == [(name, True) for name in texts]
    for name, text in texts.items():
        assert bare("prompts", "show", name, "--json").data["prompt"]["text"] == text
    assert bare("prompts", "import", str(out / "Ask.txt")).out == "Ask version 1 unchanged\n"


def test_one_faulty_file_keeps_all_prompts_from_being_stored(mill: Mill) -> None:
    mill.write("Good.md", "Hello.")
    mill.write("Bad.txt", "{!nothing}")
    answer = mill("prompts", "import", "Good.md", "Bad.txt")
    assert answer.code == 2
    assert answer.err.startswith("Bad.txt:1:1: ")
    assert mill("prompts", "list", "--json").data == {"prompts": []}
    assert mill("prompts", "import", "Good.md").out == "Good version 1 stored\n"


def test_an_export_overwrites_another_text_only_when_told_to(mill: Mill) -> None:
    stored(mill, "Ask", "first", "second")
    mill.write("Ask.txt", "mine")
    refused = mill("prompts", "export", "Ask")
    assert (refused.code, refused.err) == (2, "error: Ask.txt holds another text; --force overwrites it.\n")
    assert (mill.folder / "Ask.txt").read_text() == "mine"
    assert mill("prompts", "export", "Ask@1", "--force").out == "Ask version 1 written to Ask.txt\n"
    assert (mill.folder / "Ask.txt").read_text() == "first"


def test_ones_own_prompt_goes_before_the_shared_one(mill: Mill) -> None:
    assert mill("prompts", "set", "Ask", "--text", "shared", "--shared").code == 0
    assert mill("prompts", "show", "Ask").out == "shared\n"
    stored(mill, "Ask", "own")
    assert mill("prompts", "show", "Ask").out == "own\n"
    assert mill("prompts", "show", "Ask", "--shared").out == "shared\n"


def test_a_template_that_names_an_unknown_prompt_is_refused_where_prompts_are_known(mill: Mill) -> None:
    mill.write("asking.yaml", ASKING.replace("PROMPT", "Aks"))
    assert mill("templates", "validate", "asking.yaml").code == 0
    (prompt_id,) = stored(mill, "Ask", ASK)
    refused = mill("templates", "import", "asking.yaml")
    assert refused.code == 2
    assert "steps[0].prompt: There is no prompt 'Aks'. Did you mean 'Ask'? [unknown_prompt]" in refused.err
    for reference in ("Ask", prompt_id):
        mill.write("asking.yaml", ASKING.replace("PROMPT", reference))
        assert mill("templates", "import", "asking.yaml").code == 0


def test_a_step_gets_the_prompt_as_it_is_when_it_runs(either: Mill, worker: Worker) -> None:
    stored(either, "Ask", "Old.")
    either.write("asking.yaml", ASKING.replace("PROMPT", "Ask"))
    assert either("templates", "import", "asking.yaml").code == 0
    job = either.submit("asking")
    (newest,) = stored(either, "Ask", "{!entityType} {!entityId} is {!entity.code}.")
    worker(either)
    assert either("jobs", "watch", job).code == 0
    asked = either("jobs", "show", job, "--json").data["job"]["steps"][0]["result"]
    assert asked == {"prompt": "document 7 is DOC-7.", "prompt_id": newest}
