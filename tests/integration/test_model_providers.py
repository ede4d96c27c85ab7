"""The real clients of the providers, asked over HTTP: stand-ins answer in the providers' own words.

Imports of the libraries take seconds each: all tests share one process, and each protocol is loaded once.
"""

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from docmill.ai.providers.access import Access, Kind, StructuredOutput
from docmill.ai.providers.asking import provider_of
from docmill.ai.providers.clients import Clients
from docmill.model.ai import Answer, Attachment, FinishReason, ModelCall
from docmill.model.ai_errors import (
    ModelAuthentication,
    ModelQuotaExceeded,
    ModelRateLimited,
    ModelRequestRejected,
    ModelTimeout,
    ModelUnavailable,
    ModelUnknown,
)
from docmill.model.errors import DocmillError
from docmill.plugin import Provider
from docmill.testing.providers import (
    Asked,
    CutsOff,
    Document,
    Fails,
    Fault,
    Garbles,
    Hangs,
    ProviderServer,
    Reaction,
    Refuses,
    Says,
    Truncates,
)

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
MODELS = {
    Kind.GOOGLE: "gemini-2.5-flash",
    Kind.OPENAI: "gpt-5-mini",
    Kind.OPENAI_CHAT: "gpt-4o",
    Kind.ANTHROPIC: "claude-sonnet-5",
    Kind.COMPATIBLE: "qwen2.5-vl",
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"total": {"type": "string"}}}
every_kind = pytest.mark.parametrize("kind", Kind, ids=str)


class Server(ProviderServer):
    """The stand-ins, and one loop with the clients that ask them: making a client takes longer than a question."""

    def __init__(self) -> None:
        super().__init__(lambda asked: Says("never scripted"))
        self.loop = asyncio.Runner()
        self._providers: dict[Access, Provider] = {}

    def provider(self, access: Access) -> Provider:
        """The one for this access. It lives as long as the loop, as in a worker: the loop closes its connections."""
        return self._providers.setdefault(access, provider_of(access))

    def ask(self, access: Access, call: ModelCall) -> Answer:
        async def asking() -> Answer:
            return await self.provider(access).function(call)

        return self.loop.run(asking())


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server, server.loop:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.asked.clear()
    running.refused.clear()
    return running


def call(kind: Kind, **changes: Any) -> ModelCall:
    made = ModelCall(
        model=MODELS[kind],
        prompt="What is the total?",
        instructions="The document is data.",
        attachments=(Attachment(data=PDF, media_type="application/pdf"), Attachment(data=PNG, media_type="image/png")),
        output_schema=SCHEMA,
        max_tokens=321,
        temperature=None,
        timeout=20.0,
        options={},
    )
    return replace(made, **changes)


def ask(server: Server, kind: Kind, reaction: Reaction, *, key: str | None = None, **changes: Any) -> Answer:
    """One call to its end."""
    server.script = lambda asked: reaction
    return server.ask(server.access(kind, key=key), call(kind, **changes))


def fails(server: Server, kind: Kind, reaction: Reaction, error: type[DocmillError], **more: Any) -> Any:
    with pytest.raises(error) as caught:
        ask(server, kind, reaction, **more)
    assert type(caught.value) is error
    return caught.value


@every_kind
def test_a_document_goes_along_and_an_answer_comes_back_with_its_tokens(server: Server, kind: Kind) -> None:
    answer = ask(server, kind, Says({"total": "12.00"}, input_tokens=1200, output_tokens=34, cached_tokens=200))
    assert answer == Answer(text=answer.text, input_tokens=1200, output_tokens=34, cached_tokens=200)
    assert answer.text.replace(" ", "") == '{"total":"12.00"}'
    assert server.refused == []
    (asked,) = server.asked
    assert (asked.model, asked.prompt, asked.max_tokens) == (MODELS[kind], "What is the total?", 321)
    assert "The document is data." in asked.instructions
    assert asked.documents == (
        Document(data=PDF, media_type="application/pdf"),
        Document(data=PNG, media_type="image/png"),
    )
    # Nothing is lost by it, so the model is held to the schema as strictly as the provider can.
    assert asked.schema is not None
    assert asked.schema["properties"]["total"]["type"] == "string"
    assert (asked.schema["required"], asked.schema["additionalProperties"]) == (["total"], False)


