"""The agents of a `SessionKeeper` as what an MCP server offers: tools that ask them, and their sessions to read."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from trunkline.base import shapes
from trunkline.base.values import Value
from trunkline.core import faults
from trunkline.core.events import ToolRequested
from trunkline.core.keeper import OfferedAgent, Seat, SessionKeeper
from trunkline.wires.mcp import messages
from trunkline.wires.mcp.asking import AskRun
from trunkline.wires.mcp.conversation import SaidSession, said
from trunkline.wires.mcp.following import Following, question_text
from trunkline.wires.mcp.messages import Json
from trunkline.wires.mcp.offer import Caller, Handler

#: Messages of one client that are answered at the same time. Each may be an agent's process.
CALLS = 16
#: How long a question that was a request's result may wait for the request to be made again.
ANSWER_SECONDS = 600.0
#: Sessions that a server of one user alone keeps awake after their answers, so that the next message finds them so.
KEPT = 8
#: How many sessions are looked through for the completion of an id.
LOOKED_THROUGH = 1000

V = TypeVar("V", bound=Value)


class AgentsOffer:
    """Agents as tools. `only`: the agents to offer; by default all of them, and no plain models."""

    name = "trunkline"
    instructions = messages.INSTRUCTIONS

    def __init__(self, only: Collection[str] = ()) -> None:
        self._only = tuple(only)
        self._runs: set[AskRun] = set()
        self._asking: Counter[str] = Counter()
        """How many messages of each client are being answered."""
        self._parked: dict[str, _ParkedRun] = {}
        self._kept: OrderedDict[str, Seat] = OrderedDict()
        self.handlers: Mapping[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }

    async def close(self) -> None:
        """Stop what is being answered, and leave every session. Bounded by what stopping a turn is."""
        for token in tuple(self._parked):
            self._unpark(token)
        await asyncio.gather(*(run.abandon() for run in tuple(self._runs)))
        kept, self._kept = self._kept, OrderedDict()
        await asyncio.gather(*(seat.leave() for seat in kept.values()), return_exceptions=True)

    async def _named(self, caller: Caller) -> dict[str, OfferedAgent]:
        """The agents on offer, by the names of their tools."""
        agents = {agent.name: agent for agent in await caller.keeper.agents()}
        offered = [name for name in self._only if name in agents] or [
            name for name, agent in agents.items() if not agent.is_model and not self._only
        ]
        return {tool: agents[name] for tool, name in messages.tool_names(offered).items()}

    # Tools.

    async def _list_tools(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        _no_cursor(params)
        named = await self._named(caller)
        return {
            "tools": [*(messages.ask_tool(name, agent) for name, agent in named.items()), *messages.session_tools()]
        }

    async def _call_tool(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == messages.LIST_SESSIONS:
            return await self._list_sessions(caller, _arguments(messages.ListArguments, arguments))
        if name == messages.READ_SESSION:
            read = await self._said(caller, _arguments(messages.ReadArguments, arguments))
            return messages.result(read.text(), read.value())
        agent = (await self._named(caller)).get(name)
        if agent is None:
            raise faults.RemoteProtocolError(f"Unknown tool: `{name}`.", hint="`tools/list` names those there are.")
        return await self._ask(caller, agent, _arguments(messages.AskArguments, arguments), params)

    async def _list_sessions(self, caller: Caller, wanted: messages.ListArguments) -> Json:
        sessions = await caller.keeper.sessions(wanted.agent, limit=_limit(wanted.limit))
        listed = [messages.session_value(each) for each in sessions]
        return messages.result(messages.listed_text(sessions), {"sessions": listed})

    async def _said(self, caller: Caller, wanted: messages.ReadArguments) -> SaidSession:
        known = await caller.keeper.known(wanted.session)
        if known is None:
            raise faults.SessionNotFound(
                f"There is no session `{wanted.session}`.", hint="`list_sessions` names those there are."
            )
        events = await caller.keeper.read(known.id)
        return await asyncio.to_thread(said, known, events, _limit(wanted.limit))

    # Asking.

    async def _ask(
        self, caller: Caller, agent: OfferedAgent, wanted: messages.AskArguments, params: Mapping[str, Any]
    ) -> Json:
        state = params.get("requestState")
        if state is None:
            run = self._begun(caller, agent, wanted)
        else:
            run = self._resumed(caller, agent, state, params.get("inputResponses") or {})
        questions: Sequence[ToolRequested] = ()
        try:
            questions = await Following(run, caller).end()
        finally:
            # Unless it is over, or will be asked for again: the request was cancelled, or its client is gone.
            if not questions:
                run.stop()
        return self._park(run, caller, questions) if questions else _answer(run)

    def _begun(self, caller: Caller, agent: OfferedAgent, wanted: messages.AskArguments) -> AskRun:
        if not wanted.message.strip():
            raise faults.Unsupported("`message` is empty.", hint="Say something to the agent.")
        if self._asking[caller.who] >= CALLS:
            raise faults.AgentBusy(f"{CALLS} messages of this client are being answered.", hint="Wait for one of them.")
        keeper, who = caller.keeper, caller.who
        run = AskRun(
            agent.name,
            lambda removed: keeper.open(agent.name, wanted.session, removed=removed),
            lambda seat: self._left(seat, keeper),
            wanted.message,
        )
        self._runs.add(run)
        self._asking[who] += 1

        def over(_: object) -> None:
            self._runs.discard(run)
            self._asking -= Counter({who: 1})

        run.task.add_done_callback(over)
        return run

    async def _left(self, seat: Seat, keeper: SessionKeeper) -> None:
        """Leave a session. A server of one user alone stays in the last ones: they would end otherwise."""
        if keeper.is_shared:
            await seat.leave()
            return
        before = self._kept.pop(seat.session.id, None)
        self._kept[seat.session.id] = seat
        if before is not None:
            await before.leave()
        while len(self._kept) > KEPT:
            _, oldest = self._kept.popitem(last=False)
            await oldest.leave()

    # Questions that are results: the client makes its request again, with the answers.

    def _park(self, run: AskRun, caller: Caller, questions: Sequence[ToolRequested]) -> Json:
        token = secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._unpark, token)
        self._parked[token] = _ParkedRun(run, caller.who, timer)
        requests = {
            each.call_id: {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": question_text(run, each),
                    "requestedSchema": messages.decision_form(),
                },
            }
            for each in questions
        }
        return {"resultType": "input_required", "inputRequests": requests, "requestState": token}

    def _unpark(self, token: str) -> None:
        """Nobody came back with an answer."""
        parked = self._parked.pop(token)
        parked.timer.cancel()
        parked.run.stop()

    def _resumed(self, caller: Caller, agent: OfferedAgent, state: str, answers: Mapping[str, Any]) -> AskRun:
        parked = self._parked.get(state)
        if parked is None or parked.who != caller.who or parked.run.agent != agent.name:
            raise faults.RemoteProtocolError(
                "`requestState` is unknown, or was given back before.", hint="Call the tool again without it."
            )
        del self._parked[state]
        parked.timer.cancel()
        for call_id, answer in answers.items():
            parked.run.answer(call_id, messages.decision_of(answer))
        return parked.run

    # Resources.

    async def _list_resources(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        cursor = params.get("cursor")
        if cursor is not None and await caller.keeper.known(cursor) is None:
            raise faults.RemoteProtocolError("`cursor` is unknown.", hint="Begin with the first page again.")
        sessions = await caller.keeper.sessions(limit=messages.PAGE, before=cursor)
        listed: Json = {"resources": [messages.session_resource(each) for each in sessions]}
        if len(sessions) == messages.PAGE:
            listed["nextCursor"] = sessions[-1].id
        return listed

    async def _list_templates(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        _no_cursor(params)
        return {"resourceTemplates": [messages.session_template()]}

    async def _read_resource(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        uri = params["uri"]
        session = messages.session_of(uri)
        if session is None:
            raise faults.SessionNotFound(
                f"There is no resource `{uri}`.", hint="`resources/list` names those there are."
            )
        read = await self._said(caller, messages.ReadArguments(session, messages.MOST))
        return {"contents": [{"uri": uri, "mimeType": messages.SESSION_TYPE, "text": read.text()}]}

    # Prompts.

    async def _list_prompts(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        _no_cursor(params)
        return {"prompts": [messages.ask_prompt(name, agent) for name, agent in (await self._named(caller)).items()]}

    async def _get_prompt(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        name = params["name"]
        if name not in await self._named(caller):
            raise faults.RemoteProtocolError(f"Unknown prompt: `{name}`.", hint="`prompts/list` names those there are.")
        try:
            arguments = shapes.decode(messages.AskArguments, params.get("arguments") or {})
        except shapes.ShapeError as error:
            raise faults.RemoteProtocolError(f"The arguments are wrong: {error}.") from None
        return messages.prompt_text(name, arguments)

    async def _complete(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        """Only ids of sessions can be completed."""
        argument = params["argument"]
        found: list[str] = []
        if argument["name"] == "session":
            sessions = await caller.keeper.sessions(limit=LOOKED_THROUGH)
            found = [each.id for each in sessions if each.id.startswith(argument["value"])]
        shown = found[: messages.COMPLETED]
        return {"completion": {"values": shown, "total": len(found), "hasMore": len(shown) < len(found)}}


class _ParkedRun(Value):
    """A run whose questions its client has, and who the client is."""

    run: AskRun
    who: str
    timer: asyncio.TimerHandle


def _answer(run: AskRun) -> Json:
    """The result of a turn that has ended, or that never began."""
    if run.outcome is None:
        raise run.fault or faults.AgentFailed("The agent gave no answer.")
    structured: Json = {"session": run.session, "text": run.text, "outcome": run.outcome}
    if run.usage is not None and run.usage.known:
        structured["usage"] = shapes.encode(run.usage)
    if run.outcome == "success":
        return messages.result(run.text, structured)
    why = str(run.fault) if run.fault else {"cancelled": "The turn was stopped."}.get(run.outcome, "The turn failed.")
    structured["error"] = why
    return messages.result(f"{run.text}\n\n{why}" if run.text else why, structured, is_error=True)


def _arguments(kind: type[V], arguments: Mapping[str, Any]) -> V:
    try:
        return shapes.decode(kind, dict(arguments))
    except shapes.ShapeError as error:
        raise faults.Unsupported(f"The arguments are wrong: {error}.", hint="`tools/list` has their schema.") from None


def _limit(limit: int) -> int:
    if not 1 <= limit <= messages.MOST:
        raise faults.Unsupported(f"`limit` must be a number from 1 to {messages.MOST}, not {limit}.")
    return limit


def _no_cursor(params: Mapping[str, Any]) -> None:
    """Lists that have one page."""
    if params.get("cursor") is not None:
        raise faults.RemoteProtocolError("`cursor` is unknown.", hint="Begin with the first page again.")
