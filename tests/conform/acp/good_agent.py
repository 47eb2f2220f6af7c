"""An ACP agent that does everything right, with nothing but the standard library.

Bad habits are subclasses of it; see `broken_agents.py`. It has one thread for its input, and one for each turn.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Longer than any check waits.
LONG_SECONDS = 20.0
FILES = {"conform-write.txt": "hello", "conform-again.txt": "hello"}
BLOCKS = {
    "text": ("text",), "image": ("data", "mimeType"), "audio": ("data", "mimeType"), "resource_link": ("name", "uri"),
    "resource": ("resource",),
}  # fmt: skip


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Cancelled(Exception):
    """The turn was."""


class Session:
    def __init__(self, id: str, cwd: str, home: str) -> None:
        self.id = id
        self.cwd = cwd
        self.home = home
        self.history: list[tuple[str, str]] = []
        self.cancelled = threading.Event()
        self.is_busy = False
        self.always = False
        self.mode = "ask"

    @property
    def path(self) -> str:
        return os.path.join(self.home, self.id.encode().hex())

    def save(self) -> None:
        os.makedirs(self.home, exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump([self.cwd, self.history], file)

    @property
    def prompts(self) -> int:
        return sum(who == "user" for who, _ in self.history)


class GoodAgent:
    def __init__(self) -> None:
        self.home = os.environ.get("TRUNKLINE_HOME", "home")
        self.sessions: dict[str, Session] = {}
        self.lock = threading.RLock()
        self.replies: dict[int, Any] = {}
        self.replied = threading.Condition()
        self.number = 0
        self.calls = 0
        self.code = 0

    def main(self) -> None:
        signal.signal(signal.SIGTERM, self.on_term)
        self.begin()
        rest = b""
        while chunk := os.read(0, 1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.take(line)
        self.on_end()

    def begin(self) -> None:
        """For habits."""

    def on_end(self) -> None:
        with self.lock:
            os._exit(self.code)

    def on_term(self, *_: object) -> None:
        os._exit(143)

    # Lines in.

    def take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = self.parse(line)
        except (ValueError, RecursionError):
            self.on_broken(line)
            return
        if not isinstance(message, dict):
            self.on_invalid(message)
        elif "method" not in message and "id" in message and ("result" in message or "error" in message):
            self.on_reply(message)
        elif not isinstance(message.get("method"), str) or not isinstance(message.get("id", 0), int | str):
            self.on_invalid(message)
        elif "id" in message:
            self.on_request(message)
        else:
            self.on_notification(message["method"], message.get("params"))

    def parse(self, line: bytes) -> Any:
        return json.loads(line.decode("utf-8"), parse_constant=None)

    def on_broken(self, line: bytes) -> None:
        self.error(None, -32700, "Not JSON")

    def on_invalid(self, message: Any) -> None:
        self.error(None, -32600, "Not a request")

    def on_reply(self, message: dict[str, Any]) -> None:
        with self.replied:
            self.replies[message["id"]] = message
            self.replied.notify_all()

    def on_notification(self, method: str, params: Any) -> None:
        session = self.sessions.get(str(params.get("sessionId"))) if isinstance(params, dict) else None
        if method == "session/cancel" and session is not None:
            self.on_cancel(session)

    def on_cancel(self, session: Session) -> None:
        if session.is_busy:
            session.cancelled.set()
            with self.replied:
                self.replied.notify_all()

    def on_request(self, message: dict[str, Any]) -> None:
        method, id = message["method"], message["id"]
        if method == "session/prompt":
            self.on_prompt(id, message.get("params"))
            return
        try:
            self.respond(id, self.handle(method, message.get("params")))
        except Refusal as refusal:
            self.error(id, refusal.code, refusal.message)

    def handle(self, method: str, params: Any) -> Any:
        name = "do_" + method.replace("/", "_")
        if method.startswith("_") or not hasattr(self, name):
            return self.on_unknown(method)
        return getattr(self, name)(params if isinstance(params, dict) else {})

    def on_unknown(self, method: str) -> Any:
        raise Refusal(-32601, "No such method")

    # Requests.

    def capabilities(self) -> dict[str, Any]:
        return {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "fork": {}, "delete": {}},
        }

    def info(self) -> Any:
        return {"agentInfo": {"name": "good", "version": "1.0"}}

    def methods(self) -> Any:
        return [{"id": "key", "name": "A key"}]

    def do_initialize(self, params: dict[str, Any]) -> Any:
        return {
            "protocolVersion": self.version(params.get("protocolVersion")),
            "agentCapabilities": self.capabilities(),
            "authMethods": self.methods(),
            **self.info(),
        }

    def version(self, wanted: Any) -> Any:
        return 1

    def do_authenticate(self, params: dict[str, Any]) -> Any:
        if params.get("methodId") != "key":
            raise Refusal(-32602, "No such method of authentication")
        return {}

    def do_session_new(self, params: dict[str, Any]) -> Any:
        session = self.make(self.cwd(params))
        return {"sessionId": session.id, "modes": self.modes(session)}

    def modes(self, session: Session) -> Any:
        modes = [{"id": "ask", "name": "Ask"}, {"id": "free", "name": "Do not ask"}]
        return {"currentModeId": session.mode, "availableModes": modes}

    def cwd(self, params: dict[str, Any]) -> str:
        cwd = params.get("cwd")
        if not isinstance(cwd, str):
            raise Refusal(-32602, "`cwd` is missing")
        if not os.path.isabs(cwd):
            self.on_relative()
        return cwd

    def on_relative(self) -> None:
        raise Refusal(-32602, "`cwd` is not absolute")

    def make(self, cwd: str) -> Session:
        session = Session(self.new_id(), cwd, self.home)
        self.sessions[session.id] = session
        return session

    def new_id(self) -> str:
        return f"s{time.time_ns()}-{len(self.sessions)}"

    def stored(self, params: dict[str, Any]) -> Session:
        id = params.get("sessionId")
        if not isinstance(id, str):
            raise Refusal(-32602, "`sessionId` is missing")
        if id in self.sessions:
            return self.sessions[id]
        session = Session(id, self.cwd(params) if "cwd" in params else "/", self.home)
        try:
            with open(session.path, encoding="utf-8") as file:
                _, history = json.load(file)
                session.history = [tuple(each) for each in history]
        except OSError:
            raise Refusal(-32002, "No such session") from None
        self.sessions[id] = session
        return session

    def do_session_load(self, params: dict[str, Any]) -> Any:
        session = self.stored(params)
        self.replay(session)
        return {}

    def replay(self, session: Session) -> None:
        for who, text in session.history:
            self.chunk(session, f"{'user' if who == 'user' else 'agent'}_message_chunk", text)

    def do_session_resume(self, params: dict[str, Any]) -> Any:
        self.stored(params)
        return {}

    def do_session_list(self, params: dict[str, Any]) -> Any:
        if "cursor" in params:
            self.on_cursor()
        found = []
        for name in sorted(os.listdir(self.home)) if os.path.isdir(self.home) else ():
            with open(os.path.join(self.home, name), encoding="utf-8") as file:
                cwd = json.load(file)[0]
            if self.is_listed(cwd, params.get("cwd")):
                found.append(self.listed(bytes.fromhex(name).decode(), cwd))
        return {"sessions": found}

    def on_cursor(self) -> None:
        raise Refusal(-32602, "No such cursor")

    def is_listed(self, cwd: str, wanted: Any) -> bool:
        return wanted is None or cwd == wanted

    def listed(self, id: str, cwd: str) -> dict[str, Any]:
        return {"sessionId": id, "cwd": cwd, "title": "A session"}

    def do_session_close(self, params: dict[str, Any]) -> Any:
        if params.get("sessionId") not in self.sessions:
            raise Refusal(-32002, "No such session")
        self.close_session(self.sessions[params["sessionId"]])
        return {}

    def close_session(self, session: Session) -> None:
        self.on_cancel(session)
        del self.sessions[session.id]

    def do_session_fork(self, params: dict[str, Any]) -> Any:
        old = self.stored(params)
        session = self.make(self.cwd(params))
        session.history = list(old.history)
        return {"sessionId": session.id}

    def do_session_delete(self, params: dict[str, Any]) -> Any:
        session = self.stored(params)
        os.unlink(session.path)
        return {}

    def do_session_set_mode(self, params: dict[str, Any]) -> Any:
        session = self.stored(params)
        if params.get("modeId") not in ("ask", "free"):
            raise Refusal(-32602, "No such mode")
        session.mode = params["modeId"]
        return {}

    # Turns.

    def on_prompt(self, id: Any, params: Any) -> None:
        try:
            session, text = self.prompted(params if isinstance(params, dict) else {})
        except Refusal as refusal:
            self.error(id, refusal.code, refusal.message)
            return
        session.cancelled.clear()
        session.is_busy = True
        threading.Thread(target=self.turn, args=(id, session, text), daemon=True).start()

    def prompted(self, params: dict[str, Any]) -> tuple[Session, str]:
        id, blocks = params.get("sessionId"), params.get("prompt")
        if not isinstance(id, str) or not isinstance(blocks, list):
            raise Refusal(-32602, "A parameter is missing")
        session = self.sessions.get(id) or self.on_unknown_session(id)
        for block in blocks:
            self.look_at(block)
        return session, "\n".join(block.get("text", "") for block in blocks)

    def look_at(self, block: Any) -> None:
        names = BLOCKS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if names is None or any(name not in block for name in names):
            raise Refusal(-32602, "No such content")

    def on_unknown_session(self, id: str) -> Session:
        raise Refusal(-32002, "No such session")

    def turn(self, id: Any, session: Session, text: str) -> None:
        session.history.append(("user", text))
        said = ""
        try:
            for piece in self.answer(session, text):
                if session.cancelled.is_set():
                    raise Cancelled
                said += piece
                self.say(session, piece)
            reason = "end_turn"
        except Cancelled:
            reason = "cancelled"
        session.history.append(("agent", said))
        session.save()
        session.is_busy = False
        self.end_turn(id, session, reason)

    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        self.respond(id, {"stopReason": reason})

    def answer(self, session: Session, text: str) -> Iterator[str]:
        if found := re.findall("(?s)<<(.*?)>>", text):
            yield from found
        elif "from 1 to 2000" in text:
            yield from self.long(session)
        elif "How many messages" in text:
            yield str(session.prompts)
        elif found := re.findall(r"conform-\w+\.txt", text):
            yield self.write_file(session, found[0])
        else:
            self.extras(session)
            yield from ("hel", "lo")

    def extras(self, session: Session) -> None:
        entry = {"content": "Say hello", "priority": "high", "status": "completed"}
        self.update(session, {"sessionUpdate": "plan", "entries": [entry]})
        command = {"name": "help", "description": "Help"}
        self.update(session, {"sessionUpdate": "available_commands_update", "availableCommands": [command]})
        self.update(session, {"sessionUpdate": "usage_update", "used": 10, "size": 1000})

    def long(self, session: Session) -> Iterator[str]:
        yield "1\n"
        self.wait(session)
        yield "2\n"

    def wait(self, session: Session) -> None:
        session.cancelled.wait(LONG_SECONDS)

    # Tools.

    def write_file(self, session: Session, name: str) -> str:
        self.calls += 1
        id, path = self.call_id(), os.path.join(session.cwd, name)
        self.announce(session, id, path)
        if not self.is_allowed(session, id):
            self.end_call(session, id, "failed")
            return "I may not."
        self.use_tool(session, path)
        self.end_call(session, id, "completed")
        return "Done."

    def call_id(self) -> str:
        return f"c{self.calls}"

    def announce(self, session: Session, id: str, path: str) -> None:
        diff = {"type": "diff", "path": path, "oldText": None, "newText": "hello"}
        where = {"path": path, "line": 1}
        told = {"toolCallId": id, "title": "Write a file", "kind": "edit", "status": "pending"}
        self.update(session, {"sessionUpdate": "tool_call", **told, "content": [diff], "locations": [where]})

    def end_call(self, session: Session, id: str, status: str) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": "It is so."}}]
        told = {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content}
        self.update(session, told)

    def use_tool(self, session: Session, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write("hello")

    def options(self) -> list[dict[str, Any]]:
        return [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]

    def is_allowed(self, session: Session, id: str) -> bool:
        if session.always or session.mode == "free":
            return True
        reply = self.ask(session, {"sessionId": session.id, "toolCall": {"toolCallId": id}, "options": self.options()})
        if session.cancelled.is_set():
            raise Cancelled
        return self.is_yes(session, reply)

    def is_yes(self, session: Session, reply: Any) -> bool:
        result = reply.get("result")
        chosen = result["outcome"].get("optionId") if isinstance(result, dict) else None
        session.always = self.remembers(chosen)
        return chosen in ("yes", "always")

    def remembers(self, chosen: Any) -> bool:
        return bool(chosen == "always")

    def ask(self, session: Session, params: dict[str, Any]) -> Any:
        with self.lock:
            self.number += 1
            number = self.number
        self.write({"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params})
        with self.replied:
            self.replied.wait_for(lambda: number in self.replies or session.cancelled.is_set(), LONG_SECONDS)
            return self.replies.get(number, {})

    # Lines out.

    def say(self, session: Session, text: str) -> None:
        self.chunk(session, "agent_message_chunk", text)

    def chunk(self, session: Session, kind: str, text: str) -> None:
        self.update(session, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def update(self, session: Session, update: dict[str, Any]) -> None:
        params = {"sessionId": session.id, "update": update}
        self.write({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def respond(self, id: Any, result: Any) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "result": result})

    def error(self, id: Any, code: int, message: str) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def write(self, message: dict[str, Any]) -> None:
        self.put(self.encode(message) + b"\n")

    def encode(self, message: dict[str, Any]) -> bytes:
        text = json.dumps(message, ensure_ascii=False)
        try:
            return text.encode()
        except UnicodeEncodeError:
            return json.dumps(message).encode()

    def put(self, data: bytes) -> None:
        with self.lock:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]


class DoesLittle(GoodAgent):
    """All that is optional is left out: no capabilities, no modes, no tools, and no long answers."""

    def capabilities(self) -> dict[str, Any]:
        return {}

    def methods(self) -> Any:
        return []

    def modes(self, session: Session) -> Any:
        return None

    def answer(self, session: Session, text: str) -> Iterator[str]:
        yield "hello"


def run(agent: GoodAgent) -> None:
    agent.main()
    sys.exit(0)
