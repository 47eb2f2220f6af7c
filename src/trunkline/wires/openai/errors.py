"""What goes wrong, in OpenAI's form: `{"error": {"message", "type", "param", "code"}}` with its statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.core import faults
from trunkline.core.fault_table import form_of, told

#: OpenAI's clients try 409, 429 and 5xx again unless this header says no: an agent would do everything twice.
RETRY_HEADER = "x-should-retry"

STOPPED = "The turn was stopped before the agent had answered."
ENDING = "The server is stopping. Try again later."

_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 400, 401, 403, 404
_TOO_MANY, _INTERNAL, _UNAVAILABLE = 429, 500, 503
#: The codes of refusals that have none of their own.
_CODES = {
    401: "invalid_api_key",
    403: "insufficient_permissions",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    413: "request_too_large",
    415: "unsupported_media_type",
}


class OpenAIRefused(Refused):
    """A request that is not granted, with the `param` that is to blame and a `code` for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.param = param
        self.code = code or _CODES.get(status)


def bad(param: str | None, message: str, code: str = "invalid_value") -> OpenAIRefused:
    """A 400 about one parameter."""
    return OpenAIRefused(_BAD_REQUEST, message, param=param, code=code)


def unsupported(param: str, message: str) -> OpenAIRefused:
    """A 400 for what an agent cannot do."""
    return bad(param, message, "unsupported_parameter")


def unknown_model(name: str) -> OpenAIRefused:
    """There is no agent of that name."""
    message = f"The model `{name[:80]}` does not exist. `GET /v1/models` lists the agents and models that there are."
    return OpenAIRefused(_NOT_FOUND, message, param="model", code="model_not_found")


def stopping() -> OpenAIRefused:
    """The server is about to end."""
    return OpenAIRefused(_UNAVAILABLE, ENDING, code="server_stopping")


def members(status: int, message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": _type(status), "param": param, "code": code or _CODES.get(status)}}


def refusal(status: int, message: str) -> Mapping[str, Any]:
    """The same, for what a server refuses before the application hears of it."""
    return members(status, message)


def of_fault(fault: faults.Fault) -> OpenAIRefused:
    """The refusal that a fault amounts to, before there is a turn."""
    status = form_of(fault.kind).http
    headers: dict[str, str] = {}
    if fault.retry_after is not None:
        headers["retry-after"] = str(max(1, round(fault.retry_after)))
    if not fault.retryable:
        headers[RETRY_HEADER] = "false"
    param, code = None, fault.kind
    if fault.kind == "unknown_agent":
        param, code = "model", "model_not_found"
    elif fault.kind == "forbidden":
        code = _CODES[_FORBIDDEN]
    elif fault.kind == "budget":
        code = "insufficient_quota"
    return OpenAIRefused(status, told(fault.kind, str(fault)), param=param, code=code, headers=headers)


def of_failed_turn(fault: faults.Fault) -> OpenAIRefused:
    """The refusal that a turn that failed amounts to: whatever it was, the request was fine. Only budgets are 429."""
    found = of_fault(fault)
    if found.status != _TOO_MANY:
        found.status = max(found.status, _INTERNAL)
    found.param = None
    return found


def _type(status: int) -> str:
    if status == _TOO_MANY:
        return "insufficient_quota"
    return "server_error" if status >= _INTERNAL else "invalid_request_error"
