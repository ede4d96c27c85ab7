"""Letters that are set apart spell the words that a person reads; other single letters stay as they are."""

from docmill.documents.reading import Box
from docmill.extraction.local.invoices.sheet import Token
from docmill.extraction.local.invoices.spaced import spelled

HEIGHT = 0.02


def run(*pieces: str, gap: float = 0.004, wide: float = 0.012) -> list[Token]:
    """Pieces on one line with a gap after each, a wide one after those that end in `_`."""
    tokens, at = [], 0.1
    for piece in pieces:
        text = piece.rstrip("_")
        right = at + 0.01 * len(text)
        box = Box(at, 0.1, right, 0.1 + HEIGHT)
        tokens.append(Token(text, at, 0.1, right, 0.1 + HEIGHT, 0.1 + HEIGHT / 2, HEIGHT, box))
        at = right + (wide if piece.endswith("_") else gap)
    return tokens


def words(tokens: list[Token]) -> list[str]:
    return [token.text for token in spelled(tokens)]


def test_wider_gaps_part_the_words() -> None:
    assert words(run(*"HOTE", "L_", *"MIRADOR")) == ["HOTEL", "MIRADOR"]


def test_pairs_that_are_set_close_stay_together() -> None:
    assert words(run("N", "°_", "D", "E_", "F", "AC", "T", "U", "R", "E")) == ["N°", "DE", "FACTURE"]


def test_a_word_stands_where_its_letters_stood() -> None:
    tokens = run(*"TOTAL")

    (word,) = spelled(tokens)

    assert (word.left, word.right) == (tokens[0].left, tokens[-1].right)
    assert (word.box.left, word.box.right) == (tokens[0].box.left, tokens[-1].box.right)


def test_words_digits_and_unevenly_spread_letters_stay_as_they_are() -> None:
    for pieces in (["To", "be", "or", "not", "to_", "be"], [*"4711", "0"], ["A", "B", "C"]):
        assert words(run(*pieces)) == [piece.rstrip("_") for piece in pieces]
    uneven = [*run(*"AB", gap=0.001), *(token._replace(left=token.left + 0.2) for token in run(*"CDEFG", gap=0.012))]
    assert len(spelled(uneven)) == len(uneven)


def test_letters_that_overlap_or_run_backwards_are_left_as_they_are() -> None:
    for tokens in (run(*"INVOICE", gap=-0.004), run(*"INVOICE")[::-1]):
        assert words(tokens) == [token.text for token in tokens]
