"""A file on disk for bytes that a test has made."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[bytes], str]:
    """The path of a file with these bytes, under a name that says nothing."""

    def store(data: bytes) -> str:
        path = tmp_path / "file"
        path.write_bytes(data)
        return str(path)

    return store
