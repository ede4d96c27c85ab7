"""What steps say, without the folders of the server: whoever may see jobs need not know where its disks are."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from docmill.settings import Settings

_OUT = "out"
"""In the metadata of a job: the folder for its outputs, if it is another than that of the settings."""
_WRITTEN, _LOCKED = "outputs", "locked_seen"
"""The result of a step that writes outputs has both; what is only called `outputs` is somebody else's."""


def output_roots(metadata: Mapping[str, Any], settings: Settings) -> Sequence[Path]:
    """The folders below which the outputs of a job may be."""
    own = metadata.get(_OUT)
    return [*([Path(own)] if isinstance(own, str) else []), settings.output_root]


def shown_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a job without its folder: nobody can give one over the API either."""
    return {name: value for name, value in metadata.items() if name != _OUT}


def shown_result(result: object, roots: Sequence[Path]) -> object:
    """The result of a step; outputs by their paths below the folder of the outputs, as nobody else's paths are."""
    if not isinstance(result, Mapping) or _LOCKED not in result or not isinstance(result.get(_WRITTEN), list):
        return result
    return {**result, _WRITTEN: [_below(str(path), roots) for path in result[_WRITTEN]]}


def _below(path: str, roots: Sequence[Path]) -> str:
    file = PurePath(path)
    # Of a folder that the settings do not name any more, the file alone: its name is the id of the document.
    return next((file.relative_to(root).as_posix() for root in roots if file.is_relative_to(root)), file.name)
