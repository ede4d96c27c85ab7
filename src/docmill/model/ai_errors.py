"""What can go wrong between a step and a model. Providers raise the first group, the gateway the rest.

Time-outs, rate limits and outages speak of the provider's health and count towards its breaker; nothing else does.
"""

from docmill.model.errors import PermanentError, RetryableError


class ModelRateLimited(RetryableError):
    """The provider says: too many requests. Its `retry_after` is honoured."""

    code = "model_rate_limited"


class ModelUnavailable(RetryableError):
    """The provider cannot be reached or answers with an error of its own (5xx)."""

    code = "model_unavailable"


class ModelTimeout(RetryableError):
    """The provider did not answer in time."""

    code = "model_timeout"


class ModelAuthentication(PermanentError):
    """The provider does not accept the key."""

    code = "model_authentication"


class ModelUnknown(PermanentError):
    """No such provider, or the provider has no such model."""

    code = "model_unknown"


class ModelRequestRejected(PermanentError):
    """The provider cannot take this request as it is: too long, too large, an option it does not have."""

    code = "model_request_rejected"


class ModelQuotaExceeded(PermanentError):
    """The account at the provider has no credit left."""

    code = "model_quota_exceeded"


class BudgetExceeded(PermanentError):
    """The organisation has spent its budget; the message says which, and how to go on."""

    code = "budget_exceeded"


class OutputTruncated(RetryableError):
    """The answer was cut off by `max_tokens`."""

    code = "output_truncated"


class OutputRefused(RetryableError):
    """The model would not answer; another one may."""

    code = "output_refused"


class OutputInvalid(RetryableError):
    """The output is not what its schema asks for; the message names the place and the rule."""

    code = "output_invalid"
