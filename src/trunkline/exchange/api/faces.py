"""Faces of the exchange to programs that speak another protocol over HTTP: each has its own part of the addresses.

The gate in front of the API is in front of them, too: names, origins and tokens, for WebSockets as well. What it
refuses is told in the form of the face.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.base.asgi_answers import answer
from trunkline.base.asgi_last_resort import LastResort
from trunkline.base.values import Value
from trunkline.exchange.api.errors import ApiRefused, error
from trunkline.exchange.exchange import Exchange

logger = logging.getLogger(__name__)

#: The largest message of a WebSocket, in bytes: twice what any face takes, so that it can say what is wrong with more.
MAX_FRAME = 32 * 1024 * 1024

#: Where the scope has the form of refusals, if it is not the API's own.
_FORM = "trunkline.refusal"

#: Gives the JSON object that tells of a refusal: its status, and why.
RefusalForm = Callable[[int, str], Mapping[str, Any]]


class FaceApp(Protocol):
    """An ASGI application that has connections of its own."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or see a WebSocket through. `auth.person` tells whose it is."""

    async def close(self) -> None:
        """End what would not end by itself. Bounded in time."""


class Face(Value):
    """One of them, for the addresses `prefix` and below."""

    prefix: str
    wire: str
    """Its name in the ledger, and in logs."""
    refusal: RefusalForm
    make: Callable[[Exchange], FaceApp]


class OpenFaces:
    """The faces of one exchange, made when they are first asked for something."""

    def __init__(self, exchange: Exchange, faces: Iterable[Face]) -> None:
        self._exchange = exchange
        self._faces = tuple(faces)
        self._made: dict[str, tuple[FaceApp, ASGIApp]] = {}
        self._ending: asyncio.Future[Any] | None = None

    def find(self, path: str) -> Face | None:
        """The face that has that address."""
        return next((each for each in self._faces if path == each.prefix or path.startswith(f"{each.prefix}/")), None)

    def wire(self, path: str) -> str | None:
        """The wire of the face that has that address."""
        face = self.find(path)
        return None if face is None else face.wire

    def app(self, face: Face) -> ASGIApp:
        """Its application."""
        if face.prefix not in self._made:
            if self._ending is not None:
                # Nobody would end it.
                return answer(face.refusal(503, "The exchange is stopping. Try again later."), 503)
            made = face.make(self._exchange)
            failed = answer(face.refusal(500, "Internal error."), 500)
            self._made[face.prefix] = made, LastResort(made, failed)
        return self._made[face.prefix][1]

    def end(self) -> None:
        """Begin to end all of them: requests that have begun are answered then."""
        if self._ending is None:
            closing = [made.close() for made, _ in self._made.values()]
            self._ending = asyncio.gather(*closing, return_exceptions=True)

    async def ended(self) -> None:
        """Wait for that."""
        self.end()
        for failed in await self._ending if self._ending is not None else ():
            if isinstance(failed, Exception):
                logger.error("a face of the exchange could not be closed", exc_info=failed)


class FaceForms:
    """Outside the gate: knows in which form it must refuse."""

    def __init__(self, app: ASGIApp, *, faces: OpenFaces) -> None:
        self._app = app
        self._faces = faces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (face := self._faces.find(scope.get("path", ""))) is not None:
            scope[_FORM] = face.refusal
        await self._app(scope, receive, send)


class FaceRoutes:
    """Inside the gate: hands requests to the face that they are for."""

    def __init__(self, app: ASGIApp, *, faces: OpenFaces) -> None:
        self._app = app
        self._faces = faces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        face = self._faces.find(scope.get("path", ""))
        await (self._app if face is None else self._faces.app(face))(scope, receive, send)


def has_face(scope: Scope) -> bool:
    """Whether a request is for one of the faces."""
    return _FORM in scope


def refused(scope: Scope, refusal: ApiRefused) -> Response:
    """A refusal of the gate, in the form of whoever is asked for."""
    form: RefusalForm | None = scope.get(_FORM)
    if form is None:
        return error(refusal)
    return answer(form(refusal.status, refusal.message), refusal.status, refusal.headers)
