"""Two models for tests that never agree: each fills the schema with an answer of its own."""

import json
import os

from docmill.plugin import Answer, ModelCall, provider


@provider("quarrel")
async def quarrel(call: ModelCall) -> Answer:
    """The cheap one says 1, the dear one 2, whatever is asked; of a document, what QUARREL_SAYS."""
    number = {"cheap": "1", "dear": "2"}[call.model]
    wanted = (call.output_schema or {}).get("properties", {})
    said = (
        {"total": number}
        if isinstance(wanted, dict) and set(wanted) == {"total"}
        else json.loads(os.environ["QUARREL_SAYS"])
    )
    return Answer(text=json.dumps(said), input_tokens=1000, output_tokens=100)
