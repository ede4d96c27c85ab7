"""One client for each provider and event loop, opened at the first call and closed when the loop ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from docmill.ai.providers.access import EXTRA, Access, Kind
from docmill.model.ai_errors import ModelAuthentication, ModelUnknown
from docmill.model.errors import PermanentError

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.models import Model


class ModelsNotInstalled(PermanentError):
    """The libraries of the providers are not installed."""

    code = "models_not_installed"


_IMPORTING = Lock()
"""Of all providers: libraries that import each other are not to be imported by two threads at once."""

Build = Callable[[str], "Model"]
"""From the name of a model to what asks it."""


class Clients:
    """The clients of one provider. Connections belong to the loop that opened them, so each loop has its own."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Build, AsyncGenerator[Build, None]]]
        self._opened = WeakKeyDictionary()

    @property
    def count(self) -> int:
        """How many loops have one."""
        return len(self._opened)

    async def model(self, name: str) -> "Model":
        """What asks this model."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            check_ready(self._access)
            # Importing takes seconds: not on the loop, which has heartbeats to send.
            await asyncio.to_thread(self._load)
            opened = self._opened.get(loop)  # Another call may have been quicker.
        if opened is None:
            opening = self._open()
            opened = (await anext(opening), opening)
            self._opened[loop] = opened
        return opened[0](name)

    def _load(self) -> None:
        with _IMPORTING:
            try:
                _builder(self._access.kind)
            except ImportError as error:
                raise ModelsNotInstalled(
                    f"The provider {self._access.name} needs a library that cannot be imported ({error}): {EXTRA}."
                ) from None

    async def _open(self) -> AsyncGenerator[Build, None]:
        """A client as long as the loop lives: a loop that shuts down closes its asynchronous generators.

        So nobody has to tell the provider that the work is over, and no connection is left open behind it.
        """
        from pydantic_ai.models import create_async_httpx2_client

        loop = asyncio.get_running_loop()
        client = create_async_httpx2_client()
        try:
            # Nothing is awaited before this: two first calls would open two clients.
            yield _builder(self._access.kind)(self._access, client)
        finally:
            self._opened.pop(loop, None)
            with suppress(RuntimeError):  # Its connections may be gone already.
                await client.aclose()


def check_ready(access: Access) -> None:
    """Raise what keeps the provider from being asked: a library, an address, a key."""
    missing = access.missing()
    if missing is None:
        return
    if EXTRA in missing:
        raise ModelsNotInstalled(missing)
    raise ModelUnknown(missing) if access.kind is Kind.COMPATIBLE else ModelAuthentication(missing)


def _builder(kind: Kind) -> "Callable[[Access, AsyncClient], Build]":
    """How to make the clients of this kind; importing the libraries happens here."""
    match kind:
        case Kind.GOOGLE:
            return _google()
        case Kind.ANTHROPIC:
            return _anthropic()
        case Kind.OPENAI | Kind.OPENAI_CHAT | Kind.COMPATIBLE:
            return _openai()


def _google() -> "Callable[[Access, AsyncClient], Build]":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    def build(access: Access, client: "AsyncClient") -> Build:
        provider = GoogleProvider(api_key=access.key, base_url=access.base_url, http_client=client)
        return lambda name: GoogleModel(name, provider=provider)

    return build


def _anthropic() -> "Callable[[Access, AsyncClient], Build]":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def build(access: Access, client: "AsyncClient") -> Build:
        provider = AnthropicProvider(api_key=access.key, base_url=access.base_url, http_client=client)
        return lambda name: AnthropicModel(name, provider=provider)

    return build


def _openai() -> "Callable[[Access, AsyncClient], Build]":
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    def build(access: Access, client: "AsyncClient") -> Build:
        if access.kind is Kind.COMPATIBLE:
            assert access.base_url is not None
            compatible = OpenAICompatibleProvider(
                access.name,
                base_url=access.base_url,
                # The client insists on a key; servers of one's own mostly do not.
                api_key=access.key or "none",
                http_client=client,
                # The older name of the limit is the one that all of them know.
                profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False),
            )
            return lambda name: OpenAIChatModel(name, provider=compatible)
        provider = OpenAIProvider(api_key=access.key, base_url=access.base_url, http_client=client)
        if access.kind is Kind.OPENAI_CHAT:
            return lambda name: OpenAIChatModel(name, provider=provider)
        return lambda name: OpenAIResponsesModel(name, provider=provider)

    return build
