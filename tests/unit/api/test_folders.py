"""Folders of the server are not shown over the API."""

from pathlib import Path

import pytest

from docmill.api.folders import output_roots, shown_metadata, shown_result
from docmill.settings import Settings


def test_outputs_are_shown_by_their_paths_below_the_folder_of_the_outputs(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    roots = output_roots({"out": str(tmp_path / "out")}, settings)
    written = [f"{tmp_path}/home/outputs/json/7.json", f"{tmp_path}/out/7.parquet", "/was/once/json/7.json"]
    result = {"outputs": written, "locked_seen": {}, "confidence": 0.9}
    shown = shown_result(result, roots)
    assert shown == {"outputs": ["json/7.json", "7.parquet", "7.json"], "locked_seen": {}, "confidence": 0.9}
    assert result["outputs"] == written


@pytest.mark.parametrize("result", [None, [], "/srv/x", {"outputs": ["/srv/x"]}, {"outputs": 3, "locked_seen": {}}])
def test_what_steps_of_others_say_is_shown_as_they_say_it(result: object, tmp_path: Path) -> None:
    assert shown_result(result, [tmp_path]) == result


def test_the_folder_that_a_job_was_given_is_not_shown() -> None:
    assert shown_metadata({"out": "/srv/out", "mine": 1}) == {"mine": 1}
