"""Plain functions of plug-ins, off the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Run the function in a thread of its own.

    Not in an executor: its threads are joined when the process ends, so a step that hears nothing would hold up the end
    for ever, and one that hangs would take a thread from all that follow. Slots bound the number of threads.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            value = function()
        except StopIteration as error:
            # The one exception that a future refuses to carry.
            tell(fail, RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:
            tell(fail, error)
        else:
            tell(succeed, value)

    def tell(how: Callable[..., None], what: object) -> None:
        with suppress(RuntimeError):  # The loop has ended: nobody waits any more.
            loop.call_soon_threadsafe(how, what)

    def succeed(value: T) -> None:
        if not future.done():
            future.set_result(value)

    def fail(error: BaseException) -> None:
        if not future.done():
            future.set_exception(error)

    Thread(target=run, name="docmill-step", daemon=True).start()
    return await future
