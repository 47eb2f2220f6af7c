"""An agent under test, seen as its client sees it: requests out, answers and updates in, and every wait bounded.

Lines that are no messages are recorded and otherwise passed over: one check says that there must be none, and the
others can still tell what else is right or wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.conform.acp.vocabulary import METHOD_NOT_FOUND
from trunkline.conform.expect import short
from trunkline.conform.kit import Broken
from trunkline.conform.process import RunningTarget

PERMISSION = "session/request_permission"
UPDATE = "session/update"

#: What the kit answers when it is asked for a permission; `hold`: nothing, until a check decides.
Policy = Literal["allow", "reject", "cancelled", "hold"]

#: Bytes of what was sent that a reason shows.
_SENT_CHARS = 160


class AcpReply(Value):
    """The answer to a request, and what was heard between the two."""

    asked: str
    """The request, for a reason."""
    message: Mapping[str, Any]
    before: tuple[Mapping[str, Any], ...]

    @property
    def error(self) -> Any:
        """What is wrong; None if nothing is."""
        return self.message.get("error")

    @property
    def code(self) -> Any:
        """The number of the error; None if there is none."""
        return self.error.get("code") if isinstance(self.error, dict) else None

    @property
    def result(self) -> Mapping[str, Any]:
        """The result as an object; an empty one if it is something else."""
        found = self.message.get("result")
        return found if isinstance(found, dict) else {}

    @property
    def shown(self) -> str:
        """What came back, for a reason."""
        return short(dict(self.message))

    def updates(self, session: str, *kinds: str) -> list[Mapping[str, Any]]:
        """The updates of a session that came before the answer."""
        return updates_in(self.before, session, *kinds)

    def text(self, session: str, kind: str = "agent_message_chunk") -> str:
        """What was said in a session before the answer."""
        return "".join(text_of(update) for update in self.updates(session, kind))


class AcpAsked(Value):
    """A request that was sent."""

    id: int
    asked: str
    since: int
    """How much had been heard then."""


class AcpSubject:
    """One running agent. Made by a stage, which ends it, too."""

    process: RunningTarget

    def __init__(self, policy: Policy = "allow") -> None:
        self.policy: Policy = policy
        self.heard: list[Mapping[str, Any]] = []
        """All messages, in order."""
        self.permissions: list[Mapping[str, Any]] = []
        """The requests for a permission among them."""
        self.capabilities: Mapping[str, Any] = {}
        self._ids = itertools.count(1)

    # Hearing from it.

    def hear(self, line: bytes) -> Any:
        """Take a line of its output."""
        data = parsed(line)
        if isinstance(data, dict):
            self.heard.append(data)
            if isinstance(data.get("method"), str) and "id" in data:
                self._requested(data)
        return data

    def _requested(self, request: Mapping[str, Any]) -> None:
        """Answer what the agent asks of its client, which offers neither files nor terminals."""
        if request["method"] != PERMISSION:
            error = {"code": METHOD_NOT_FOUND, "message": "The kit offers no such method."}
            self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})
            return
        self.permissions.append(request)
        if self.policy == "cancelled":
            self.answer_permission(request, None)
        elif self.policy != "hold":
            self.answer_permission(request, option(request, self.policy))

    def answer_permission(self, request: Mapping[str, Any], option_id: str | None) -> None:
        """Choose an option; None: the turn was cancelled."""
        chosen = {"outcome": "cancelled"} if option_id is None else {"outcome": "selected", "optionId": option_id}
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": chosen}})

    async def until(self, condition: Callable[[], bool], within: float) -> bool:
        """Wait until something holds."""
        return await self.process.until(condition, within)

    async def listen(self, seconds: float) -> list[Mapping[str, Any]]:
        """What is said in the next seconds."""
        since = len(self.heard)
        await self.until(lambda: False, seconds)
        return self.heard[since:]

    # Telling it something.

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        self.write(jsontext.dumps(dict(message)) + b"\n")

    def write(self, data: bytes) -> None:
        """Write bytes as they are; what they hold in lines is recorded."""
        for line in data.removesuffix(b"\n").split(b"\n"):
            self.process.record.add("host", line, parsed(line))
        self.process.write(data)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": dict(params)})

    def close_input(self) -> None:
        """Let it see the end of its standard input."""
        self.process.record.remark("standard input closed")
        self.process.close_input()

    def begin(self, method: str, params: Mapping[str, Any] | None) -> AcpAsked:
        """Send a request; do not wait."""
        id = next(self._ids)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = dict(params)
        asked = AcpAsked(id, shown_request(method, params), len(self.heard))
        self.send(message)
        return asked

    def answer_to(self, id: Any) -> Mapping[str, Any] | None:
        """The response with that id; None if there is none yet."""
        return next((each for each in self.heard if is_response(each) and _same(each.get("id"), id)), None)

    async def answer(self, asked: AcpAsked, within: float) -> AcpReply:
        """The response to a request.

        Raises:
            Broken: it does not come.
        """
        await self.until(lambda: self.answer_to(asked.id) is not None, within)
        found = self.answer_to(asked.id)
        if found is None:
            raise Broken(f"{asked.asked} was not answered {await self.how_long(within)}")
        end = next(place for place, each in enumerate(self.heard) if each is found)
        return AcpReply(asked.asked, found, tuple(self.heard[asked.since : end]))

    async def ask(self, method: str, params: Mapping[str, Any] | None, within: float) -> AcpReply:
        """Send a request and wait for its response.

        Raises:
            Broken: it does not come.
        """
        return await self.answer(self.begin(method, params), within)

    async def how_long(self, within: float) -> str:
        """For how long something was waited for, and whether the agent is still there."""
        code = await self.process.ended(0)
        return f"within {within:g} s" if code is None else f"before the agent {self.process.how_it_ended}"


def updates_in(messages: Sequence[Mapping[str, Any]], session: str | None, *kinds: str) -> list[Mapping[str, Any]]:
    """The updates among messages: of a session, and of these kinds if some are named."""
    found: list[Mapping[str, Any]] = []
    for message in messages:
        params = message.get("params")
        if message.get("method") != UPDATE or not isinstance(params, dict):
            continue
        update = params.get("update")
        fits = session is None or params.get("sessionId") == session
        if fits and isinstance(update, dict) and (not kinds or update.get("sessionUpdate") in kinds):
            found.append(update)
    return found


def text_of(update: Mapping[str, Any]) -> str:
    """The text of a chunk; nothing if it has none."""
    content = update.get("content")
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""


def option(request: Mapping[str, Any], answer: str, kind: str = "") -> str | None:
    """The id of the first option that allows or rejects, or of that kind; None if there is none."""
    for each in options_of(request):
        found = each.get("kind")
        if (found == kind if kind else str(found).startswith(answer)) and isinstance(each.get("optionId"), str):
            return str(each["optionId"])
    return None


def options_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The options of a request for a permission, as far as they are objects."""
    params = request.get("params")
    given = params.get("options") if isinstance(params, dict) else None
    found = given if isinstance(given, list) else []
    return [each for each in found if isinstance(each, Mapping)]


def is_response(message: Mapping[str, Any]) -> bool:
    """Whether a message answers something."""
    return "method" not in message and ("result" in message or "error" in message)


def shown_request(method: str, params: Mapping[str, Any] | None) -> str:
    """A request, for a reason."""
    if params is None:
        return f"`{method}` without parameters"
    text = jsontext.dumps(dict(params)).decode()
    return f"`{method}` {text if len(text) <= _SENT_CHARS else text[:_SENT_CHARS] + '...'}"


def parsed(line: bytes) -> Any:
    """The JSON value in a line; None if it holds none."""
    try:
        return jsontext.loads(line)
    except ValueError:
        return None


def _same(found: Any, id: Any) -> bool:
    """Whether two ids are the same: 1 is neither `true` nor a text."""
    return type(found) is type(id) and bool(found == id)
