"""Agents of other people that speak the Agent Client Protocol, and a model on loopback for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.npm import QWEN, goose, node_environment, opencode, script
from tests.support.provider import HANG, Reply, Request, StubProvider
from tests.support.provider_streams import openai_sse, openai_text, openai_tool_calls
from trunkline.agents.external.acp import AcpAgent

#: The command that the model wants to be run when a message says so.
COMMAND = "touch made.txt"
ANSWER = "All done now."
#: How the tool for commands is called in each.
_SHELLS = ("bash", "run_shell_command", "shell")


def model(request: Request) -> Reply:
    """A model that runs a command when it is told to `make-it`, hangs at `hang-now`, and else is done."""
    if request.method != "POST":
        models = {"object": "list", "data": [{"id": "stub", "object": "model"}]}
        return Reply([json.dumps(models).encode()], headers={"content-type": "application/json"})
    body = request.json
    last = body["messages"][-1]
    said = json.dumps(last["content"]) if last["role"] == "user" else ""
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    shell = next((name for name in _SHELLS if name in tools), None)
    if "make-it" in said and shell:
        call = (shell, {"command": COMMAND, "description": "Make a file"})
        return Reply([openai_sse(openai_tool_calls([call], ids=[f"call_{len(body['messages'])}"]))])
    # A message that was stopped and the next one may come as one.
    if "hang-now" in said and "go-on" not in said and shell:
        return Reply([openai_sse(openai_text("It begins "), done=False), HANG])
    return Reply([openai_sse(openai_text(ANSWER, reasoning="Hm."))])


def opencode_agent(stub: StubProvider, home: Path) -> AcpAgent:
    """OpenCode, which asks before it runs commands."""
    config = home / "opencode.json"
    fake = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "models": {"stub": {"name": "Stub"}},
            "options": {"baseURL": f"{stub.url}/v1", "apiKey": "none"}}  # fmt: skip
    settings: dict[str, Any] = {
        "provider": {"fake": fake}, "model": "fake/stub", "small_model": "fake/stub", "share": "disabled",
        "autoupdate": False, "permission": {"edit": "ask", "bash": "ask"},
    }  # fmt: skip
    config.write_text(json.dumps(settings))
    own = {"OPENCODE_CONFIG": str(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return AcpAgent([str(opencode()), "acp"], name="opencode", env=_environment(home, **own))


def qwen_agent(stub: StubProvider, home: Path) -> AcpAgent:
    """Qwen Code."""
    own = {"OPENAI_BASE_URL": f"{stub.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "stub"}
    argv = [*script(QWEN, "qwen"), "--acp", "--auth-type", "openai"]
    return AcpAgent(argv, name="qwen-code", env=_environment(home, **own))


def goose_agent(stub: StubProvider, home: Path) -> AcpAgent:
    """goose, whose own mode decides about tools unless it is told otherwise."""
    own = {"OPENAI_HOST": stub.url, "OPENAI_API_KEY": "none", "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "stub"}
    return AcpAgent([str(goose()), "acp"], name="goose", env=_environment(home, **own, GOOSE_MODE="auto"))


def _environment(home: Path, **own: str) -> dict[str, str]:
    places = {name: str(home / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    return node_environment(HOME=str(home), **places, **own)


AGENTS: dict[str, Callable[[StubProvider, Path], AcpAgent]] = {
    "goose": goose_agent,
    "opencode": opencode_agent,
    "qwen-code": qwen_agent,
}
