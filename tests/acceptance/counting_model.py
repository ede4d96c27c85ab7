"""A provider of models for tests: answers with the same fields always, and leaves a line in COUNTED for each call.

With SILENT it never answers.
"""

import asyncio
import json
import os
from pathlib import Path

from docmill.plugin import Answer, ModelCall, provider


@provider("counting")
async def counting(call: ModelCall) -> Answer:
    """Counts before it answers."""
    with Path(os.environ["COUNTED"]).open("a") as file:
        file.write(f"{call.model}\n")
    if "SILENT" in os.environ:
        await asyncio.Event().wait()
    return Answer(text=json.dumps({"number": "4711", "total": "12.50"}), input_tokens=100, output_tokens=10)
