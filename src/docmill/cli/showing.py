"""`docmill show`: a page of a document as a picture, with the evidence for every value on it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json

if TYPE_CHECKING:
    from docmill.services.showing import Drawing

EXAMPLES = """\
Examples:
  docmill show inbox/bill.pdf                  by its file
  docmill show 0199c3                          its first page, as 0199c3….png
  docmill show 0199c3 --page 2 --output p2.png"""


def show(
    document: Annotated[str, Parameter(name="DOCUMENT", help="The document's id, its first digits, or its file.")],
    /,
    *,
    page: Annotated[int, Parameter(metavar="N", help="Which page, from 1.", validator=validators.Number(gte=1))] = 1,
    output: Annotated[
        Path | None, Parameter(metavar="FILE", help="Where the PNG goes; by default beside you, named after the page.")
    ] = None,
    json: Json = False,
) -> int:
    """Draw a page with a box around every value that was found on it, coloured by confidence.

    Green boxes are sure, amber ones less so, red ones doubtful. The list beside the page names each value; what is not
    on this page is listed too. Prints the name of the PNG.
    """
    from docmill.cli.opening import opened
    from docmill.outputs.files import OutputUnwritable, put
    from docmill.services.showing import draw

    if output is not None and output.suffix.lower() != ".png":
        raise WrongUse(f"The picture is a PNG: name a file that ends in .png, such as {output.with_suffix('.png')}.")
    if output is not None and not output.parent.is_dir():
        raise OutputUnwritable(f"{output} cannot be written: there is no folder {output.parent}.", path=str(output))
    with opened() as installation:
        documents = installation.documents
        record = documents.get(documents.find_id(document))
        drawing: Drawing = draw(documents, record, installation.blobs, page=page)
    target = output or Path(f"{record.id}-{page}.png")
    put([(target, drawing.png)])
    if json:
        print_json(
            {"file": str(target), "document": record.id, "page": page, "pages": drawing.pages, "marks": drawing.marks}
        )
        return 0
    print(target)
    if drawing.pages > 1 and page == 1:
        print(f"note: page 1 of {drawing.pages}; --page N draws another.", file=sys.stderr)
    return 0
