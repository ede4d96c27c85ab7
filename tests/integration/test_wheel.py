"""What is installed from the wheel has the files that are not Python."""

import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def test_templates_in_the_source_are_in_the_wheel(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(".yaml")}
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.yaml")}
    assert "docmill/templates/shipped/transaction-import.yaml" in source
    assert packed == source
