"""Parts of the installation that are made at first use, and once: whatever number of threads ask first."""

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

__all__ = ["made_once"]

# One for all, and again by the thread that holds it: parts are made of parts.
_MAKING = RLock()

if TYPE_CHECKING:
    # Type checkers know this one by its name, and what it makes before they have read it.
    from functools import cached_property as made_once
else:

    class made_once(cached_property):  # noqa: N801
        """`cached_property` that two threads do not fill twice: what holds connections or processes is closed once."""

        def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            with _MAKING:
                return super().__get__(instance, owner)
