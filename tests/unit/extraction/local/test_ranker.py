"""The ranker learns which candidate is meant, that a field may be missing, and survives being stored."""

import json
from decimal import Decimal

from docmill.extraction.local.boosting import Growth
from docmill.extraction.local.candidates import Candidate, closest, equal
from docmill.extraction.local.ranker import NONE, Example, Ranker, fit
from docmill.extraction.local.receipts.amounts import label_amount


def candidate(value: str, **features: float) -> Candidate:
    return Candidate(value=value, raw=value, spans=(), features=features)


def examples() -> list[Example]:
    """The labelled candidate is right; without any label the field is not there."""
    made = []
    for number in range(40):
        other = {"depth": (number % 7) / 7, "left=cash": 1.0}
        if number % 4 == 3:
            made.append(Example(rows=[other, other, NONE], right=[False, False, True], group=str(number % 9)))
        else:
            labelled = {"depth": (number % 5) / 5, "left=total": 1.0}
            made.append(Example(rows=[other, labelled, NONE], right=[False, True, False], group=str(number % 9)))
    return made


def test_the_labelled_candidate_wins() -> None:
    ranker = fit(examples())
    choice = ranker.choose([candidate("1", **{"left=cash": 1.0}), candidate("2", **{"left=total": 1.0})])
    assert choice.candidate is not None
    assert choice.candidate.value == "2"
    assert choice.probability > 0.5
    assert choice.margin > 0


def test_a_field_can_be_missing() -> None:
    choice = fit(examples()).choose([candidate("1", **{"left=cash": 1.0})])
    assert choice.candidate is None
    assert choice.alternatives[0][0] == "1"


def test_candidates_with_one_value_speak_for_each_other() -> None:
    even = Ranker(weights={"none": -9.0})
    choice = even.choose([candidate("1"), candidate("2"), candidate("2")])
    assert choice.candidate is not None
    assert choice.candidate.value == "2"
    assert len(choice.agreeing) == 2
    assert abs(choice.probability - 2 / 3) < 0.01


def test_trees_learn_what_a_sum_cannot() -> None:
    rows = [{"a": a, "b": b, "at": a / 50 + b / 70} for a, b in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]]
    either = [Example(rows=rows, right=[False, True, True, False], group=str(number)) for number in range(60)]
    grown = fit(either, growth=Growth(trees=40, depth=2, least=0.5, smoothing=1.0)).scores(rows)
    assert min(grown[1], grown[2]) > max(grown[0], grown[3])


def test_the_same_examples_give_the_same_ranker_and_it_can_be_stored() -> None:
    first, second = fit(examples()), fit(examples())
    assert first.as_json() == second.as_json()
    stored = Ranker.from_json(json.loads(json.dumps(first.as_json())))
    row = {"depth": 0.4, "left=total": 1.0}
    assert abs(stored.scores([row])[0] - first.scores([row])[0]) < 0.01


def test_words_that_few_groups_share_are_not_learned() -> None:
    one = [Example(rows=[{"left=acme": 1.0}, NONE], right=[True, False], group="acme") for _ in range(20)]
    assert "left=acme" not in fit(one).weights


def test_an_amount_is_learned_from_its_label_whatever_zeros_end_either() -> None:
    options = [candidate("18.800"), candidate("18.80"), candidate("18800.00")]
    assert equal(label_amount, Decimal)(options, "18.80000") == [True, True, False]


def test_labels_are_matched_by_meaning_or_by_resemblance() -> None:
    options = [candidate("18.80"), candidate("20.00")]
    assert equal(lambda label: label.removeprefix("RM "))(options, "RM 18.80") == [True, False]
    names = [candidate("HARVEST M00N GROCER"), candidate("HARVEST"), candidate("TAX INVOICE")]
    assert closest(0.8)(names, "Harvest Moon Grocer") == [True, False, False]
    assert closest(0.8)(names, "Somebody Else") == [False, False, False]
