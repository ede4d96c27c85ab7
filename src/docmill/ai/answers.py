"""From a provider's answer to data one may use: whole, parsed, and as its schema wants it. Pure."""

from collections.abc import Mapping
from typing import assert_never

import orjson

from docmill.model.ai import Answer, FinishReason
from docmill.model.ai_errors import OutputInvalid, OutputRefused, OutputTruncated
from docmill.templates.output import check_output


def accept(answer: Answer, schema: Mapping[str, object] | None, *, model: str, max_tokens: int) -> object:
    """The data of the answer, None without a schema; raises what is wrong with it."""
    match answer.finish:
        case FinishReason.LENGTH:
            raise OutputTruncated(
                f"{model} stopped at {max_tokens} tokens in the middle of its answer. Raise max_tokens in "
                "model_config, or let raise_max_tokens_by do it on each retry."
            )
        case FinishReason.REFUSED:
            raise OutputRefused(f"{model} refused to answer. Change the prompt, or let switch_models try another.")
        case FinishReason.STOP:
            pass
        case _:
            assert_never(answer.finish)
    if schema is None:
        return None
    try:
        data: object = orjson.loads(answer.text)
    except orjson.JSONDecodeError as error:
        raise OutputInvalid(f"{model} answered with text that is not JSON ({error}).") from error
    check_output(schema, data, f"The answer of {model}")
    return data
