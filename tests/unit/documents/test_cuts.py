"""What a limit cut short is known as such, so that it does not answer once the limit is raised."""

from dataclasses import replace
from pathlib import Path

from PIL import Image

from docmill.documents.limits import Limits
from docmill.documents.parsing import Outline, assemble, outline
from docmill.documents.reading import Reading
from docmill.extraction.combining import combine
from docmill.extraction.extracting import extract
from docmill.extraction.result import Extraction
from docmill.steps.document_children import pack
from docmill.steps.document_cuts import cut_short
from tests.unit.documents.making import text_pdf

NARROW = Limits(max_frames=1, page_characters=5)


def frames(folder: Path, count: int) -> str:
    path = folder / f"{count}.tif"
    first, *others = [Image.new("L", (20, 20), number) for number in range(count)]
    first.save(path, save_all=True, append_images=others)
    return str(path)


def page(folder: Path, text: str) -> str:
    path = folder / "page.pdf"
    path.write_bytes(text_pdf([(50.0, 700.0, text)]))
    return str(path)


def read(path: str, limits: Limits) -> Reading:
    # As it comes out of a checkpoint and out of a blob.
    seen = Outline.from_json(outline(path, limits).as_json())
    return Reading.from_json(assemble(seen, ()).as_json())


def test_frames_and_characters_that_were_left_out_are_counted_as_cut(tmp_path: Path) -> None:
    assert read(frames(tmp_path, 2), NARROW).cut == {"max_frames": 1}
    assert read(page(tmp_path, "Invoice 4711 of the garden"), NARROW).cut == {"page_characters": 5}
    for path, limits in ((frames(tmp_path, 1), NARROW), (frames(tmp_path, 2), Limits()), (page(tmp_path, "a"), NARROW)):
        assert read(path, limits).cut == {}


def test_what_was_cut_answers_until_the_limit_is_higher(tmp_path: Path) -> None:
    reading = read(frames(tmp_path, 3), Limits(max_frames=2))
    extraction = extract(reading, "invoice")
    combined = combine(replace(extraction, cut={}), extraction)
    for each in (reading, extraction, combined, Extraction.from_json(extraction.as_json())):
        kept = pack(each.as_json())
        assert [cut_short(kept, Limits(max_frames=most)) for most in (1, 2, 3)] == [False, False, True]


def test_a_document_that_speaks_of_cuts_was_not_cut_by_that(tmp_path: Path) -> None:
    reading = read(page(tmp_path, 'it says "cut":{"max_frames":1} here'), Limits())
    assert reading.pages[0].lines
    assert not cut_short(pack(reading.as_json()), Limits())
