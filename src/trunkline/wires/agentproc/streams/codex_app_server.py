"""`codex app-server`: JSON-RPC, one object to a line. It asks before it runs a command outside its sandbox or changes a
file, and waits for the answer.

We say `initialize`, then `thread/start` or `thread/resume`, then `turn/start`; its `turn/completed` ends the turn, and
the end of its input ends it. What it is allowed without asking is its own configuration's affair: `approval_policy`
and `sandbox_mode`, which a profile gives as arguments.

`codex exec` takes the key in `CODEX_API_KEY`, and this does not: so it is logged in with it, for this run only. The
login that the user has is neither used then nor touched. The key in `OPENAI_API_KEY`, which may be there for other
programs, is taken only where there is no login: nobody pays for by the token what a subscription covers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from trunkline.wires.agentproc.codec import portable_id
from trunkline.wires.agentproc.messages import PermissionRequest, PermissionResponse, TurnRequest
from trunkline.wires.agentproc.streams.codex_requests import permission, reply_to
from trunkline.wires.agentproc.streams.dialogue import MAX_ID, Event, JsonDialogue, line, shown
from trunkline.wires.agentproc.streams.jsonlines import member, objects, text_of

#: The ids of our requests.
_INITIALIZE, _LOGIN, _OPEN, _TURN = 1, 2, 3, 4
_KEY_VARIABLE, _COMMON_KEY_VARIABLE = "CODEX_API_KEY", "OPENAI_API_KEY"
_LOGIN_IN_MEMORY = ("-c", 'cli_auth_credentials_store="ephemeral"')
#: As JSON-RPC has it: there is no such method.
_NO_METHOD = -32601
#: Items that have begun and may be asked about; the oldest is forgotten. Agents run a few at a time.
_MAX_ITEMS = 256

#: Its counts of tokens, and what 0.4 calls them.
_COUNTS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cache_read_input_tokens",
    "reasoningOutputTokens": "reasoning_tokens",
    "totalTokens": "total_tokens",
}


class Stream(JsonDialogue):
    """Talks to one run."""

    #: Not in what it is about: that may hold anything.
    asks = re.compile(rb'\s*\{[^{[]*?(?:"id"\s*:[^{[]*"method"\s*:|"method"\s*:\s*"[^"]*/request)')

    def __init__(self) -> None:
        super().__init__()
        self._asked_anew = 0
        self._turn = TurnRequest("")
        self._key = ""
        self._thread = self._turn_id = ""
        self._items: dict[str, Event] = {}
        self._spent_before: dict[str, int] | None = None

    def arguments(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Where it is to log in with a key, that stays in its memory."""
        self._key = env.get(_KEY_VARIABLE, "") or ("" if _has_login(env) else env.get(_COMMON_KEY_VARIABLE, ""))
        return _LOGIN_IN_MEMORY if self._key else ()

    def begin(self, turn: TurnRequest) -> bytes:
        """The handshake; the message follows when the thread is open."""
        from trunkline import __version__

        self._turn = turn
        client = {"name": "trunkline", "title": "Trunkline", "version": __version__}
        return line({"id": _INITIALIZE, "method": "initialize", "params": {"clientInfo": client}})

    def take(self, event: Event) -> None:
        """Say what an object means."""
        if self._concluded or self._failed:
            return
        method, params = event.get("method"), event.get("params")
        if isinstance(method, str) and "id" in event:
            self._take_request(event["id"], method, params if isinstance(params, dict) else {})
        elif isinstance(method, str):
            self._take_notification(method, params)
        elif "error" in event:
            self.fail(text_of(member(event, "error", "message")) or "Codex refused the request.")
        elif event.get("id") == _INITIALIZE:
            self.tell({"method": "initialized"})
            if self._key:
                login = {"type": "apiKey", "apiKey": self._key}
                self.tell({"id": _LOGIN, "method": "account/login/start", "params": login})
            else:
                self._open()
        elif event.get("id") == _LOGIN:
            self._open()
        elif event.get("id") == _OPEN:
            self._start(text_of(member(event, "result", "thread", "id")))
        elif event.get("id") == _TURN:
            self._turn_id = text_of(member(event, "result", "turn", "id"))

    def answer_of(self, key: Any, request: PermissionRequest, response: PermissionResponse) -> Mapping[str, Any]:
        """It takes a yes or a no to what it asked for, and no other input instead."""
        allowed = response.behavior == "allow" and response.updated_input in (None, request.input)
        request_id, method, params = key
        return {"id": request_id, "result": reply_to(method, params, allowed)}

    # The handshake

    def _open(self) -> None:
        if self._turn.session_id:
            # Without its turns, which can be longer than any line that is read.
            known = {"threadId": self._turn.session_id, "excludeTurns": True}
            self.tell({"id": _OPEN, "method": "thread/resume", "params": known})
        else:
            self.tell({"id": _OPEN, "method": "thread/start", "params": {}})

    def _start(self, thread: str) -> None:
        if self._thread or not thread:
            return
        self._thread = thread
        self.session(thread)
        text = {"type": "text", "text": self._turn.message, "text_elements": []}
        self.tell({"id": _TURN, "method": "turn/start", "params": {"threadId": thread, "input": [text]}})

    # What it tells

    def _take_notification(self, method: str, params: Any) -> None:
        if method == "serverRequest/resolved":
            self._resolve(member(params, "requestId"))
        elif method in ("item/started", "item/completed"):
            self._take_item(method, member(params, "item"), member(params, "threadId") == self._thread)
        elif method == "item/fileChange/patchUpdated":
            item_id = text_of(member(params, "itemId"))
            if item_id in self._items:
                self._know(item_id, {**self._items[item_id], "changes": member(params, "changes")})
        elif member(params, "threadId") == self._thread:
            # What a sub-agent says in a thread of its own is not the answer.
            self._take_own(method, params)

    def _take_own(self, method: str, params: Any) -> None:
        match method:
            case "item/agentMessage/delta":
                self.piece(member(params, "delta"))
            case "item/reasoning/summaryTextDelta":
                self.think(member(params, "delta"))
            case "thread/tokenUsage/updated" if member(params, "turnId") == self._turn_id:
                self._count(member(params, "tokenUsage"))
            case "error":
                # Also said of an attempt that is made again.
                self.worry(member(params, "error", "message"))
            case "turn/completed":
                self._complete(member(params, "turn"))

    def _take_item(self, method: str, item: Any, own: bool) -> None:
        kind, item_id = member(item, "type"), text_of(member(item, "id"))
        if kind == "agentMessage":
            if own and method == "item/completed":
                self.passage(member(item, "text"))
        elif kind == "reasoning":
            summary = member(item, "summary")
            if own and method == "item/completed" and isinstance(summary, list):
                self.think_passage("\n\n".join(map(text_of, summary)))
        elif method == "item/completed":
            self._items.pop(item_id, None)
            self.used(item_id, member(item, "status") == "completed", _output(item))
        elif item_id:
            self._know(item_id, item)
            while len(self._items) > _MAX_ITEMS:
                del self._items[next(iter(self._items))]

    def _know(self, item_id: str, item: Event) -> None:
        """Note what an item is about. Who was asked about it when it was something else is asked anew: a yes is for
        what was seen."""
        is_other = self._items.get(item_id) != item
        self._items[item_id] = item
        if not is_other:
            return
        for name, (key, request) in tuple(self._asked.items()):
            if request.tool_use_id == item_id and self.withdraw(name):
                self._asked_anew += 1
                request_id, method, params = key
                changed = permission(f"{_name_of(request_id)}:{self._asked_anew}", method, params, self._items)
                self.ask(key, changed or request)

    def _count(self, usage: Any) -> None:
        """It counts the whole thread, whose last count comes again when it is resumed. What was spent before this turn
        is known from the first report in it."""
        total, last = (_counts(member(usage, name)) for name in ("total", "last"))
        if self._spent_before is None:
            self._spent_before = {name: total[name] - last.get(name, 0) for name in total}
        self._usage = {name: count - self._spent_before.get(name, 0) for name, count in total.items()}

    def _complete(self, turn: Any) -> None:
        status = member(turn, "status")
        if status == "completed":
            self.succeed()
            self.conclude()
        else:
            message = text_of(member(turn, "error", "message"))
            self.fail(message or self._trouble or f"Codex ended the turn: {shown(status)}.")

    # What it asks

    def _take_request(self, request_id: Any, method: str, params: Mapping[str, Any]) -> None:
        is_usable = _is_usable(request_id)
        request = permission(_name_of(request_id) if is_usable else "", method, params, self._items)
        if request is not None:
            no = {"id": request_id, "result": reply_to(method, params, False)}
            if not is_usable:
                self.refuse(f"{shown(method)}, without a usable `id`", no)
            elif first := self._open_as(request_id):
                # Nobody could tell which of the two an answer is for.
                self.withdraw(first)
                self.tell(no)
                self.refuse(f"{shown(method)}, as another request that waits", no)
            else:
                self.ask((request_id, method, params), request)
        elif method == "mcpServer/elicitation/request":
            self.refuse(method, {"id": request_id, "result": reply_to(method, params, False)})
        else:
            error = {"code": _NO_METHOD, "message": "Nobody here can answer this."}
            self.refuse(shown(method), {"id": request_id, "error": error})

    def _resolve(self, request_id: Any) -> None:
        if name := self._open_as(request_id):
            self.withdraw(name)

    def _open_as(self, request_id: Any) -> str | None:
        """What we call the request of that id that waits, if one does."""
        for name, (key, _) in tuple(self._asked.items()):
            if key[0] == request_id and type(key[0]) is type(request_id):
                return name
        return None


def _is_usable(request_id: Any) -> bool:
    return type(request_id) is int or (isinstance(request_id, str) and len(request_id) <= MAX_ID)


def _name_of(request_id: str | int) -> str:
    """A request by its id: the same in every run, as ids of 0.4 are, and no other's."""
    return f"codex-{request_id}" if isinstance(request_id, int) else f"codex-s-{portable_id(request_id)}"


def _has_login(env: Mapping[str, str]) -> bool:
    """Whether Codex keeps a login where it does by default."""
    home = env.get("CODEX_HOME") or os.path.join(env.get("HOME", ""), ".codex")
    return os.path.exists(os.path.join(home, "auth.json"))


def _output(item: Any) -> str:
    """What a command printed, or the tool of an MCP server said."""
    error, result = text_of(member(item, "error", "message")), objects(member(item, "result", "content"))
    return text_of(member(item, "aggregatedOutput")) or error or "\n".join(text_of(part.get("text")) for part in result)


def _counts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    return {ours: value[name] for name, ours in _COUNTS.items() if type(value.get(name)) is int}
