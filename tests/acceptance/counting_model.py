"""A provider of models for tests: answers with the same fields always, and leaves a line in COUNTED for each call.

While there is a file AWAY it cannot be reached.

With SILENT it never answers.
"""

import asyncio
import json
import os
from pathlib import Path

from docmill.model.ai_errors import ModelUnavailable
from docmill.plugin import Answer, ModelCall, provider


@provider("counting")
async def counting(call: ModelCall) -> Answer:
    """Counts before it answers."""
    if "AWAY" in os.environ and Path(os.environ["AWAY"]).exists():
        raise ModelUnavailable("counting:one cannot be reached (Connection refused).")
    with Path(os.environ["COUNTED"]).open("a") as file:
        file.write(f"{call.model}\n")
    if "SILENT" in os.environ:
        await asyncio.Event().wait()
    return Answer(text=json.dumps({"number": "4711", "total": "12.50"}), input_tokens=100, output_tokens=10)
