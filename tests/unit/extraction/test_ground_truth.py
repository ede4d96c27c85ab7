"""Labels: what a row may say, and that a mistake is told with its line."""

import pytest

from docmill.extraction.ground_truth import LabelsInvalid, read_labels


def test_a_row_names_a_file_and_what_stands_in_it() -> None:
    (row,) = read_labels('{"file": "a/b.pdf", "fields": {"total": 12.5, "due_date": null}, "layout": "natural"}')
    assert (row.file, row.fields, row.layout) == ("a/b.pdf", {"total": "12.5", "due_date": None}, "natural")


def test_empty_lines_and_keys_of_others_are_left_alone() -> None:
    text = '\n{"file": "a.pdf", "fields": {"total": "1"}, "source": {"deep": [1]}}\n\n'
    assert [row.file for row in read_labels(text)] == ["a.pdf"]


def test_where_nobody_marked_what_is_visible_everything_is() -> None:
    marked, unmarked = read_labels(
        '{"file": "a", "fields": {"total": "1", "tax": "2"}, "visible": {"total": true}}\n'
        '{"file": "b", "fields": {"total": "1"}, "visible": null}'
    )
    assert [marked.sees("total"), marked.sees("tax"), unmarked.sees("total")] == [True, False, True]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"fields": {"total": "1"}}', '"file" is missing'),
        ('{"file": "a"}', '"fields" is missing'),
        ('{"file": "a", "fields": null}', '"fields" is missing'),
        ('{"file": "../a", "fields": {"total": "1"}}', "must lie in the folder"),
        ('{"file": "/a", "fields": {"total": "1"}}', "must lie in the folder"),
        ('{"file": "a", "fields": {"total": [1]}}', 'the value of "total"'),
        ('{"file": "a", "fields": {"total": true}}', 'the value of "total"'),
        ('{"file": "a", "fields": {"total": "1"}, "visible": {"total": "yes"}}', '"visible"'),
        ('{"file": "a", "fields": {"total": "1"}, "layout": 3}', '"layout"'),
    ],
)
def test_a_faulty_row_is_told_with_its_line(line: str, told: str) -> None:
    good = '{"file": "good.pdf", "fields": {"total": "1"}}'
    with pytest.raises(LabelsInvalid, match=r"labels\.jsonl:2: ") as caught:
        read_labels(f"{good}\n{line}\n{good.replace('good', 'better')}")
    assert told in caught.value.message


def test_a_file_that_is_labelled_twice_is_told() -> None:
    row = '{"file": "a.pdf", "fields": {"total": "1"}}'
    with pytest.raises(LabelsInvalid, match="in line 1"):
        read_labels(f"{row}\n{row}")


def test_of_many_faults_the_first_are_told_and_all_are_kept() -> None:
    with pytest.raises(LabelsInvalid, match="and 3 more") as caught:
        read_labels("\n".join("{" * 1 for _ in range(8)))
    assert len(caught.value.details["faults"]) == 8  # type: ignore[arg-type]


def test_labels_without_a_row_say_what_to_write() -> None:
    with pytest.raises(LabelsInvalid, match="Write a line for each document"):
        read_labels("\n\n")


def test_missing_files_and_faulty_rows_are_told_together() -> None:
    text = '{"file": "gone.pdf", "fields": {}}\n{"file": "here.pdf", "fields": {}}\n{"file": '
    with pytest.raises(LabelsInvalid) as caught:
        read_labels(text, exists=lambda file: file == "here.pdf")
    assert "labels.jsonl:1: there is no file gone.pdf" in caught.value.message
    assert "labels.jsonl:3: not JSON" in caught.value.message
