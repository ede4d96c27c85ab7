"""The measures of confidence, against cases worked out by hand and against what must hold for any outcomes."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.extraction.reliability import (
    Outcome,
    auroc,
    calibration_error,
    slices,
    straight_through,
    threshold_for,
)

OUTCOMES = st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), max_size=40)


def test_confidence_that_ranks_perfectly_has_an_auroc_of_one() -> None:
    assert auroc([(0.9, True), (0.8, True), (0.3, False)]) == 1.0


def test_confidence_that_ranks_the_wrong_way_round_has_an_auroc_of_nought() -> None:
    assert auroc([(0.1, True), (0.9, False)]) == 0.0


def test_equal_confidence_counts_half() -> None:
    # Four pairs: 0.9 beats both wrong ones; 0.5 ties with one and beats the other.
    assert auroc([(0.9, True), (0.5, True), (0.5, False), (0.2, False)]) == 3.5 / 4


@pytest.mark.parametrize("outcomes", [[], [(0.5, True)], [(0.5, False), (0.7, False)]])
def test_with_nothing_to_tell_apart_there_is_no_auroc(outcomes: list[Outcome]) -> None:
    assert auroc(outcomes) is None


@given(OUTCOMES)
def test_auroc_is_the_share_of_pairs_in_which_right_beats_wrong(outcomes: list[Outcome]) -> None:
    right = [stated for stated, good in outcomes if good]
    wrong = [stated for stated, good in outcomes if not good]
    pairs = list(product(right, wrong))
    expected = sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs) if pairs else None
    assert auroc(outcomes) == (None if expected is None else pytest.approx(expected))


def test_calibration_error_weighs_each_bin_by_what_it_holds() -> None:
    # Three at 0.95 of which two are right: off by |2.85 - 2|; one at 0.25 which is wrong: off by 0.25.
    outcomes = [(0.95, True), (0.95, True), (0.95, False), (0.25, False)]
    assert calibration_error(outcomes) == pytest.approx((0.85 + 0.25) / 4)


def test_certainty_that_is_right_has_no_calibration_error() -> None:
    assert calibration_error([(1.0, True), (0.0, False)]) == 0.0


def test_without_values_there_is_no_calibration_error() -> None:
    assert calibration_error([]) is None


@given(OUTCOMES.filter(bool))
def test_calibration_error_is_that_of_the_drawn_slices(outcomes: list[Outcome]) -> None:
    drawn = sum(part.n * abs(part.stated - part.right) for part in slices(outcomes)) / len(outcomes)
    assert calibration_error(outcomes) == pytest.approx(drawn)
    assert sum(part.n for part in slices(outcomes)) == len(outcomes)


def test_the_threshold_is_the_lowest_that_keeps_the_precision() -> None:
    outcomes = [(0.9, True), (0.8, True), (0.7, False), (0.6, True)]
    assert threshold_for(outcomes, 0.99) == 0.8
    assert threshold_for(outcomes, 0.75) == 0.6


def test_values_of_equal_confidence_stand_or_fall_together() -> None:
    assert threshold_for([(0.9, True), (0.9, False)], 0.99) is None


@given(OUTCOMES, st.sampled_from([0.5, 0.9, 0.99]))
def test_what_reaches_the_threshold_has_the_precision(outcomes: list[Outcome], precision: float) -> None:
    threshold = threshold_for(outcomes, precision)
    if threshold is not None:
        taken = [good for stated, good in outcomes if stated >= threshold]
        assert sum(taken) >= precision * len(taken)


def test_a_document_passes_only_as_a_whole() -> None:
    outcomes = [(0.9, True), (0.8, True), (0.9, True), (0.4, False)]
    assert straight_through(outcomes, [(0.9, 0.8), (0.9, 0.4)]) == (0.5, 0.8)


def test_a_document_that_lacks_what_is_required_does_not_pass() -> None:
    assert straight_through([(0.9, True), (0.9, True)], [None, (0.9,)]) == (0.5, 0.9)


def test_nothing_passes_when_no_confidence_is_high_enough() -> None:
    assert straight_through([(0.9, False)], [(0.9,)]) == (0.0, None)
