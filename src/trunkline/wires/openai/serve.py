"""The application: `/v1` in front of whoever keeps sessions.

app = OpenAIApplication(keeper_of)      # an ASGI application; `keeper_of` gives the keeper of a request's client
...
app.close()                             # ends the answers that are being given; `await app.closed()` waits for it
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from trunkline.base.asgi_answers import Refused, answer
from trunkline.base.asgi_last_resort import LastResort
from trunkline.core.faults import Fault
from trunkline.core.ids import new_id
from trunkline.core.keeper import OfferedAgent, SessionKeeper
from trunkline.wires.openai import stored
from trunkline.wires.openai.asking import ask, is_model, refused_of
from trunkline.wires.openai.bodies import json_params
from trunkline.wires.openai.chat import ChatWriter, read_chat
from trunkline.wires.openai.cutting import AnswerCutter, AskedCuts
from trunkline.wires.openai.errors import RETRY_HEADER, OpenAIRefused, bad, members, unknown_model, unsupported
from trunkline.wires.openai.messages import MAX_BODY, SESSION_HEADER, AskedTurn
from trunkline.wires.openai.responses import read_response
from trunkline.wires.openai.responses_writer import ResponsesWriter
from trunkline.wires.openai.streaming import AnswerStream, OpenTurns, session_headers, waited
from trunkline.wires.openai.telling import TurnTeller
from trunkline.wires.openai.turn import AnsweringTurn

#: Conversations that were begun and have no session yet; the oldest is forgotten first.
MOST_EMPTY = 10_000

KeeperOf = Callable[[Scope], SessionKeeper]

_Endpoint = Callable[[Request], Awaitable[Response]]
_INTERNAL = OpenAIRefused(500, "Internal error.", code="internal")
#: Nobody reads it: the client has hung up.
_NOBODY = 499


class OpenAIApplication:
    """Agents as models. `more`: routes of others under `/v1`, such as for embeddings."""

    def __init__(self, keeper_of: KeeperOf, more: Sequence[BaseRoute] = ()) -> None:
        self._keeper_of = keeper_of
        self._turns = OpenTurns()
        self._began = int(time.time())
        self._empty: dict[str, Mapping[str, Any]] = {}
        self._cuts = AskedCuts()
        handlers: dict[Any, Any] = {
            Refused: _refused,
            Fault: _faulty,
            HTTPException: _no_route,
            ClientDisconnect: _gone,
        }
        last_resort = Middleware(LastResort, answer=error(_INTERNAL))
        self._app = Starlette(routes=[*self._routes(), *more], middleware=[last_resort], exception_handlers=handlers)
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def close(self) -> None:
        """End the answers that are being given, and those that will be."""
        self._turns.close()

    async def closed(self) -> None:
        """Wait until every session was left."""
        await self._turns.closed()

    def _routes(self) -> list[BaseRoute]:
        one = "/v1/responses/{id}"
        talk = "/v1/conversations/{id}"
        return [
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{id:path}", self._model, methods=["GET"]),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/responses", self._respond, methods=["POST"]),
            _methods(one, GET=self._response, DELETE=self._delete_response),
            Route(f"{one}/cancel", self._cancel, methods=["POST"]),
            Route(f"{one}/input_items", self._input_items, methods=["GET"]),
            Route("/v1/conversations", self._new_conversation, methods=["POST"]),
            _methods(talk, GET=self._conversation, DELETE=self._delete_conversation),
            Route(f"{talk}/items", self._items, methods=["GET"]),
        ]

    def _asking(self, request: Request) -> SessionKeeper:
        """The keeper of a client that may do more than list models.

        Raises:
            Forbidden: it may not.
        """
        keeper = self._keeper_of(request.scope)
        keeper.check_may_ask()
        return keeper

    # Models

    async def _models(self, request: Request) -> Response:
        offered = await self._keeper_of(request.scope).agents()
        return answer({"object": "list", "data": [self._described(each) for each in offered]})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["id"]
        for each in await self._keeper_of(request.scope).agents():
            if each.name == name:
                return answer(self._described(each))
        raise unknown_model(name)

    def _described(self, agent: OfferedAgent) -> Mapping[str, Any]:
        found = {"id": agent.name, "object": "model", "created": self._began, "owned_by": "trunkline"}
        return {**found, "description": agent.description} if agent.description else found

    # Answers

    async def _chat(self, request: Request) -> Response:
        self._turns.check()
        asked = _in_session(read_chat(await json_params(request, MAX_BODY)), request)
        turn = await ask(self._asking(request), asked)
        writer = ChatWriter(asked, turn.seat.session.id, turn.number, int(time.time()))
        return await self._answered(request, asked, turn, writer)

    async def _respond(self, request: Request) -> Response:
        self._turns.check()
        asked = _in_session(read_response(await json_params(request, MAX_BODY)), request)
        turn = await ask(self._asking(request), asked)
        session = turn.seat.session.id
        writer = ResponsesWriter(
            asked.model,
            session,
            turn.number,
            int(time.time()),
            echoed=asked.echoed,
            streams=asked.stream,
            clock=time.time,
            kept=not asked.is_passing,
        )
        return await self._answered(request, asked, turn, writer)

    async def _answered(
        self, request: Request, asked: AskedTurn, turn: AnsweringTurn, writer: ChatWriter | ResponsesWriter
    ) -> Response:
        cutter = None
        if not is_model(asked.model) and (asked.stop or asked.max_tokens is not None):
            cutter = AnswerCutter(asked.stop, asked.max_tokens)
            if isinstance(writer, ResponsesWriter) and not asked.is_passing:
                self._cuts.keep(writer.id, asked.stop, asked.max_tokens)
        teller = TurnTeller(writer, cutter)
        headers = session_headers(None if asked.is_passing else turn.seat.session.id, writer.id)
        self._turns.add(turn)
        if asked.stream:
            stream = AnswerStream(turn, self._turns, headers, detached=asked.background)
            stream.give(writer.begin())
            turn.begin(teller, stream.give)
            return stream
        turn.begin(teller)
        if asked.background:
            self._turns.in_background(turn)
            return answer(writer.whole(), headers=headers)
        try:
            if not await waited(turn, request.receive):
                return Response(status_code=_NOBODY)
        finally:
            await self._turns.leave(turn)
        if teller.refused is not None and not (teller.stopped and isinstance(writer, ResponsesWriter)):
            teller.refused.headers.update(headers)
            raise teller.refused
        return answer(writer.whole(), headers=headers)

    # What was before

    async def _response(self, request: Request) -> Response:
        if request.query_params.get("stream") == "true":
            raise unsupported("stream", "A response cannot be streamed again. Leave `stream` out.")
        found = await stored.find(self._asking(request), request.path_params["id"], self._cuts)
        return answer(found.members(), headers=session_headers(found.session, request.path_params["id"]))

    async def _delete_response(self, request: Request) -> Response:
        return answer(await stored.delete(self._asking(request), request.path_params["id"]))

    async def _cancel(self, request: Request) -> Response:
        return answer(await stored.cancel(self._asking(request), request.path_params["id"], self._cuts))

    async def _input_items(self, request: Request) -> Response:
        return answer(await stored.input_items(self._asking(request), request.path_params["id"]))

    # Conversations

    async def _new_conversation(self, request: Request) -> Response:
        self._asking(request)
        params = await json_params(request, MAX_BODY, may_be_empty=True)
        if params.list("items"):
            raise unsupported("items", "A conversation begins empty here: send its items as `input` of a response.")
        metadata = params.object("metadata")
        # Its session begins with its first message, which says who answers.
        found = {"id": new_id(), "object": "conversation", "created_at": int(time.time())}
        made = {**found, "metadata": {} if metadata is None else metadata.members}
        self._empty[str(made["id"])] = made
        if len(self._empty) > MOST_EMPTY:
            del self._empty[next(iter(self._empty))]
        return answer(made)

    async def _conversation(self, request: Request) -> Response:
        id = request.path_params["id"]
        known = await self._asking(request).known(id)
        if known is not None:
            return answer({**stored.conversation(known), "metadata": self._empty.get(id, {}).get("metadata", {})})
        if id in self._empty:
            return answer(self._empty[id])
        raise stored.no_conversation(id)

    async def _delete_conversation(self, request: Request) -> Response:
        id = request.path_params["id"]
        keeper = self._asking(request)
        is_empty = self._empty.pop(id, None) is not None
        if await keeper.known(id) is not None:
            await keeper.remove(id)
        elif not is_empty:
            raise stored.no_conversation(id)
        return answer({"id": id, "object": "conversation.deleted", "deleted": True})

    async def _items(self, request: Request) -> Response:
        id = request.path_params["id"]
        keeper = self._asking(request)
        if id in self._empty and await keeper.known(id) is None:
            return answer(stored.listed([]))
        return answer(await stored.conversation_items(keeper, id, self._cuts))


def _methods(path: str, **endpoints: _Endpoint) -> Route:
    """One path with several methods: another one is then refused as such."""

    async def endpoint(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, endpoint, methods=list(endpoints))


def _in_session(asked: AskedTurn, request: Request) -> AskedTurn:
    """The request with the session that its header names."""
    found = request.headers.get(SESSION_HEADER)
    if not found:
        return asked
    try:
        named = found.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise bad(None, f"`{SESSION_HEADER}` is not UTF-8.") from None
    if asked.previous is not None or asked.session not in (None, named):
        told = f"`{SESSION_HEADER}` and `{'conversation' if asked.session else 'previous_response_id'}` name a session."
        raise bad(None, f"{told} Say it once.")
    return asked.replace(session=named)


# What is refused


def error(refused: OpenAIRefused) -> Response:
    """A refusal as a response."""
    body = members(refused.status, refused.message, refused.param, refused.code)
    return answer(body, refused.status, refused.headers)


async def _refused(request: Request, refused: Refused) -> Response:
    if isinstance(refused, OpenAIRefused):
        return error(refused)
    return error(OpenAIRefused(refused.status, refused.message, headers=refused.headers))


async def _faulty(request: Request, fault: Fault) -> Response:
    return error(refused_of(fault))


async def _gone(request: Request, gone: ClientDisconnect) -> Response:
    return Response(status_code=_NOBODY)


async def _no_route(request: Request, missing: HTTPException) -> Response:
    if missing.status_code == 405:
        told = f"`{request.url.path[:80]}` does not take {request.method}."
    else:
        told = f"There is nothing at `{request.method} {request.url.path[:80]}`."
    headers = {**(missing.headers or {}), RETRY_HEADER: "false"}
    return error(OpenAIRefused(missing.status_code, told, code=None, headers=headers))
