"""How conditions are parsed: what is refused, at its place, and what an expression knows of itself."""

import pytest

from docmill.templates.conditions import STEP_NAMES, ConditionError, literal, parse


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("entity.", 7, "a key after '.'"),
        ("entity.total >", 14, "Expected a value, found the end"),
        ("entity.total = 5", 13, "Compare with '=='"),
        ("entity.a && entity.b", 9, "Write 'and'"),
        ("entity.a || entity.b", 9, "Write 'or'"),
        ("!entity.a", 0, "Write 'not'"),
        ("entity.a == None", 12, "Write 'null'"),
        ("entity.a == invoice", 12, "text needs quotes"),
        ("1 < 2 < 3", 6, "do not chain"),
        ("1 in [1] in [2]", 9, "do not chain"),
        ("(1", 2, "')'"),
        ("[1, 2", 5, "','"),
        ("entity[1", 8, "']'"),
        ("1 2", 2, "the end or an operator"),
        ("'open", 0, "no closing quote"),
        ("'\\x41'", 0, "Unknown escape"),
        ("entity.a ; entity.b", 9, "Unexpected character ';'"),
        ("entity.a is 5", 12, "'null'"),
        ("entity.a not 5", 13, "'in'"),
        ("len()", 0, "takes 1 arguments, not 0"),
        ("len(1, 2)", 0, "takes 1 arguments, not 2"),
        ("size(entity)", 0, "Unknown function 'size'"),
        ("entity.get('a')", 10, "cannot be called"),
        ("'a'.upper()", 3, "the end or an operator"),
        ("9999999999999999999", 0, "more than 18 digits"),
        ("1e999", 0, "too large"),
        ("entity.ключ", 7, "Unexpected character"),
    ],
)
def test_bad_syntax_is_refused_at_its_place(text: str, position: int, says: str) -> None:
    with pytest.raises(ConditionError) as refused:
        parse(text)
    assert says in refused.value.message
    assert refused.value.position == position


def test_an_expression_knows_what_it_reads() -> None:
    expression = parse("results.ocr.pages > 1 and results['classify'].ok or len(metadata.tags) > results.ocr.n")
    assert expression.names == {"results", "metadata"}
    assert expression.result_keys == frozenset({"ocr", "classify"})
    assert parse("1 < 2").names == frozenset()
    assert parse("entity.a").result_keys == frozenset()
    assert parse("results[entity.kind]").result_keys is None
    assert parse("results[entity.kind]").names == {"entity", "results"}
    assert parse("len(results)").result_keys is None


def test_names_can_be_narrowed() -> None:
    assert parse("result.ok").names == {"result"}
    with pytest.raises(ConditionError, match="Known here: entity, metadata, results"):
        parse("result.ok", names=STEP_NAMES)


def test_the_same_text_is_parsed_once() -> None:
    assert parse("entity.total > 41") is parse("entity.total > 41")


@pytest.mark.parametrize("plain", [None, True, False, 0, -7, 1.25, -1e-7, "", 'it\'s "x"\n\t\r\\', "ключ"])
def test_a_literal_evaluates_to_the_value_it_was_made_from(plain: str | int | float | bool | None) -> None:
    assert parse(literal(plain)).evaluate({}) == plain
