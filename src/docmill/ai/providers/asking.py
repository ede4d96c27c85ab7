"""One call to a provider: our request into the library's words, its response into ours."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from docmill.ai.providers.access import Access, StructuredOutput
from docmill.ai.providers.clients import Clients
from docmill.ai.providers.faults import told_in_our_words
from docmill.model.ai import Answer, FinishReason, ModelCall
from docmill.model.ai_errors import ModelRequestRejected, ModelUnavailable
from docmill.plugin import Provider

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

_OPTIONS: Mapping[str, tuple[type, ...]] = {
    "top_p": (int, float),
    "top_k": (int,),
    "seed": (int,),
    "thinking": (bool, str),
    "service_tier": (str,),
}
"""What `model_config` may say besides what all models understand, and of which type."""
_OUTPUT = "answer"


def provider_of(access: Access) -> Provider:
    """The provider as the gateway knows it."""
    clients = Clients(access)

    async def ask(call: ModelCall) -> Answer:
        """Ask once."""
        settings = _settings(call)
        model = await clients.model(call.model)
        with told_in_our_words(access, call.model):
            response = await _request(model, call, settings, access.output)
        return _answer(response, call, f"{access.name}:{call.model}")

    return Provider(name=access.name, function=ask, limited=True)


async def _request(model: "Model", call: ModelCall, settings: "ModelSettings", output: StructuredOutput) -> Any:
    from pydantic_ai.direct import model_request

    return await model_request(
        model,
        _messages(call),
        model_settings=settings,
        model_request_parameters=_parameters(model, call.output_schema, output),
        instrument=False,
    )


def _messages(call: ModelCall) -> "Sequence[ModelMessage]":
    """Documents before the question: models read what they are asked about first."""
    from pydantic_ai.messages import BinaryContent, ModelRequest, UserContent, UserPromptPart

    documents = [BinaryContent(data=part.data, media_type=part.media_type) for part in call.attachments]
    content: list[UserContent] = [*documents, call.prompt]
    return [ModelRequest(parts=[UserPromptPart(content=content)], instructions=call.instructions or None)]


def _settings(call: ModelCall) -> "ModelSettings":
    """No retries: attempts are counted by the engine, and each is recorded and paid for by itself."""
    made: dict[str, object] = {
        "max_tokens": call.max_tokens,
        "timeout": call.timeout,
        "request_timeout": call.timeout,
        "max_retries": 0,
    }
    if call.temperature is not None:
        made["temperature"] = call.temperature
    for name, value in call.options.items():
        if name not in _OPTIONS:
            raise ModelRequestRejected(
                f"There is no option {name!r} for models; write one of {', '.join(_OPTIONS)} in model_config."
            )
        made[name] = _option(name, value)
    return made  # type: ignore[return-value]


def _option(name: str, value: object) -> object:
    kinds = _OPTIONS[name]
    if isinstance(value, str) and str not in kinds:
        # Options in the settings are text.
        for kind in kinds:
            try:
                return kind(value)
            except ValueError:
                continue
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return value
    raise ModelRequestRejected(f"The option {name} in model_config must not be {value!r}; correct it.")


def _parameters(
    model: "Model", schema: Mapping[str, object] | None, output: StructuredOutput
) -> "ModelRequestParameters":
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    if schema is None:
        return ModelRequestParameters()
    if output is StructuredOutput.AUTO:
        output = _best(model)
    wanted = _closed(schema) if _can_be_empty(schema) else dict(schema)
    if output is StructuredOutput.TOOL:
        tool = ToolDefinition(
            name=_OUTPUT, description="Give the answer.", parameters_json_schema=wanted, kind="output"
        )
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    shape = OutputObjectDefinition(json_schema=wanted, name=_OUTPUT)
    mode: Literal["native", "prompted"] = "native" if output is StructuredOutput.NATIVE else "prompted"
    return ModelRequestParameters(output_mode=mode, output_object=shape)


def _can_be_empty(schema: Mapping[str, Any]) -> bool:
    """Whether nothing is lost when a model must give every property and no other: each can be an empty text or list.

    Providers hold a model to a schema only under this condition, or only if few properties are optional.
    """
    match schema.get("type"):
        case "object":
            parts: list[Any] = list(schema.get("properties", {}).values())
            known = {"type", "properties", "required", "additionalProperties", "description", "title"}
            sound = bool(parts) and not schema.get("additionalProperties")
        case "array":
            parts = [schema.get("items", {})]
            known, sound = {"type", "items", "description", "title"}, True
        case "string":
            parts, known, sound = [], {"type", "description", "title"}, True
        case _:
            return False
    return sound and schema.keys() <= known and all(_can_be_empty(part) for part in parts)


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every property required and no others allowed."""
    made = dict(schema)
    if "items" in made:
        made["items"] = _closed(made["items"])
    if "properties" in made:
        made["properties"] = {name: _closed(part) for name, part in made["properties"].items()}
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    return made


def _best(model: "Model") -> StructuredOutput:
    if model.profile.get("supports_json_schema_output", False):
        return StructuredOutput.NATIVE
    return StructuredOutput.TOOL if model.profile.get("supports_tools", True) else StructuredOutput.PROMPTED


def _answer(response: "ModelResponse", call: ModelCall, name: str) -> Answer:
    from pydantic_ai.messages import TextPart, ToolCallPart

    called = next((part for part in response.parts if isinstance(part, ToolCallPart)), None)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    if called is not None:
        text = called.args_as_json_str()
    elif call.output_schema is not None:
        text = _bare(text)
    broken = response.finish_reason == "error" or response.state != "complete"
    if broken or (response.finish_reason is None and not text):
        raise ModelUnavailable(f"{name} broke off without an answer.")
    usage = response.usage
    return Answer(
        text=text,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        finish=_finish(response),
    )


def _finish(response: "ModelResponse") -> FinishReason:
    match response.finish_reason:
        case "length":
            return FinishReason.LENGTH
        case "content_filter":
            return FinishReason.REFUSED
        case _:
            return FinishReason.STOP


def _bare(text: str) -> str:
    """The text without the code fence that some models put around JSON, asked or not."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped.split("\n", 1)[1].rsplit("```", 1)[0].strip()
    return text
