"""What `docmill process --model` says of a model's failures is for who runs it, not for who writes templates."""

import pytest

from docmill.model.ai_errors import ModelTimeout, OutputInvalid, OutputRefused, OutputTruncated
from docmill.model.errors import DocmillError
from docmill.steps.document_ask import for_operators


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            OutputTruncated("openai:m stopped at 32768 tokens. Raise max_tokens in model_config."),
            "openai:m has more to say about this document than it may in one answer. Process it with another model, or "
            "with none.",
        ),
        (
            OutputRefused("openai:m refused to answer. Change the prompt, or let switch_models try another."),
            "openai:m would not answer about this document. Process it with another model, or with none.",
        ),
        (
            ModelTimeout("openai:m did not answer within 120 s. Raise timeout in model_config or ai.timeout."),
            "openai:m did not answer in time. Raise ai.timeout if it often needs longer.",
        ),
        (
            OutputInvalid("openai:m answered with text that is not JSON (line 1)."),
            "openai:m answered with text that is not JSON (line 1). Process it with another model, or with none.",
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_failure_names_what_the_person_who_processes_documents_can_do(error: DocmillError, told: str) -> None:
    assert for_operators(error, "openai:m") == told
