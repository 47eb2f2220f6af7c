"""How to reach an agent of an exchange by every wire that it serves: lines to be copied, with its address and home.

Programs on the same machine need no token: they find the exchange by its file or its home. The others send a person's
token, which these lines name as the variable `TOKEN`: nobody's token is known here.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from trunkline.base import config_addresses, exchange_home
from trunkline.base.chat_platforms import PLATFORMS
from trunkline.base.exchange_home import API_SOCKET
from trunkline.base.programs import PROGRAM, own_argv, own_command
from trunkline.base.values import Value
from trunkline.exchange.settings import ExchangeSettings

#: The variable that decides where an exchange is if no file does.
HOME_VARIABLE = "TRUNKLINE_HOME"
#: The default port of a Tryll server.
_TRYLL = ("127.0.0.1", 9100)


class WayIn(Value):
    """One of them. `is_command`: whether `text` is for a shell; else it belongs into a file, or is to be read.
    `is_here`: whether it is for the machine of the exchange alone, whose folders it may name."""

    wire: str
    title: str
    text: str
    is_command: bool = True
    is_here: bool = False


def ways_in(
    settings: ExchangeSettings, address: str, environ: Mapping[str, str], agent: str, reached: Mapping[str, str]
) -> list[WayIn]:
    """All of them, those without a token first. `address`: where the exchange is reached over HTTP; `environ` is its
    own; `reached`: where its wires are, those that are served."""
    attach, program = _attaching(settings, environ), own_command(environ)
    return [
        *(() if attach is None else (way.replace(is_here=True) for way in _here(attach, program, agent))),
        _on_socket(settings.home, agent),
        *_over_http(address, agent),
        *_served(settings, agent, reached),
    ]


def _here(attach: str, program: str, agent: str) -> Iterator[WayIn]:
    """By programs on this machine. `attach`: what goes before them in a shell, where `program` is how to run ours."""
    name = shlex.quote(agent)
    yield WayIn("chat", "In this machine's terminal", f"{attach}{program} chat {name} --attach")
    yield WayIn(
        "jsonstream",
        "A host that starts its agents as programs (JSON stream)",
        f"{attach}{program} agent --json-stream --agent {name} --attach",
    )
    yield WayIn(
        "agentproc",
        "A chat bridge that starts a program for each message (AgentProc)",
        f"AGENT_MESSAGE='Hello'; export AGENT_MESSAGE; {attach}{program} agentproc serve {name} --attach",
    )
    editor = _program(f"acp {name} --attach", attach)
    yield WayIn("acp", "Zed: settings.json", _json({"agent_servers": {agent: {"type": "custom", **editor}}}), False)
    yield WayIn("acp", "JetBrains IDEs: ~/.jetbrains/acp.json", _json({"agent_servers": {agent: editor}}), False)
    server = _program("mcp serve --attach", attach)
    yield WayIn("mcp", "Claude Desktop, Cursor and other MCP hosts", _json({"mcpServers": {PROGRAM: server}}), False)


def _on_socket(home: str, agent: str) -> WayIn:
    """By clients of the HTTP API on this machine."""
    socket = shlex.quote(os.path.join(home, API_SOCKET))
    return WayIn(
        "http",
        "The HTTP API, on this machine: begin a session",
        f"curl -s --unix-socket {socket} http://localhost/api/sessions -d {_quoted({'agent': agent})}",
        is_here=True,
    )


def _over_http(address: str, agent: str) -> Iterator[WayIn]:
    """By clients of the HTTP API, and of the protocols beside it."""
    begun = _curl(f"{address}/api/sessions", {"agent": agent})
    yield WayIn("http", "The HTTP API, with a token: begin a session", begun)
    asked = {"model": agent, "messages": [{"role": "user", "content": "Hello"}]}
    yield WayIn("openai", "OpenAI clients: ask once", _curl(f"{address}/v1/chat/completions", asked))
    yield WayIn(
        "openai",
        "OpenAI clients: their settings; the model is the agent's name",
        # Exported: what a shell keeps to itself, no client that it starts would have.
        f"export OPENAI_BASE_URL={shlex.quote(address + '/v1')}\n"
        'export OPENAI_API_KEY="$TOKEN"\n'
        f"export OPENAI_MODEL={shlex.quote(agent)}",
    )
    headers = {"Authorization": "Bearer TOKEN"}
    remote = {"mcpServers": {PROGRAM: {"url": f"{address}/mcp", "headers": headers}}}
    yield WayIn("mcp", "MCP hosts over HTTP: put your token in", _json(remote), False)
    socketed = address.replace("http", "ws", 1)
    text = f"{socketed}/acp?agent={quote(agent)}\nAuthorization: Bearer TOKEN"
    yield WayIn("acp", "ACP clients over a WebSocket: the address and the header", text, False)


def _served(settings: ExchangeSettings, agent: str, reached: Mapping[str, str]) -> Iterator[WayIn]:
    """By wires of the file."""
    for name, wire in settings.wires.items():
        if wire.agents is not None and agent not in wire.agents:
            continue
        if name == "tryll":
            configured = config_addresses.listening(wire.keys.get("listen")) or _TRYLL
            server = reached.get(name) or config_addresses.joined(*configured)
            graph = f"the server: {server}\nthe model of a graph: agent:{agent}"
            yield WayIn("tryll", "Games and apps with a Tryll client", graph, False)
        elif name in PLATFORMS:
            yield WayIn(name, f"In a chat on {PLATFORMS[name].title}: write this to its bot", f"/agent {agent}", False)


def _attaching(settings: ExchangeSettings, environ: Mapping[str, str]) -> str | None:
    """What goes before a program in a shell so that it finds this exchange; None: it cannot."""
    plain = {name: value for name, value in environ.items() if name != HOME_VARIABLE}
    directory, file = os.path.split(os.path.abspath(settings.path)) if settings.path else ("", "")
    go = ""
    if file == exchange_home.FILE:
        # There, and not where somebody happens to be: another exchange may have its file in that place.
        go = f"cd {shlex.quote(directory)} && "
        if settings.file is None or exchange_home.home_in(settings.file, plain) == settings.home:
            return go
    elif settings.home == exchange_home.default_home(environ) and HOME_VARIABLE not in environ:
        return ""
    above, last = os.path.split(settings.home)
    return f"{go}export {HOME_VARIABLE}={shlex.quote(above)}; " if last == "exchange" else None


def _program(arguments: str, attach: str) -> Mapping[str, Any]:
    """A program as files name it: whole, since editors do not have the `PATH` of a shell."""
    program, *first = own_argv()
    if not attach:
        return {"command": program, "args": [*first, *shlex.split(arguments)]}
    return {"command": "/bin/sh", "args": ["-c", f"{attach}exec {shlex.join([program, *first])} {arguments}"]}


def _curl(url: str, body: Mapping[str, Any]) -> str:
    headers = "-H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json'"
    return f"curl -s {shlex.quote(url)} {headers} -d {_quoted(body)}"


def _quoted(body: Mapping[str, Any]) -> str:
    return shlex.quote(json.dumps(body, ensure_ascii=False))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
