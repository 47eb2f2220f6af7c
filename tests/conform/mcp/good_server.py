"""A small MCP server that follows the protocol, on standard streams and on the web, for others to break.

It imports nothing that takes long: each check starts it anew.
"""

from __future__ import annotations

import json
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Send = Callable[[dict[str, Any]], None]

VERSIONS = ("2025-11-25", "2025-06-18")
#: How long the slow tool takes. Longer than a check listens.
SLOW_SECONDS = 2.0

PARSE, REQUEST, METHOD, PARAMS, RESOURCE = -32700, -32600, -32601, -32602, -32002


class Refusal(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str = "no") -> None:
        super().__init__(message)
        self.code = code


class GoodServer:
    """Answers messages. Everything that it says goes through `send`."""

    offered: tuple[str, ...] = ("tools", "resources", "prompts", "completions")
    out: Any = None

    def __init__(self) -> None:
        self.capabilities: dict[str, Any] = {name: {} for name in self.offered}
        self.cancelled: dict[Any, threading.Event] = {}

    # Lines.

    def run(self) -> None:
        """Serve standard streams until they end."""
        self.out = sys.stdout.buffer
        self.lock = threading.Lock()
        for line in sys.stdin.buffer:
            if line.strip():
                self.line(line)
        self.ending()

    def ending(self) -> None:
        """Standard input has ended."""

    def write(self, message: Any) -> None:
        """Say something on standard output."""
        with self.lock:
            self.out.write(json.dumps(message).encode() + b"\n")
            self.out.flush()

    def line(self, line: bytes) -> None:
        """One line of the client."""
        try:
            message = self.parse(line)
        except (ValueError, RecursionError):
            self.broken(PARSE, None)
            return
        self.take(message, self.write)

    def parse(self, line: bytes) -> Any:
        return json.loads(line)

    def broken(self, code: int, id: Any) -> None:
        """Something was no message."""
        self.write(self.error(id, code, "this is no message"))

    def take(self, message: Any, send: Send) -> None:
        """One message."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.broken(REQUEST, None)
        elif "method" not in message:
            if "result" not in message and "error" not in message:
                self.broken(REQUEST, message.get("id"))
        elif not isinstance(message["method"], str) or not isinstance(message.get("id", 0), str | int):
            self.broken(REQUEST, None)
        elif "id" in message:
            self.request(message, send)
        else:
            self.notification(message, send)

    def notification(self, message: Any, send: Send) -> None:
        if message["method"] == "notifications/cancelled":
            self.cancel((message.get("params") or {}).get("requestId"))

    def cancel(self, id: Any) -> None:
        if id in self.cancelled:
            self.cancelled[id].set()

    # Requests.

    def request(self, message: Any, send: Send) -> None:
        if message["method"] == "tools/call" and (message.get("params") or {}).get("name") == "slow":
            self.slow(message, send)
        else:
            self.answer(message, send)

    def answer(self, message: Any, send: Send) -> None:
        try:
            params = message.get("params", {})
            if not isinstance(params, dict):
                raise Refusal(PARAMS)
            send(self.result(message["id"], self.handle(message["method"], params)))
        except Refusal as refusal:
            send(self.error(message["id"], refusal.code, str(refusal)))

    def result(self, id: Any, result: Any) -> Any:
        return {"jsonrpc": "2.0", "id": id, "result": result}

    def error(self, id: Any, code: int, message: str) -> Any:
        return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}

    def slow(self, message: Any, send: Send) -> None:
        """A tool that takes its time."""
        self.cancelled[message["id"]] = threading.Event()
        threading.Thread(target=self.work, args=(message, send), daemon=True).start()

    def work(self, message: Any, send: Send) -> None:
        token = ((message.get("params") or {}).get("_meta") or {}).get("progressToken")
        for done in self.steps():
            if token is not None:
                params = {"progressToken": self.token(token), "progress": done}
                send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        if not self.cancelled[message["id"]].wait(SLOW_SECONDS) or self.ignores_cancelling():
            send(self.result(message["id"], self.content("done")))

    def steps(self) -> Any:
        return (1, 2)

    def token(self, given: Any) -> Any:
        return given

    def ignores_cancelling(self) -> bool:
        return False

    def handle(self, method: str, params: dict[str, Any]) -> Any:
        name = "do_" + method.replace("/", "_").lower()
        known: Callable[[dict[str, Any]], Any] | None = getattr(self, name, None)
        capability = {"completion": "completions"}.get(method.partition("/")[0], method.partition("/")[0])
        if known is None or (capability not in ("initialize", "ping", *self.capabilities)):
            return self.unknown_method(method)
        return known(params)

    def unknown_method(self, method: str) -> Any:
        raise Refusal(METHOD)

    def do_initialize(self, params: dict[str, Any]) -> Any:
        return {
            "protocolVersion": self.version(params.get("protocolVersion")),
            "capabilities": self.capabilities,
            "serverInfo": self.info(),
        }

    def version(self, wanted: Any) -> Any:
        return wanted if wanted in VERSIONS else VERSIONS[0]

    def info(self) -> Any:
        return {"name": "good", "version": "1"}

    def do_ping(self, params: dict[str, Any]) -> Any:
        return {}

    # What it offers.

    def page(self, params: dict[str, Any]) -> None:
        if params.get("cursor") is not None:
            raise Refusal(PARAMS)

    def tools(self) -> Any:
        reads = {"annotations": {"readOnlyHint": True}}
        output = {"type": "object", "required": ["text"]}
        return [
            {"name": "quick", "inputSchema": {"type": "object"}, "outputSchema": output, **reads},
            {"name": "slow", "inputSchema": {"type": "object"}},
            {"name": "needy", "inputSchema": {"type": "object", "required": ["what"]}},
        ]

    def do_tools_list(self, params: dict[str, Any]) -> Any:
        self.page(params)
        return {"tools": self.tools()}

    def content(self, text: str) -> Any:
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}

    def do_tools_call(self, params: dict[str, Any]) -> Any:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise Refusal(PARAMS)
        if name == "needy" and "what" not in arguments:
            return self.lacks_arguments()
        if name not in ("quick", "needy"):
            return self.unknown_tool()
        return self.content("here")

    def lacks_arguments(self) -> Any:
        return {**self.content("`what` is missing"), "isError": True}

    def unknown_tool(self) -> Any:
        raise Refusal(PARAMS)

    def resources(self) -> Any:
        return [{"uri": "good://one", "name": "one"}]

    def do_resources_list(self, params: dict[str, Any]) -> Any:
        self.page(params)
        return {"resources": self.resources()}

    def do_resources_templates_list(self, params: dict[str, Any]) -> Any:
        return {"resourceTemplates": [{"uriTemplate": "good://{name}", "name": "any"}]}

    def do_resources_read(self, params: dict[str, Any]) -> Any:
        if not isinstance(params.get("uri"), str):
            raise Refusal(PARAMS)
        return self.read(params["uri"])

    def read(self, uri: str) -> Any:
        if uri != "good://one":
            return self.unknown_resource()
        return {"contents": [{"uri": uri, "text": "one"}]}

    def unknown_resource(self) -> Any:
        raise Refusal(RESOURCE)

    def prompts(self) -> Any:
        return [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]

    def do_prompts_list(self, params: dict[str, Any]) -> Any:
        self.page(params)
        return {"prompts": self.prompts()}

    def do_prompts_get(self, params: dict[str, Any]) -> Any:
        if not isinstance(params.get("name"), str):
            raise Refusal(PARAMS)
        if params["name"] != "greet":
            return self.unknown_prompt()
        if "who" not in (params.get("arguments") or {}):
            return self.lacks_who()
        return {"messages": [self.message()]}

    def message(self) -> Any:
        return {"role": "user", "content": {"type": "text", "text": "Say hello"}}

    def unknown_prompt(self) -> Any:
        raise Refusal(PARAMS)

    def lacks_who(self) -> Any:
        raise Refusal(PARAMS)

    def do_completion_complete(self, params: dict[str, Any]) -> Any:
        return {"completion": {"values": self.values()}}

    def values(self) -> Any:
        return ["ana"]