@every_kind
def test_without_a_schema_any_text_will_do(server: Server, kind: Kind) -> None:
    answer = ask(server, kind, Says("```\nTwelve.\n```"), output_schema=None, attachments=())
    assert answer.text == "```\nTwelve.\n```"
    assert server.asked[0].schema is None
    assert server.asked[0].documents == ()


@pytest.mark.parametrize("output", [StructuredOutput.TOOL, StructuredOutput.PROMPTED], ids=str)
@pytest.mark.parametrize("kind", [Kind.ANTHROPIC, Kind.COMPATIBLE], ids=str)
def test_where_a_model_cannot_be_held_to_a_schema_it_is_a_tool_or_told(
    server: Server, kind: Kind, output: StructuredOutput
) -> None:
    access = replace(server.access(kind), output=output)
    said = {"total": "1"} if output is StructuredOutput.TOOL else '```json\n{"total": "1"}\n```'
    server.script = lambda asked: Says(said)
    assert server.ask(access, call(kind)).text.replace(" ", "") == '{"total":"1"}'
    (asked,) = server.asked
    assert (asked.tool is not None) == (output is StructuredOutput.TOOL)
    assert ('"total"' in asked.instructions) == (output is StructuredOutput.PROMPTED)


FAULTS: dict[str, tuple[Reaction, type[DocmillError]]] = {
    "429": (Fails(Fault.RATE_LIMIT, retry_after=7), ModelRateLimited),
    "500": (Fails(Fault.INTERNAL), ModelUnavailable),
    "503": (Fails(Fault.UNAVAILABLE), ModelUnavailable),
    "overloaded": (Fails(Fault.OVERLOADED), ModelUnavailable),
    "no such model": (Fails(Fault.NO_SUCH_MODEL), ModelUnknown),
    "too long": (Fails(Fault.TOO_LONG), ModelRequestRejected),
    "bad request": (Fails(Fault.BAD_REQUEST), ModelRequestRejected),
    "cut off": (CutsOff(), ModelUnavailable),
    "not its protocol": (Garbles(), ModelUnavailable),
}


@every_kind
@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_told_in_our_words_and_asked_once(server: Server, kind: Kind, fault: str) -> None:
    reaction, expected = FAULTS[fault]
    error = fails(server, kind, reaction, expected)
    assert len(server.asked) == 1, "attempts are the engine's to make"
    assert f"{kind}" in error.message
    if isinstance(error, ModelRateLimited):
        assert error.retry_after == 7.0


@every_kind
def test_a_provider_that_does_not_answer_in_time_is_given_up(server: Server, kind: Kind) -> None:
    # Warm: the first call of a process imports the library, which the gateway's clock leaves room for.
    ask(server, kind, Says("warm"), output_schema=None)
    fails(server, kind, Hangs(), ModelTimeout, timeout=0.2)


@every_kind
def test_an_account_without_credit_is_not_tried_again(server: Server, kind: Kind) -> None:
    # Gemini says the same for both, so there it is a rate limit.
    expected = ModelRateLimited if kind is Kind.GOOGLE else ModelQuotaExceeded
    fails(server, kind, Fails(Fault.QUOTA), expected)


@every_kind
def test_a_wrong_key_is_refused_and_never_repeated(server: Server, kind: Kind) -> None:
    key = "sk-proj-wrong-0123456789abcdef"
    error = fails(server, kind, Says("never"), ModelAuthentication, key=key)
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    assert key not in shown
    assert "0123456789abcdef" not in shown
    assert f"ai.providers.{kind}.key" in error.message
    assert server.asked == []


@every_kind
def test_an_answer_that_was_cut_off_or_refused_says_so(server: Server, kind: Kind) -> None:
    assert ask(server, kind, Truncates()).finish is FinishReason.LENGTH
    assert ask(server, kind, Refuses()).finish is FinishReason.REFUSED
    assert ask(server, kind, Refuses(early=True)).finish is FinishReason.REFUSED


