"""The labelled documents once more, as worse copies of themselves: rescanned, blurred, tilted, made smaller.

Made when they are asked for and kept nowhere but as readings. They hold more mistakes than the documents do, so they
tell how confidence ranks where reading is hard; a copy is of the same sender as its original.
"""

import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from corpus import Document, data_folder

from docmill.documents.limits import Limits
from docmill.documents.parsing import read_whole
from docmill.documents.reading import Reading
from docmill.testing.papers.scans import encoded, worn

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_PAGES = 3
"""Of a document that is rescanned: what matters stands on the first, and OCR takes a second for each."""


@dataclass(frozen=True, kw_only=True)
class Wear:
    """What was done to a copy."""

    name: str
    scale: float = 1.0
    """Of an image; of a PDF, in 150 dots per inch."""
    blur: float = 0.0
    """In pixels."""
    noise: float = 0.0
    """In grey levels."""
    tilt: float = 0.0
    """In degrees."""
    quality: int = 88


LIGHT = Wear(name="light", scale=1.0, noise=4.0, tilt=0.4, quality=80)
SMALL = Wear(name="small", scale=0.7, noise=3.0, tilt=-0.6, quality=70)
SOFT = Wear(name="soft", scale=0.85, blur=0.9, noise=6.0, tilt=0.9, quality=60)
WEARS = (LIGHT, SMALL, SOFT)


def copies(documents: Sequence[Document], folder: str, wears: Sequence[Wear], kept: Path) -> list[Document]:
    """Each document of a folder of the labelled ones, worn in each of these ways; the readings are kept."""
    made = []
    for wear in wears:
        for document in documents:
            file = data_folder() / folder / document.labelled.file
            if document.reading.sha256 and file.exists():
                name = f"{document.labelled.file}#{wear.name}"
                labelled = replace(document.labelled, file=name, layout=f"worn {wear.name}")
                made.append(replace(document, labelled=labelled, reading=_reading(file, folder, wear, kept)))
    return made


def _reading(file: Path, folder: str, wear: Wear, kept: Path) -> Reading:
    store = kept / "worn" / f"{folder}_{file.stem}_{wear.name}.json"
    if store.exists():
        return Reading.from_json(json.loads(store.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as scratch:
        suffix = ".jpg" if file.suffix != ".pdf" else ".tiff"
        copy = Path(scratch) / f"copy{suffix}"
        copy.write_bytes(_copy(file, wear))
        reading = read_whole(str(copy), Limits())
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_text(json.dumps(reading.as_json()), encoding="utf-8")
    return reading


def _copy(file: Path, wear: Wear) -> bytes:
    random = Random(f"{wear.name} {file.name}")
    images = [_worn(image, wear, random) for image in _images(file, wear)]
    return encoded(images, "JPEG" if file.suffix != ".pdf" else "TIFF")


def _images(file: Path, wear: Wear) -> "Iterator[Image]":
    from PIL import Image

    if file.suffix != ".pdf":
        with Image.open(file) as image:
            wide, high = image.size
            yield image.convert("L").resize((round(wide * wear.scale), round(high * wear.scale)))
        return
    import pypdfium2

    with pypdfium2.PdfDocument(file) as document:
        for number in range(min(_MOST_PAGES, len(document))):
            yield document[number].render(scale=150 * wear.scale / 72).to_pil().convert("L")


def _worn(image: "Image", wear: Wear, random: Random) -> "Image":
    from PIL import Image, ImageFilter

    if wear.blur:
        image = image.filter(ImageFilter.GaussianBlur(wear.blur))
    image = worn(image, random, noise=wear.noise, tilt=wear.tilt)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=wear.quality)
    return Image.open(io.BytesIO(stream.getvalue())).convert("L")
