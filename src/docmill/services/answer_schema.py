"""Whether an answer is what the `output_schema` of its step asks for."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson


def violation(schema: Mapping[str, object], value: object) -> str | None:
    """The first rule that the value (plain JSON data) breaks, with its place; None if it breaks none."""
    try:
        validator = _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS).decode())
    except ValueError as error:
        return f"its output_schema is no JSON Schema: {str(error).splitlines()[0]}"
    for broken in validator.iter_errors(value):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in broken.instance_path)
        return f"${place}: {broken.message[:200]}"
    return None


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    import jsonschema_rs

    # Offline: a schema never makes us fetch anything.
    return jsonschema_rs.validator_for(orjson.loads(schema), offline=True)
