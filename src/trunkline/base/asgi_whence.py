"""Notes where a request comes from, for whatever is logged and traced on its way: by which wire, and in which trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trunkline.base import log_context, trace_context

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Whence:
    """Outermost: all that is done for a request is behind it.

    Args:
        wire: the name of the wire that has an address.
        is_traced: whether anybody follows what is done; else nothing is told of a trace.
    """

    def __init__(self, app: ASGIApp, *, wire: Callable[[str], str], is_traced: Callable[[], bool]) -> None:
        self._app = app
        self._wire = wire
        self._is_traced = is_traced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        trace = trace_context.read(_headers(scope)) if self._is_traced() else None
        with log_context.about(wire=self._wire(scope["path"])), trace_context.within(trace):
            await self._app(scope, receive, send)


def _headers(scope: Scope) -> dict[str, str]:
    """Those that tell of a trace. A list that was sent in parts is one list."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1")
        if name in trace_context.VARIABLES:
            text = value.decode("latin-1")
            found[name] = f"{found[name]},{text}" if name in found else text
    return found
