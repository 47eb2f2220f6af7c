"""The protocol around what is offered, by the official SDK: both its generations, with a handshake and without.

Importing this module imports the SDK.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import types
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from trunkline import __version__
from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core import faults
from trunkline.core.keeper import SessionKeeper
from trunkline.wires import jsonrpc
from trunkline.wires.mcp import messages
from trunkline.wires.mcp.messages import Json
from trunkline.wires.mcp.offer import Handler, Offer

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

INTERNAL = "The server failed. Its log says why."

#: What the parameters of each method look like.
_PARAMS: Mapping[str, type[types.RequestParams]] = {
    "tools/list": types.PaginatedRequestParams,
    "tools/call": types.CallToolRequestParams,
    "resources/list": types.PaginatedRequestParams,
    "resources/templates/list": types.PaginatedRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
    "prompts/list": types.PaginatedRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "completion/complete": types.CompleteRequestParams,
    "logging/setLevel": types.SetLevelRequestParams,
}


#: What results say since 2026-07-28, if they say nothing else: that they are whole, and not to be kept. Agents and
#: sessions come and go, and each client sees its own.
_WHOLE: Mapping[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Client(Value):
    """Whose client sends a request, and the sessions that it may use."""

    keeper: SessionKeeper
    who: str


class SdkCaller:
    """A client, as the SDK has it."""

    def __init__(self, context: Context, client: Client) -> None:
        self.context = context
        self.keeper = client.keeper
        self.who = client.who

    @property
    def can_be_asked(self) -> bool:
        """Whether it shows forms, and can be reached now."""
        capabilities = self.context.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities else None
        # Those of before there was another kind say only that they can ask.
        shows_forms = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
        return shows_forms and (self.answers_by_asking_again or self.context.session.can_send_request)

    @property
    def answers_by_asking_again(self) -> bool:
        """Whether it is of the generation that servers send no requests to."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def progress(self, done: float, message: str) -> None:
        """Tell how it goes; the SDK knows whether the client wants to know."""
        await self.context.session.report_progress(done, None, jsontext.whole(message))

    async def ask(self, message: str, form: Mapping[str, Any]) -> Json | None:
        """Have its user fill in a form; None if that was not possible."""
        try:
            answer = await self.context.session.elicit_form(
                jsontext.whole(message), dict(form), related_request_id=self.context.request_id
            )
        except (MCPError, ValueError) as error:
            # It refused, or what it said is no answer.
            logger.info("an MCP client could not be asked: %s", type(error).__name__)
            return None
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def mcp_server(offer: Offer, client_of: Callable[[Context], Client]) -> Server[Any]:
    """A server of the SDK for what is offered. `client_of`: who sends a request."""
    server: Server[Any] = Server(offer.name, version=__version__, title="Trunkline", instructions=offer.instructions)
    # What it traces, our log has; and it would find a collector by variables that were not meant for us.
    server.middleware[:] = [_saying_what_is_wrong]
    for method, handler in offer.handlers.items():
        server.add_request_handler(method, _PARAMS[method], _answering(method, handler, client_of))
    return server


async def _saying_what_is_wrong(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The SDK says only that parameters are invalid, whatever it is."""
    try:
        return await call_next(ctx)
    except ValueError as error:
        # Of the SDK's models: what handlers raise has become an `MCPError`.
        raise MCPError(jsonrpc.INVALID_PARAMS, _problem(ctx, error)) from None
    except MCPError as error:
        if error.error.code == jsonrpc.INVALID_PARAMS and error.error.data == "":
            raise MCPError(jsonrpc.INVALID_PARAMS, f"Send `initialize` before `{ctx.method}`.") from None
        raise


def _problem(context: Context, error: Any) -> str:
    """The first member that is missing or wrong, in our words."""
    if not hasattr(error, "errors"):
        return f"Invalid `{context.method}`."
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path: list[str] = []
    found: Any = {"params": context.params or {}}
    is_missing = first["type"] == "missing"
    where = first["loc"] if first["loc"][:1] == ("params",) else ("params", *first["loc"])
    for part in where:
        if not isinstance(found, dict) or (part not in found and not is_missing):
            # What follows is a name of the SDK's, for one of the types that are possible.
            break
        path.append(str(part))
        found = found.get(part)
    return f"Invalid `{context.method}`: `{'.'.join(path)}` {'is missing' if is_missing else 'is not what it must be'}."


def _answering(
    method: str, handler: Handler, client_of: Callable[[Context], Client]
) -> Callable[[Context, Any], Awaitable[Json]]:
    async def answer(context: Context, _: Any) -> Json:
        caller = SdkCaller(context, client_of(context))
        result = await _result(method, handler, caller)
        return {**_WHOLE, **result} if caller.answers_by_asking_again else result

    return answer


async def _result(method: str, handler: Handler, caller: SdkCaller) -> Json:
    try:
        return await handler(caller, caller.context.params or {})
    except MCPError:
        raise
    except faults.RemoteProtocolError as fault:
        raise MCPError(jsonrpc.INVALID_PARAMS, str(fault)) from fault
    except faults.Fault as fault:
        if method == "tools/call":
            return messages.result(str(fault), is_error=True)
        raise MCPError(_code(fault), str(fault)) from fault
    except Exception as error:
        logger.exception("`%s` failed", method)
        raise MCPError(jsonrpc.INTERNAL_ERROR, INTERNAL) from error


def _code(fault: faults.Fault) -> int:
    if isinstance(fault, faults.SessionNotFound):
        return jsonrpc.RESOURCE_NOT_FOUND
    # An id that cannot be one, for example.
    return jsonrpc.INVALID_PARAMS if isinstance(fault, faults.ConfigError) else jsonrpc.INTERNAL_ERROR
