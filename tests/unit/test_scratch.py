"""Tests keep their files in memory where there is room, and nowhere else."""

import os
import tempfile
from pathlib import Path

import pytest

from docmill.testing.scratch import folder_in_memory, keep_in_memory


def test_the_folder_is_made_once_and_others_may_pass_through_it(tmp_path: Path) -> None:
    folder = folder_in_memory({}, tmp_path, room=1)
    assert folder == tmp_path / f"docmill-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o711
    assert folder_in_memory({}, tmp_path, room=1) == folder


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_whoever_names_a_folder_gets_that(tmp_path: Path, name: str) -> None:
    assert folder_in_memory({name: "/somewhere"}, tmp_path, room=1) is None
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_is_none(tmp_path: Path) -> None:
    there = os.statvfs(tmp_path)
    assert folder_in_memory({}, tmp_path, room=there.f_blocks * there.f_frsize + 1) is None
    assert list(tmp_path.iterdir()) == []


def test_where_no_program_may_run_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *before, flags, longest = os.statvfs(tmp_path)
    forbidding = os.statvfs_result((*before, flags | os.ST_NOEXEC, longest))
    monkeypatch.setattr(os, "statvfs", lambda _: forbidding)
    assert folder_in_memory({}, tmp_path, room=1) is None


def test_a_machine_without_is_left_as_it_is(tmp_path: Path) -> None:
    assert folder_in_memory({}, tmp_path / "missing", room=1) is None


def test_what_somebody_else_put_there_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"docmill-{os.geteuid()}").symlink_to(tmp_path / "theirs")
    assert folder_in_memory({}, tmp_path, room=1) is None


def test_this_process_and_its_children_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    monkeypatch.setattr(tempfile, "tempdir", None)
    keep_in_memory(tmp_path)
    assert tempfile.gettempdir() == str(tmp_path)
    assert os.environ["TMPDIR"] == str(tmp_path)
