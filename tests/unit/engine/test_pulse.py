"""A loop that stands still is noticed; a process that was stopped is not taken for one."""

from docmill.engine.pulse import Watch


class Beats:
    """A pulse that the test beats."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        return self.count


def test_a_loop_that_beats_between_two_looks_is_relied_on() -> None:
    beats = Beats()
    watch = Watch(beats, patience=30.0)
    for _ in range(100):
        beats.count += 1
        assert watch.look(10.0)


def test_a_silent_loop_is_given_up_after_the_patience_and_relied_on_again_when_it_beats() -> None:
    beats = Beats()
    watch = Watch(beats, patience=30.0)
    assert [watch.look(10.0) for _ in range(6)] == [True, True, True, False, False, False]
    beats.count += 1
    assert [watch.look(10.0) for _ in range(4)] == [True, True, True, False]


def test_time_in_which_nobody_could_look_does_not_count() -> None:
    """However long the process was stopped: one look on waking counts one wait, and by the next the loop has beaten."""
    beats = Beats()
    watch = Watch(beats, patience=30.0)
    assert [watch.look(10.0) for _ in range(2)] == [True, True]
    assert watch.look(10.0)
    beats.count += 1
    assert watch.look(10.0)
