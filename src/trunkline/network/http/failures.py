"""What becomes of everything that goes wrong while a request is answered.

What is refused is `{"error": text}` under `/api`, and a page elsewhere. What nobody foresaw is a 500 that tells
nothing to the other side, and one entry in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.base import asgi_answers
from trunkline.base.asgi_answers import Refused
from trunkline.network.figures import NetworkFigures
from trunkline.network.http.cors import is_api_path
from trunkline.network.pages.rendering import problem
from trunkline.store.database import Conflict, DatabaseGone

logger = logging.getLogger(__name__)

#: When to ask again while the database does not answer, in seconds.
_RETRY_SECONDS = "5"
_TEXTS = {404: "Not found", 405: "Method not allowed"}


class Counted:
    """Counts how requests are answered. It is asked before everything else."""

    def __init__(self, app: ASGIApp, *, figures: NetworkFigures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._figures.answered(message["status"])
            await send(message)

        await self._app(scope, receive, counting)


class WithoutNul:
    """Refuses addresses with the one character that PostgreSQL cannot be asked about: nothing is named so."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal: Response | None = None
        if scope["type"] == "http":
            query = scope["query_string"]
            if "\0" in scope["path"]:
                refusal = await said(Request(scope), 404, _TEXTS[404])
            elif b"%00" in query or b"\0" in query:
                refusal = await said(Request(scope), 400, "The query must not contain the character U+0000")
        await (refusal or self._app)(scope, receive, send)


async def said(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal in the form that the other side reads."""
    if is_api_path(request.url.path):
        return asgi_answers.error(status, message, headers)
    page = await problem(status, HTTPStatus(status).phrase, message)
    page.headers.update(headers or {})
    return page


async def _http(request: Request, error: HTTPException) -> Response:
    return await said(request, error.status_code, _TEXTS.get(error.status_code, error.detail), error.headers)


async def _refused(request: Request, error: Refused) -> Response:
    figures: NetworkFigures = request.app.state.figures
    figures.refused(error.why)
    return await said(request, error.status, error.message, error.headers)


async def _conflict(request: Request, error: Conflict) -> Response:
    return await said(request, 409, "Duplicate data conflict.")


async def _gone(request: Request, error: DatabaseGone) -> Response:
    logger.warning("the database does not answer: %s", error)
    return await said(request, 503, "The database does not answer. Try again later.", {"Retry-After": _RETRY_SECONDS})


async def _left(request: Request, error: ClientDisconnect) -> Response:
    # Nobody reads this any more.
    return Response(status_code=400)


HANDLERS: Mapping[Any, Any] = {
    HTTPException: _http,
    Refused: _refused,
    Conflict: _conflict,
    DatabaseGone: _gone,
    ClientDisconnect: _left,
}
