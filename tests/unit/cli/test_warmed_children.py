"""The children that `docmill process` starts early: ended with the command, however it ends."""

from dataclasses import dataclass

import pytest

from docmill import bootstrap
from docmill.cli.process import _warmed
from docmill.settings import Settings


@dataclass
class _Children:
    closed: bool = False

    def warm(self, function: object, count: int) -> None:
        """Nobody is started."""

    def abandon(self) -> None:
        """Nobody was started."""

    def close(self) -> None:
        """Noted."""
        self.closed = True


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> _Children:
    made = _Children()
    monkeypatch.setattr(bootstrap, "children_of", lambda settings: made)
    return made


def test_they_end_with_the_command(children: _Children) -> None:
    with _warmed(Settings(), ["a.pdf"]):
        assert not children.closed
    assert children.closed


def test_they_end_with_a_command_that_fails(children: _Children) -> None:
    with pytest.raises(ValueError, match="no such schema"), _warmed(Settings(), ["a.pdf"]):
        raise ValueError("no such schema")
    assert children.closed


def test_they_end_with_a_command_that_is_interrupted(children: _Children) -> None:
    with pytest.raises(KeyboardInterrupt), _warmed(Settings(), ["a.pdf"]):
        raise KeyboardInterrupt
    assert children.closed
