"""One route of the API, as data; and one request, as whoever answers it sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from trunkline.base import jsontext, shapes
from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body
from trunkline.base.shapes import ShapeError
from trunkline.base.values import Value
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.people import Person
from trunkline.exchange.settings import Role

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

V = TypeVar("V", bound=Value)
Schema = Mapping[str, Any]

#: The largest body: a message with a long log pasted into it. Whatever is longer belongs into a file.
MAX_BODY = 4 * 1024 * 1024
#: Its members and items: none of ours has more than a list of files.
MAX_VALUES = 10_000
#: How long a body may take to arrive.
BODY_SECONDS = 30
#: From this size on, a body is parsed beside the event loop, which others wait for.
BESIDE_FROM = 64 * 1024
#: The largest number that a query may have: sequence numbers are far below, and no database refuses it.
MAX_NUMBER = 2**53


class ApiCall:
    """A request that its sender is allowed to make."""

    def __init__(self, exchange: Exchange, request: Request, person: Person) -> None:
        self.exchange = exchange
        self.request = request
        self.person = person

    @property
    def id(self) -> str:
        """The id in the path."""
        return str(self.request.path_params["id"])

    def query(self, name: str) -> str | None:
        """A parameter of the query; an empty one counts as absent.

        Raises:
            Refused: it says it more than once.
        """
        found = self.request.query_params.getlist(name)
        if len(found) > 1:
            raise ApiRefused(400, f"`{name}` may be given once only.")
        return found[0] if found and found[0] else None

    def number(self, name: str, least: int, most: int = MAX_NUMBER) -> int | None:
        """A number in the query.

        Raises:
            Refused: it is none, or not in these bounds.
        """
        text = self.query(name)
        return None if text is None else number(f"`{name}`", text, least, most)

    async def body(self, kind: type[V]) -> V:
        """The body, which must be a JSON object of that shape.

        Raises:
            Refused: 400 if it is not, 408 if it does not arrive, 413 if it is too large.
        """
        try:
            data = await bounded_body(self.request, MAX_BODY, BODY_SECONDS)
            value = _parsed(data) if len(data) < BESIDE_FROM else await asyncio.to_thread(_parsed, data)
            return shapes.decode(kind, value)
        except Refused as refused:
            raise ApiRefused(refused.status, f"{refused.message}.", headers=refused.headers) from None
        except ShapeError as error:
            raise ApiRefused(400, f"{error}." if error.path else f"The body {error}.") from None
        except ValueError as error:
            raise ApiRefused(400, f"The body is not JSON: {error}.") from None


#: Handles a request: returns the members of a JSON object, or a response.
Handler = Callable[[ApiCall], "Awaitable[Mapping[str, Any] | Response]"]


class ApiEndpoint(Value):
    """A route: `path` in Starlette's form (`/api/sessions/{id}`)."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    handler: Handler
    least: Role
    """Who may call it, at least."""
    summary: str
    body: type[Value] | None = None
    """The shape of the request's body."""
    query: Mapping[str, Schema] = {}
    """The parameters after the `?`."""
    answer: Mapping[str, Any] = {}
    """The JSON Schema of the answer."""
    status: int = 200
    """The status on success."""
    statuses: tuple[int, ...] = ()
    """Others, besides those that every route may have."""


def number(what: str, text: str, least: int, most: int = MAX_NUMBER) -> int:
    """The number that a text is.

    Raises:
        Refused: it is none, or not in these bounds.
    """
    if text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_NUMBER)) and least <= int(text) <= most:
        return int(text)
    raise ApiRefused(400, f"{what} must be a whole number from {least} to {most}.")


def _parsed(data: bytes) -> Any:
    return jsontext.loads(data, max_values=MAX_VALUES, unique=True)