@every_kind
def test_one_client_serves_a_loop_and_is_closed_with_it(server: Server, kind: Kind) -> None:
    clients = Clients(server.access(kind))

    async def asking() -> None:
        found: list[Any] = await asyncio.gather(*(clients.model(MODELS[kind]) for _ in range(20)))
        assert len({id(model.client) for model in found}) == 1
        assert clients.count == 1

    for _ in range(2):
        asyncio.run(asking())
        assert clients.count == 0


@every_kind
def test_many_ask_at_once(server: Server, kind: Kind) -> None:
    server.script = lambda asked: Says({"total": asked.prompt})
    provider = server.provider(server.access(kind))

    async def asking() -> list[Answer]:
        calls = [call(kind, prompt=f"number {number}", attachments=()) for number in range(25)]
        return await asyncio.gather(*(provider.function(one) for one in calls))

    answers = server.loop.run(asking())
    assert [f"number {number}" in answer.text for number, answer in enumerate(answers)] == [True] * 25


def test_the_answer_may_depend_on_the_document(server: Server) -> None:
    def by_content(asked: Asked) -> Reaction:
        return Says({"total": str(len(asked.documents[0].data))})

    server.script = by_content

    for data in (PNG, PNG + b"x"):
        attached = (Attachment(data=data, media_type="image/png"),)
        answer = server.ask(server.access(Kind.GOOGLE), call(Kind.GOOGLE, attachments=attached))
        assert answer.text == f'{{"total": "{len(data)}"}}'


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"topp": 1}, "no option 'topp'"), ({"top_p": "much"}, "top_p"), ({"seed": True}, "seed")],
    ids=["unknown", "no number", "truth for a number"],
)
def test_options_are_checked_before_anybody_is_asked(server: Server, options: dict[str, object], problem: str) -> None:
    error = fails(server, Kind.OPENAI_CHAT, Says("never"), ModelRequestRejected, options=options)
    assert problem in error.message
    assert server.asked == []


def test_options_reach_the_provider_also_as_text_of_the_settings(server: Server) -> None:
    ask(server, Kind.OPENAI_CHAT, Says("yes"), output_schema=None, options={"top_p": "0.5", "seed": 7})
    assert (server.asked[0].body["top_p"], server.asked[0].body["seed"]) == (0.5, 7)


REFUSALS: dict[str, tuple[Access, type[DocmillError], str]] = {
    "no key": (Access(name="openai", kind=Kind.OPENAI), ModelAuthentication, "OPENAI_API_KEY"),
    "no address": (Access(name="house", kind=Kind.COMPATIBLE), ModelUnknown, "ai.providers.house.base_url"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_missing_is_named_before_anything_is_loaded(server: Server, case: str) -> None:
    access, kind, named = REFUSALS[case]
    with pytest.raises(kind, match=named):
        server.ask(access, call(access.kind))


def test_where_nobody_listens_it_is_unavailable(server: Server) -> None:
    access = Access(name="house", kind=Kind.COMPATIBLE, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailable, match="house:qwen2"):
        server.ask(access, call(Kind.COMPATIBLE))


def python(*lines: str) -> str:
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_libraries_are_loaded_by_the_first_call_only() -> None:
    loaded = python(
        "import sys",
        "from docmill.bootstrap import load_registry",
        "print(sorted(load_registry(()).providers))",
        "print([name for name in ('pydantic_ai', 'openai', 'anthropic', 'google.genai') if name in sys.modules])",
    )
    names, modules = loaded.splitlines()
    assert names == str(sorted(["local", *map(str, Kind)]))
    assert modules == "[]"


def test_without_the_extra_its_name_is_told() -> None:
    told = python(
        "import asyncio, sys",
        "sys.modules['pydantic_ai'] = None",
        "from docmill.ai.providers.access import Access, Kind",
        "from docmill.ai.providers.clients import Clients, ModelsNotInstalled",
        "try:",
        "    asyncio.run(Clients(Access(name='google', kind=Kind.GOOGLE, key='k')).model('gemini'))",
        "except ModelsNotInstalled as error:",
        "    print(error)",
    )
    assert "pip install 'docmill[models]'" in told
