"""One route of the API, as data: the application serves it, and the OpenAPI document tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from trunkline.base.values import Value
from trunkline.network.network import Network

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Method = Literal["GET", "POST", "PATCH", "DELETE"]
#: Who may call: anybody; the holder of a runner's token; a runner with a signature; an owner with a session; a runner
#: or an owner; a signed runner or an owner; somebody with the administrator's key.
Auth = Literal["none", "runner", "signed", "owner", "runner or owner", "signed or owner", "admin"]

#: What answers: it gets the network and the request, and returns the members of a JSON object, or a response.
Handler = Callable[[Network, "Request"], "Awaitable[Mapping[str, Any] | Response]"]


class Endpoint(Value):
    """A route: `path` in Starlette's form (`/api/threads/{id}`)."""

    method: Method
    path: str
    handler: Handler
    auth: Auth
    summary: str
    tag: str
    body: Mapping[str, Any] | None = None
    """The JSON Schema of the request's body, for readers. The handler itself decides what it takes."""
    query: Mapping[str, str] | None = None
    """The parameters after the `?`, each with what it means."""
    answer: Mapping[str, Any] | None = None
    """The JSON Schema of the answer."""
    statuses: tuple[int, ...] = (400,)
    """Those besides 200 that it may answer with. 401 and 503 are added where they apply to all of a kind."""
