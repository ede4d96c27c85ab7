"""What went wrong at a provider, in our words: whether to try again, when, and what a person can do.

The library has sorted the providers' errors into classes; here each class becomes one of ours. The text that a provider
sends along is shortened, and a key in it is struck out: providers repeat keys they do not like.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from docmill.ai.providers.access import Access
from docmill.model.ai_errors import (
    ModelAuthentication,
    ModelQuotaExceeded,
    ModelRateLimited,
    ModelRequestRejected,
    ModelTimeout,
    ModelUnavailable,
    ModelUnknown,
    OutputRefused,
)
from docmill.model.errors import DocmillError

_SHOWN = 300
_KEYS = re.compile(r"\b(?:sk|AIza|key|pk)[-_]?[\w*.…-]{8,}", re.IGNORECASE)
_LONGEST_WAIT = 3600.0
"""Seconds: nobody waits longer for a provider, whatever its Retry-After says."""


@contextmanager
def told_in_our_words(access: Access, model: str) -> Iterator[None]:
    """Raise what the library raises as one of our errors; the original stays out of sight, for it may hold the key."""
    try:
        yield
    except DocmillError:
        raise
    except Exception as error:
        raise translated(error, access, model) from None


def translated(error: Exception, access: Access, model: str) -> Exception:
    """Our error for one of the library's; anything that it does not explain is returned as it is."""
    from pydantic_ai import exceptions as theirs

    name = f"{access.name}:{model}"
    said = _said(error, access)
    match error:
        case theirs.ModelRateLimitError():
            wait = None if error.retry_after is None else min(max(0.0, error.retry_after), _LONGEST_WAIT)
            return ModelRateLimited(f"{name} is asked too often{said}.", retry_after=wait)
        case theirs.ModelQuotaExceededError():
            return ModelQuotaExceeded(f"The account at {access.name} has no credit left{said}. Add some, then retry.")
        case theirs.ModelAuthenticationError():
            return ModelAuthentication(
                f"{access.name} does not accept the key, or not for {model}. Correct ai.providers.{access.name}.key or "
                "the variable that holds it."
            )
        case theirs.ModelNotFoundError():
            return ModelUnknown(f"{access.name} has no model {model!r}{said}. Correct the name.", model=name)
        case theirs.ModelContextWindowExceededError():
            return ModelRequestRejected(
                f"The document and the prompt are longer than {name} can read{said}. Use a model with a larger "
                "context, or fewer pages."
            )
        case theirs.ModelRequestRejectedError():
            return ModelRequestRejected(f"{name} does not accept the request{said}.")
        case theirs.ModelTimeoutError() | theirs.ModelRequestTimeout():
            return ModelTimeout(f"{name} did not answer in time. Raise timeout in model_config or ai.timeout.")
        case theirs.ContentFilterError():
            return OutputRefused(f"{name} would not answer: a filter of the provider stepped in.")
        case theirs.ModelHTTPError() if error.status_code == 413:
            return ModelRequestRejected(f"The document is too large for {name}{said}. Use fewer or smaller pages.")
        case theirs.ModelHTTPError() if error.status_code == 408:
            return ModelTimeout(f"{name} gave up on the request{said}.")
        case theirs.ModelHTTPError() if 400 <= error.status_code < 500 and error.status_code != 409:
            return ModelRequestRejected(f"{name} does not accept the request ({error.status_code}){said}.")
        case theirs.ModelAPIError():
            wait = error.retry_after
            return ModelUnavailable(
                f"{name} cannot be reached or is in trouble{said}.",
                retry_after=None if wait is None else min(max(0.0, wait), _LONGEST_WAIT),
            )
        case theirs.UnexpectedModelBehavior():
            return ModelUnavailable(f"{name} answered with something that is not its protocol{said}.")
        case theirs.UserError():
            return ModelRequestRejected(
                f"{name} cannot be asked like that{said}. If it is the schema, set "
                f"ai.providers.{access.name}.output to tool or prompted."
            )
        case _:
            return error


def _said(error: Exception, access: Access) -> str:
    """The provider's own words, in brackets; empty if it had none."""
    body = getattr(error, "body", None)
    text = _message(body) or str(getattr(error, "message", "") or "")
    text = " ".join(text.split())
    if access.key:
        text = text.replace(access.key, "…")
    text = _KEYS.sub("…", text)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return f" ({text.rstrip('.')})" if text else ""


def _message(body: object) -> str:
    """The `message` of an error body, wherever the provider has it."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        found = inner.get("message") if isinstance(inner, dict) else inner
        return found if isinstance(found, str) else ""
    return ""
