"""Say in the envelope of errors what a model's failure was, where no turn stands between."""

from __future__ import annotations

import math

from hermes.core.errors import ModelError, ModelErrorKind
from hermes.servers.api.errors import ApiError
from hermes.servers.api.results import RETRY_SECONDS


def failure_of(error: ModelError) -> ApiError:
    """A provider's 429 stays one, a model that it does not have is a 404, anything else a 502."""
    if error.status == 429:
        headers = {"Retry-After": str(max(1, math.ceil(error.retry_after or RETRY_SECONDS)))}
        return ApiError(429, str(error), code=error.kind.value, kind="rate_limit_error", headers=headers)
    if error.kind is ModelErrorKind.MODEL:
        return ApiError(404, str(error), code="model_not_found")
    return ApiError(502, str(error), code=error.kind.value, kind="server_error")
