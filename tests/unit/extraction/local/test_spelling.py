"""Words are put right where they were surely misread, and left alone otherwise."""

import pytest

from docmill.extraction.local.spelling import Speller, learn_pairs, learn_words

SPELLER = Speller(
    {"JALAN": 40, "SELANGOR": 30, "TAMAN": 30, "ALAM": 20, "SHAH": 20, "STATIONERY": 9, "SHOP": 5, "MALL": 8}
    | {"LUMPUR": 25, "KUALA": 25, "RESTAURANT": 12, "SDN": 50, "BHD": 50},
    {"SHAH ALAM": 9, "KUALA LUMPUR": 9},
    ["CAKE"],
)


@pytest.mark.parametrize(
    ("read", "meant"),
    [
        ("JA:AN SS4C/5", "JALAN SS4C/5"),
        ("SE_ANGOR", "SELANGOR"),
        ("KUALA L.UMPUR", "KUALA LUMPUR"),
        ("Ma11", "Mall"),
        ("SHAH ALAN", "SHAH ALAM"),
        ("JAL AN SS15/4D, Sel angor.", "JALAN SS15/4D, Selangor."),
        ("ORIENTSTATIONERYSHOP", "ORIENT STATIONERY SHOP"),
        ("SHAHALAM", "SHAH ALAM"),
        ("JalanSS21/39", "Jalan SS21/39"),
        ("43000KAJANG", "43000 KAJANG"),
        ("G3O", "G30"),
    ],
)
def test_what_was_misread_or_run_together_is_put_right(read: str, meant: str) -> None:
    assert SPELLER.mend(read) == meant


def test_words_in_which_no_space_was_lost_are_not_parted() -> None:
    assert SPELLER.mend("TAMANMALL, SHAHALAM", whole={"TAMANMALL"}) == "TAMANMALL, SHAH ALAM"
    assert SPELLER.mend("SELAMGOR", whole={"SELAMGOR"}) == "SELANGOR"


def test_pieces_that_are_often_read_do_not_keep_a_word_torn() -> None:
    torn = Speller({"SELANGOR": 30, "SRI": 20, "KANDI": 8, "SRIKANDI": 6}, right=["SEL", "ANGOR"])
    assert torn.mend("SEL ANGOR, SRI KANDI") == "SELANGOR, SRI KANDI"


@pytest.mark.parametrize(
    "text", ["U13/X", "1851-A & 1851-B", "CAKE HOUSE", "RESTAURANTS", "S.H.H.", "D.I.Y.", "12.50", "PAPPARICH", "(M)"]
)
def test_what_may_be_right_is_left_alone(text: str) -> None:
    assert SPELLER.mend(text, names=True) == text


def test_words_are_counted_by_group_and_whole_names_are_not_kept() -> None:
    texts = [("a", "Moon Cafe Jalan Raya"), ("a", "Moon Cafe"), ("b", "Sun Cafe, Jalan Raya")]
    assert learn_words(texts) == {"CAFE": 2, "JALAN": 2, "MOON": 1, "RAYA": 2, "SUN": 1}
    assert learn_pairs(texts) == {"CAFE JALAN": 2, "JALAN RAYA": 2}
