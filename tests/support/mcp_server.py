"""A small MCP server on standard input and output that can misbehave in many ways. Run as a script.

    python -S -E mcp_server.py [--noise] [--hang] [--die] [--die-after-ready] [--deaf] [--no-tools] [--restless]
        [--many=COUNT] [--starts FILE]

It needs nothing but the standard library, so it starts at once and does what no SDK would do. Each of its tools shows
one way to behave; see the methods that begin with `tool_`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

#: A PNG of one pixel.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


class Server:
    """Reads requests until its input ends."""

    def __init__(self, flags: list[str]) -> None:
        self.flags = flags
        self.extra_tools: list[str] = []
        self.cancelled: list[Any] = []

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            method = message.get("method")
            if "id" in message and method:
                self.answer(message["id"], method, message.get("params") or {})
            elif method == "notifications/cancelled":
                self.cancelled.append(message["params"]["requestId"])
        if "--deaf" in self.flags:
            signal.pause()

    def answer(self, request: Any, method: str, params: dict[str, Any]) -> None:
        if method == "initialize":
            self.initialize(request, params)
        elif method == "tools/list" and "--no-tools" in self.flags:
            say({"id": request, "error": {"code": -32601, "message": "Method not found"}})
        elif method == "tools/list":
            self.list_tools(request, params)
        elif method == "tools/call":
            self.call(request, params)
        else:
            say({"id": request, "error": {"code": -32601, "message": "Method not found"}})

    def initialize(self, request: Any, params: dict[str, Any]) -> None:
        if "--hang" in self.flags:
            signal.pause()
        info = {"name": "small", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        version = params["protocolVersion"]
        say({"id": request, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}})

    def list_tools(self, request: Any, params: dict[str, Any]) -> None:
        """In two pages."""
        names = [name.removeprefix("tool_") for name in dir(self) if name.startswith("tool_")]
        page = [*names[3:], *self.extra_tools] if params.get("cursor") else names[:3]
        tools = [{"name": name, "description": f"Shows {name}.", "inputSchema": {"type": "object"}} for name in page]
        if params.get("cursor"):
            tools += self.many()
        more = {} if params.get("cursor") else {"nextCursor": "rest"}
        say({"id": request, "result": {"tools": tools, **more}})
        if "--restless" in self.flags and params.get("cursor"):
            say({"method": "notifications/tools/list_changed"})
        if "--die-after-ready" in self.flags and params.get("cursor"):
            os._exit(5)

    def many(self) -> list[dict[str, Any]]:
        """Tools of which there are as many as was asked for; each says which it is."""
        count = next((int(flag.partition("=")[2]) for flag in self.flags if flag.startswith("--many=")), 0)
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        about = "Counts {} in the garden."
        return [
            {
                "name": f"many_{number}",
                "description": about.format("owls" if number == 7 else "ants"),
                "inputSchema": schema,
            }
            for number in range(count)
        ]

    def call(self, request: Any, params: dict[str, Any]) -> None:
        tool = getattr(self, "tool_echo" if params["name"].startswith("many_") else f"tool_{params['name']}", None)
        if tool is None:
            say({"id": request, "error": {"code": -32602, "message": f"no tool {params['name']}"}})
            return
        meta = params.get("_meta") or {}
        answer = tool(params.get("arguments") or {}, request, meta.get("progressToken"))
        if answer is not None:
            say({"id": request, "result": answer})

    def tool_echo(self, args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return result(json.dumps(args, sort_keys=True))

    def tool_fail(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return result("it did not work", isError=True)

    def tool_die(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        sys.stderr.write("something is badly wrong\n")
        sys.stderr.flush()
        os._exit(7)

    def tool_hang(self, args: dict[str, Any], request: Any, _token: Any) -> Any:
        """Never answers; writes down when it was told that nobody wants the answer any more."""
        open(args["started"], "w").close()

        def watch() -> None:
            while request not in self.cancelled:
                time.sleep(0.005)
            open(args["cancelled"], "w").close()

        threading.Thread(target=watch, daemon=True).start()

    def tool_noise(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        sys.stdout.write("debug: here I am\n\n{not json}\n[]\n" + "x" * 100_000 + "\n\xff\n")
        return result("through the noise")

    def tool_parts(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        content = [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": PICTURE},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c.txt", "name": "c"},
        ]
        return {"content": content}

    def tool_pictures(self, args: dict[str, Any], _request: Any, _token: Any) -> Any:
        """Pictures as they are given: each its type and base64; without any, a good one."""
        given = args.get("pictures", [["image/png", PICTURE]])
        content = [{"type": "image", "mimeType": kind, "data": data} for kind, data in given]
        return {"content": content, "isError": args.get("failed", False)}

    def tool_structured(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return {"content": [], "structuredContent": {"answer": 42}}

    def tool_empty(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return {"content": []}

    def tool_surrogate(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return result("half \ud83d of a pair")

    def tool_progress(self, args: dict[str, Any], _request: Any, token: Any) -> Any:
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "message": "half"}})
        while not os.path.exists(args["go"]):
            time.sleep(0.005)
        return result("done")

    def tool_grow(self, args: dict[str, Any], _request: Any, _token: Any) -> Any:
        self.extra_tools.append(args["name"])
        say({"method": "notifications/tools/list_changed"})
        return result("grown")

    def tool_nonsense(self, _args: dict[str, Any], request: Any, _token: Any) -> Any:
        say({"id": request, "result": {"content": "not a list"}})

    def tool_raw(self, args: dict[str, Any], request: Any, _token: Any) -> Any:
        """Answers with a line as it is given."""
        sys.stdout.write(args["line"].replace("REQUEST", json.dumps(request)) + "\n")
        sys.stdout.flush()

    def tool_environment(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return result(json.dumps(dict(os.environ)))

    def tool_pid(self, _args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return result(f"{os.getpid()} {os.getcwd()} {os.environ.get('GIVEN', '')}")

    def tool_huge(self, args: dict[str, Any], _request: Any, _token: Any) -> Any:
        return result("x" * args["size"])


def main(flags: list[str]) -> None:
    if "--starts" in flags:
        with open(flags[flags.index("--starts") + 1], "a") as starts:
            starts.write("start\n")
    if "--die" in flags:
        sys.exit("cannot start like this")
    if "--noise" in flags:
        print("welcome to the server")
        print("a warning", file=sys.stderr)
    Server(flags).serve()


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a real file
    sys.stdout.reconfigure(encoding="latin-1")  # type: ignore[union-attr]  # so that it can print what is not UTF-8
    main(sys.argv[1:])
