"""Outputs to look at."""

from pathlib import Path

import pytest

from docmill.outputs.places import OutputSettings

from .samples import filled


@pytest.fixture
def settings(tmp_path: Path) -> OutputSettings:
    return filled(tmp_path)
