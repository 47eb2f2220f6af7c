"""How everything that goes wrong during a request is reported.

    {"error": {"code": "session_not_found", "message": "There is no session `x` here."}}

`code` is the kind of a fault, as in the fault table, or a name for the HTTP status. What nobody foresaw is a 500 that
tells nothing to the other side, and one entry in the log.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from trunkline.base.asgi_answers import Refused, answer
from trunkline.core.fault_table import form_of
from trunkline.core.faults import BudgetExceeded, Fault, MayBeDone
from trunkline.exchange.approvals import AlreadyDecided, State
from trunkline.store.database import Conflict, DatabaseGone

logger = logging.getLogger(__name__)

#: When to ask again while the database, an agent or the rest of a cluster does not answer, in seconds.
RETRY_SECONDS = 5

#: What an approval's state means as a decision; the others are none.
_DECISIONS: Mapping[State, str] = {"approved": "approve", "denied": "deny"}

#: Names that Python 3.13 has changed. Programs rely on them, whatever Python serves them.
_NAMES = {
    413: "request_entity_too_large",
    414: "request_uri_too_long",
    416: "requested_range_not_satisfiable",
    422: "unprocessable_entity",
}


class ApiRefused(Refused):
    """A refused request. The code is the name of the status, unless another is given."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code or _name(status)


def error(refused: ApiRefused, **more: Any) -> Response:
    """A refusal as a response; `more` stands beside the error."""
    told = {**members(refused.status, refused.message, refused.code), **more}
    return answer(told, refused.status, refused.headers)


def members(status: int, message: str, code: str | None = None) -> Mapping[str, Any]:
    """What is told of a refusal."""
    return {"error": {"code": code or _name(status), "message": message}}


def _name(status: int) -> str:
    return _NAMES.get(status) or HTTPStatus(status).name.lower()


def of_fault(fault: Fault) -> ApiRefused:
    """The refusal that a fault amounts to."""
    status, headers = form_of(fault.kind).http, None
    if isinstance(fault, BudgetExceeded):
        headers = {"Retry-After": str(math.ceil(fault.retry_after or RETRY_SECONDS))}
    elif fault.retry_after is not None:
        # The agent is tried again: not a defect of the request, nor one of ours.
        status, headers = 503, {"Retry-After": str(math.ceil(fault.retry_after))}
    elif status == 503 and fault.retryable and not isinstance(fault, MayBeDone):
        headers = {"Retry-After": str(RETRY_SECONDS)}
    return ApiRefused(status, str(fault), code=fault.kind, headers=headers)


async def _refused(request: Request, refused: ApiRefused) -> Response:
    return error(refused)


async def _fault(request: Request, fault: Fault) -> Response:
    if fault.kind == "internal":
        logger.error("a request failed: %s %s: %s", request.method, request.url.path, fault)
    return error(of_fault(fault))


async def _decided(request: Request, fault: AlreadyDecided) -> Response:
    approval = fault.approval
    refused = ApiRefused(409, str(fault), code="decided")
    return error(refused, decided_by=approval.decided_by, decision=_DECISIONS.get(approval.state))


async def http(request: Request, failure: HTTPException) -> Response:
    """What there is no route for, or not by that method."""
    text = f"{HTTPStatus(failure.status_code).phrase}: `{request.method} {request.url.path[:200]}`."
    return error(ApiRefused(failure.status_code, text, headers=failure.headers))


async def _conflict(request: Request, failure: Conflict) -> Response:
    return error(ApiRefused(409, "Somebody else did the same at this moment. Try again."))


async def _gone(request: Request, failure: DatabaseGone) -> Response:
    logger.warning("the database does not answer: %s", failure)
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return error(ApiRefused(503, "The database does not answer. Try again later.", headers=headers))


async def _left(request: Request, failure: ClientDisconnect) -> Response:
    # Nobody is left to read this.
    return Response(status_code=400)


HANDLERS: Mapping[Any, Any] = {
    HTTPException: http,
    ApiRefused: _refused,
    AlreadyDecided: _decided,
    Fault: _fault,
    Conflict: _conflict,
    DatabaseGone: _gone,
    ClientDisconnect: _left,
}
