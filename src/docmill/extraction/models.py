"""What extraction has learned: the models that ship with the package, and those that `docmill learn` fitted here.

Learned models lie under `models/` of the home folder, a numbered folder for each time; the file `current` names the one
in use. A folder is written under another name, synced and renamed, and only then named in `current`: whoever reads
finds a whole set, before or after. What a set lacks is taken from the package.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmill.model.errors import DocmillError

if TYPE_CHECKING:
    # Whoever asks only which set is in use needs none of the readers.
    from docmill.extraction.classification import Classifier
    from docmill.extraction.confidence import Calibration
    from docmill.extraction.local.training import Model

CURRENT = "current"
CALIBRATION = "calibration"
CLASSIFICATION = "classification"
_NUMBERED = re.compile(r"\d{4,}", re.ASCII)


class ModelsUnusable(DocmillError):
    """A stored model cannot be read; the message says which and how to go on without it."""

    code = "models_unusable"


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models in use. Each is read when it is first needed."""

    folder: Path | None = None
    """Of a learned set; None: as shipped."""
    _rankers: dict[str, "Model"] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def calibration(self) -> "Calibration":
        """How signals become confidence."""
        from docmill.extraction.confidence import Calibration

        return self._read(CALIBRATION, Calibration.from_json) if self._has(CALIBRATION) else Calibration()

    @cached_property
    def classifier(self) -> "Classifier":
        """What tells types of documents apart."""
        from docmill.extraction.classification import Classifier

        found: Classifier = self._read(CLASSIFICATION, Classifier.from_json)
        return found

    def ranker(self, kind: str) -> "Model":
        """The local reader's model of `receipt` or `invoice`."""
        from docmill.extraction.local.training import Model

        if kind not in self._rankers:
            self._rankers[kind] = self._read(kind, Model.from_json)
        return self._rankers[kind]

    def with_ranker(self, kind: str, model: "Model") -> "Models":
        """The same set with another model of one kind."""
        return Models(folder=self.folder, _rankers={**self._rankers, kind: model})

    @property
    def version(self) -> str:
        """For a person and for records: which set this is."""
        return "shipped" if self.folder is None else self.folder.name

    def _has(self, name: str) -> bool:
        return (self.folder is not None and (self.folder / f"{name}.json").is_file()) or _shipped(name).is_file()

    def _read(self, name: str, make: Any) -> Any:
        own = self.folder and self.folder / f"{name}.json"
        try:
            if own is not None and own.is_file():
                return make(json.loads(own.read_bytes()))
            return make(json.loads(_shipped(name).read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise ModelsUnusable(
                f"The model {own or name} cannot be read: {error}. "
                "`docmill learn --reset` goes back to the models that ship with Docmill.",
                model=name,
            ) from error


def _shipped(name: str) -> Any:
    return resources.files("docmill.extraction.local").joinpath("models", f"{name}.json")


@lru_cache(maxsize=4)
def load(folder: str | None = None) -> Models:
    """The set in this folder, or the shipped one; a process reads each once."""
    return Models(folder=None if folder is None else Path(folder))


def current(models: Path) -> Path | None:
    """The folder of the learned set in use; None: the shipped models are."""
    try:
        name = (models / CURRENT).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    folder = models / name
    return folder if _NUMBERED.fullmatch(name) and folder.is_dir() else None


def fingerprint(models: Path) -> str:
    """The same for the same learned set, on whatever machine it lies; empty as long as the shipped models are used."""
    folder = current(models)
    if folder is None:
        return ""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.json")):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def install(models: Path, files: Mapping[str, Mapping[str, Any]], *, about: Mapping[str, Any]) -> Path:
    """Store a set and put it to use; returns its folder. `about` says what it was fitted on, for a person."""
    models.mkdir(parents=True, exist_ok=True)
    numbers = [int(path.name) for path in models.iterdir() if _NUMBERED.fullmatch(path.name)]
    folder = models / f"{max(numbers, default=0) + 1:04}"
    made = models / f".{folder.name}.{os.getpid()}"
    made.mkdir()
    try:
        for name, data in {**files, "about": about}.items():
            _write(made / f"{name}.json", json.dumps(data, sort_keys=True, ensure_ascii=False) + "\n")
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    _sync(models)
    use(models, folder)
    return folder


def use(models: Path, folder: Path | None) -> None:
    """Name the set in use; None goes back to the shipped one. The sets stay where they are."""
    if folder is None:
        (models / CURRENT).unlink(missing_ok=True)
        return
    made = models / f".{CURRENT}.{os.getpid()}"
    _write(made, folder.name + "\n")
    made.replace(models / CURRENT)
    _sync(models)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
