"""Learned models: a set is whole or not there, and the shipped ones are what remains."""

import json
from pathlib import Path

import pytest

from docmill.documents.blobs import FolderBlobs
from docmill.documents.links import Links
from docmill.extraction.confidence import ANY, Calibration, Formula
from docmill.extraction.models import Models, ModelsUnusable, current, fingerprint, install, use
from docmill.services.ordering import order_of

FITTED = Calibration(formulas={ANY: Formula(bias=1.5, weights={})})


def test_without_a_learned_set_the_shipped_models_are_used(tmp_path: Path) -> None:
    assert current(tmp_path / "models") is None
    assert Models().version == "shipped"


def test_an_installed_set_is_the_current_one_and_keeps_those_before(tmp_path: Path) -> None:
    first = install(tmp_path, {"calibration": FITTED.as_json()}, about={"documents": 3})
    second = install(tmp_path, {"calibration": FITTED.as_json()}, about={"documents": 5})
    assert [first.name, second.name] == ["0001", "0002"]
    assert current(tmp_path) == second
    assert json.loads((first / "about.json").read_text()) == {"documents": 3}
    use(tmp_path, first)
    assert current(tmp_path) == first
    use(tmp_path, None)
    assert current(tmp_path) is None


def test_what_one_set_read_does_not_answer_for_another(tmp_path: Path) -> None:
    models = tmp_path / "models"
    assert fingerprint(models) == ""
    install(models, {"calibration": FITTED.as_json()}, about={"documents": 3})
    first = fingerprint(models)
    install(models, {"calibration": Calibration().as_json()}, about={"documents": 3})
    assert len({"", first, fingerprint(models)}) == 3
    use(models, models / "0001")
    assert fingerprint(models) == first
    blobs = FolderBlobs(tmp_path / "blobs", lambda: Links(b"secret"))
    versions = {order_of(schema="invoice", model=None, out=None, blobs=blobs, learned=each) for each in ("", first)}
    assert len({order.schema_version for order in versions}) == 2


def test_what_a_set_lacks_is_taken_from_the_package(tmp_path: Path) -> None:
    models = Models(folder=install(tmp_path, {"calibration": FITTED.as_json()}, about={}))
    assert models.calibration.formulas[ANY].bias == 1.5
    assert models.classifier.features


def test_nothing_half_written_is_left_when_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        install(tmp_path, {"calibration": {"not JSON": object()}}, about={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../elsewhere", "", "0009", "0001\n0002", "ü"])
def test_a_current_file_that_names_no_set_means_the_shipped_models(tmp_path: Path, name: str) -> None:
    install(tmp_path, {}, about={})
    (tmp_path / "current").write_text(name, encoding="utf-8")
    assert current(tmp_path) is None


def test_a_model_that_cannot_be_read_says_how_to_go_on(tmp_path: Path) -> None:
    folder = install(tmp_path, {"calibration": {"version": 99}}, about={})
    with pytest.raises(ModelsUnusable, match="docmill learn --reset"):
        _ = Models(folder=folder).calibration
