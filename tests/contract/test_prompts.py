"""Stored prompts: versions that never change, one's own before the shared ones, nobody else's at all."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Dialect, insert

from docmill.db.clock import database_now
from docmill.db.tables import prompts as table
from docmill.model.errors import InvalidInput, NotFound, PermanentError
from docmill.model.ids import DEFAULT_ORG, SHARED_ORG, new_id
from docmill.prompts.store import Prompts, Stored, UnknownPrompt, newest_by_name
from docmill.prompts.syntax import PromptInvalid
from docmill.testing.world import OTHER_ORG, World

NAME = "TransactionOCRExtraction"


@pytest.fixture
def prompts(world: World) -> Prompts:
    return Prompts(world.database)


def rendered(prompts: Prompts, reference: str) -> str:
    return prompts.resolve(reference, entity={"code": "TXN-001"}, entity_id="t-1", entity_type="transaction").text


def test_a_prompt_is_resolved_by_its_id(prompts: Prompts) -> None:
    first = prompts.put(NAME, "First: {!entity.code}").prompt
    prompts.put(NAME, "Second: {!entity.code}")
    assert rendered(prompts, first.id) == "First: TXN-001"
    assert rendered(prompts, first.id.upper()) == "First: TXN-001"


def test_a_prompt_is_resolved_by_its_name(prompts: Prompts) -> None:
    prompts.put(NAME, "First: {!entity.code}")
    second = prompts.put(NAME, "Second: {!entityType} {!entityId} {!entity.code}").prompt
    found = prompts.resolve(NAME, entity={"code": "TXN-001"}, entity_id="t-1", entity_type="transaction")
    assert (found.prompt_id, found.text) == (second.id, "Second: transaction t-1 TXN-001")


def test_a_text_comes_back_letter_by_letter(prompts: Prompts) -> None:
    text = "  ü 漢\u2028\t{!!}\r\n{!entity.a} 'quoted' \"twice\" %s :x\n\n"
    stored = prompts.put(NAME, text, description="Reads receipts", created_by="ann").prompt
    found = prompts.get(NAME)
    assert (found.text, found.id, found.version, found.shared) == (text, stored.id, 1, False)
    assert (found.description, found.created_by) == ("Reads receipts", "ann")
    assert found.created_at.tzinfo is not None


def test_the_text_of_the_newest_version_makes_no_new_one(prompts: Prompts) -> None:
    first = prompts.put(NAME, "one")
    again = prompts.put(NAME, "one")
    assert (first.new, again.new) == (True, False)
    assert again.prompt == first.prompt


def test_going_back_to_an_old_text_is_a_new_version(prompts: Prompts) -> None:
    for text in ("one", "two", "one"):
        prompts.put(NAME, text)
    assert prompts.get(NAME).version == 3
    assert rendered(prompts, NAME) == "one"
    assert [each.version for each in prompts.versions(NAME)] == [3, 2, 1]


def test_a_description_stays_until_another_is_given_and_makes_no_version(prompts: Prompts) -> None:
    prompts.put(NAME, "one", description="old words")
    assert prompts.put(NAME, "two").prompt.description == "old words"
    changed = prompts.put(NAME, "two", description="new words")
    assert (changed.new, changed.prompt.version, changed.prompt.description) == (False, 2, "new words")
    assert prompts.get(NAME, 1).description == "old words"
    assert prompts.put(NAME, "three", description="").prompt.description == ""


def test_a_version_is_found_by_its_number_and_by_its_id(prompts: Prompts) -> None:
    ids = [prompts.put(NAME, text).prompt.id for text in ("one", "two")]
    assert [prompts.get(NAME, version).text for version in (1, 2)] == ["one", "two"]
    assert [prompts.get(id_).version for id_ in ids] == [1, 2]
    assert [each.id for each in prompts.versions(ids[0])] == ids[::-1]
    with pytest.raises(InvalidInput, match="leave the version out"):
        prompts.get(ids[0], 1)


def test_the_organisations_own_prompt_goes_before_the_shared_one(world: World, prompts: Prompts) -> None:
    other = Prompts(world.database, OTHER_ORG)
    shared = prompts.shared.put(NAME, "shared").prompt
    assert rendered(prompts, NAME) == rendered(other, NAME) == "shared"
    prompts.put(NAME, "own")
    prompts.shared.put(NAME, "shared, corrected")
    assert rendered(prompts, NAME) == "own"
    assert rendered(other, NAME) == "shared, corrected"
    assert rendered(prompts, shared.id) == "shared"
    assert [each.shared for each in prompts.versions(NAME)] == [False]
    assert [each.version for each in other.versions(NAME)] == [2, 1]
    with pytest.raises(UnknownPrompt):
        prompts.get(NAME, 2)


def test_the_prompt_of_another_organisation_is_not_found(world: World, prompts: Prompts) -> None:
    theirs = Prompts(world.database, OTHER_ORG).put(NAME, "theirs").prompt
    for reference in (theirs.id, NAME):
        for ask in (prompts.get, prompts.versions, lambda ref: rendered(prompts, ref)):
            with pytest.raises(NotFound) as refused:
                ask(reference)
            assert "Did you mean" not in str(refused.value)
    assert prompts.list() == []
    assert prompts.known() == frozenset()


def test_the_list_has_each_name_once_with_its_newest_version(world: World, prompts: Prompts) -> None:
    prompts.shared.put("b", "shared b")
    prompts.shared.put("c", "shared c")
    prompts.shared.put("c", "shared c, corrected")
    for text in ("one", "two"):
        prompts.put("b", text)
    prompts.put("a", "own")
    Prompts(world.database, OTHER_ORG).put("d", "theirs")
    assert [(each.name, each.version, each.shared) for each in prompts.list()] == [
        ("a", 1, False),
        ("b", 2, False),
        ("c", 2, True),
    ]
    assert [(each.name, each.version) for each in prompts.shared.list()] == [("b", 1), ("c", 2)]


def test_known_are_all_names_and_the_ids_of_all_versions(prompts: Prompts) -> None:
    ids = {prompts.put("a", text).prompt.id for text in ("one", "two")}
    shared = prompts.shared.put("b", "shared").prompt.id
    assert prompts.known() == {"a", "b", *ids, shared}


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("TransactionOCRExtractoin", "Did you mean 'TransactionOCRExtraction'?"),
        ("transactionocrextraction", "Did you mean 'TransactionOCRExtraction'?"),
        ("nothing", "docmill prompts list"),
        (new_id(), "docmill prompts list"),
        ("", "docmill prompts list"),
        ("a\0b", "docmill prompts list"),
        ("\ud800", "docmill prompts list"),
        ("x" * 1000, "x…"),
    ],
    ids=["misspelt", "case", "unknown", "unknown id", "empty", "NUL", "surrogate", "long"],
)
def test_an_unknown_prompt_is_named_with_the_nearest_one(prompts: Prompts, reference: str, hint: str) -> None:
    prompts.put(NAME, "text")
    with pytest.raises(UnknownPrompt) as refused:
        rendered(prompts, reference)
    error = refused.value
    assert hint in str(error)
    assert error.code == "unknown_prompt"
    assert isinstance(error, NotFound)
    assert isinstance(error, PermanentError)


@pytest.mark.parametrize("name", ["a", "_x", "9.b-C_d", "x" * 100, NAME])
def test_names_are_letters_digits_and_three_marks(prompts: Prompts, name: str) -> None:
    prompts.put(name, "text")
    assert prompts.get(name).name == name


@pytest.mark.parametrize(
    "name", ["", "x" * 101, "a b", "a/b", "-a", ".a", "ü", "a\n", "a@1", DEFAULT_ORG, OTHER_ORG.upper()]
)
def test_other_names_are_refused(prompts: Prompts, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be the name|looks like the id"):
        prompts.put(name, "text")
    assert prompts.list() == []


@pytest.mark.parametrize("description", ["two\nlines", "a\0b", "x" * 501])
def test_a_description_is_one_line(prompts: Prompts, description: str) -> None:
    with pytest.raises(InvalidInput, match="one line"):
        prompts.put(NAME, "text", description=description)


def test_a_malformed_text_is_refused_and_nothing_is_stored(prompts: Prompts) -> None:
    with pytest.raises(PromptInvalid) as refused:
        prompts.put(NAME, "{!entity.a}\n{!nothing}")
    assert [(fault.line, fault.code) for fault in refused.value.faults] == [(2, "unknown_variable")]
    assert refused.value.details["faults"]
    assert prompts.list() == []


def test_a_diff_leads_from_one_version_to_another(prompts: Prompts) -> None:
    for text in ("same\nold\n", "same\nnew\n", "same\nnew"):
        prompts.put(NAME, text)
    assert prompts.diff(NAME, 1, 2).text == f"--- {NAME}@1\n+++ {NAME}@2\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"
    assert prompts.diff(NAME).text.endswith("-new\n+new\n\\ No newline at end of file\n")
    assert prompts.diff(NAME, 2, 2).text == ""
    assert prompts.diff(NAME, new=2).old.version == 1
    with pytest.raises(InvalidInput, match="no version before 1"):
        prompts.diff(NAME, new=1)


def put_at_once(world: World, texts: list[str]) -> list[Stored]:
    barrier = Barrier(len(texts))

    def put(text: str) -> Stored:
        barrier.wait()
        return Prompts(world.database).put(NAME, text)

    with ThreadPoolExecutor(len(texts)) as threads:
        return list(threads.map(put, texts))


def test_texts_of_one_name_put_at_once_get_a_version_each(world: World, prompts: Prompts) -> None:
    stored = put_at_once(world, [f"text {n}" for n in range(8)])
    assert sorted(each.prompt.version for each in stored) == list(range(1, 9))
    assert all(each.new for each in stored)
    for n, each in enumerate(stored):
        assert prompts.get(each.prompt.id).text == f"text {n}"


def test_one_text_put_by_many_at_once_is_one_version(world: World, prompts: Prompts) -> None:
    stored = put_at_once(world, ["text"] * 8)
    assert len({each.prompt.id for each in stored}) == 1
    assert sum(each.new for each in stored) == 1
    assert len(prompts.versions(NAME)) == 1


def test_finding_the_newest_reads_no_history(world: World) -> None:
    """What a name means is found through the index, however many versions and other prompts there are."""
    names = [NAME, *(f"prompt-{n}" for n in range(100))]
    with world.database.write() as connection:
        now = database_now(connection)
        same = {"text": "t", "description": "", "digest": "d" * 64, "created_at": now}
        rows: list[dict[str, Any]] = [
            {"id": new_id(), "org_id": org_id, "name": name, "version": version, **same}
            for org_id in (DEFAULT_ORG, SHARED_ORG)
            for name in names
            for version in range(1, 21)
        ]
        connection.execute(insert(table), rows)
        connection.exec_driver_sql("analyze")
    with world.looking() as connection:
        statement = literal(newest_by_name(DEFAULT_ORG, NAME), connection.dialect)
        how = "explain" if world.database.kind == "postgresql" else "explain query plan"
        plan = "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{how} {statement}"))
    assert "Seq Scan" not in plan
    assert "SCAN" not in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
    index = (
        "uq_ai_prompts_org_id_name_version" if world.database.kind == "postgresql" else "sqlite_autoindex_ai_prompts"
    )
    assert plan.count(index) >= 2


def literal(query: Any, dialect: Dialect) -> str:
    return str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
