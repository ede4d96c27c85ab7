"""Folders whose names last: what a power cut must not take back."""

import os
from pathlib import Path


def made(folder: Path) -> list[Path]:
    """Make a folder; returns those that got a new entry and must be synced for it to last."""
    missing = []
    place = folder
    while not place.is_dir():
        missing.append(place)
        place = place.parent
    for place in reversed(missing):
        place.mkdir(exist_ok=True)
    return [place.parent for place in missing]


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
