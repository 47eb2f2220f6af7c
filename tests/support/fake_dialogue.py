"""Claude Code and Codex as their profiles start them: programs that are talked to, and ask before they act.

They play what `fake_cli` does, and besides, by the message:

    ask         ask to run a command; answer with what was decided
    ask edit    ask to change a file
    ask twice   ask for two commands, one after the other
    ask die     ask, and end with code 3 before anybody answers
    ask leave   ask, take it back, and go on without it
    ask odd     ask for something that no yes or no answers
    ask mcp     ask to use the tool of an MCP server (Codex)

The lines have the forms that were recorded from Claude Code 2.1.197 and codex-cli 0.166.0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.support import fake_cli_plays as plays
from tests.support.fake_cli_plays import DEAD, NEW, REFUSED, THOUGHT, Failure, Told, halves

CLAUDE_ARGS = [
    "-p", "--output-format=stream-json", "--input-format=stream-json", "--verbose", "--include-partial-messages",
    "--permission-prompt-tool=stdio",
]  # fmt: skip
CODEX_ARGS = ["app-server", "-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"']
#: With a key in the environment.
CODEX_KEY_ARGS = ["-c", 'cli_auth_credentials_store="ephemeral"']

COMMAND = "touch made.txt"
SECOND_COMMAND = "rm made.txt"
EXIT_USAGE = 64
EXIT_CRASHED = 3
SLOW_SECONDS = 60
NOISE = "[debug] listening on 127.0.0.1"

Line = dict[str, Any]


def say(line: Line) -> None:
    print(json.dumps(line), flush=True)


def hear() -> Line:
    """The next line; the end of the input while it is waited for ends the program, as it ends the real ones."""
    line = sys.stdin.readline()
    if not line:
        raise Failure(0)
    heard: Line = json.loads(line)
    return heard


def play(name: str, arguments: list[str]) -> int:
    """Play one run; gives the exit code."""
    try:
        (_claude if name == "claude-code" else _codex)(arguments)
    except Failure as failure:
        print(failure.stderr, file=sys.stderr)
        return failure.code
    return 0


def _usage(arguments: list[str]) -> Failure:
    return Failure(EXIT_USAGE, f"unexpected arguments: {arguments}")


def _begin(message: str) -> None:
    if message == "crash":
        raise Failure(EXIT_CRASHED, "something broke")
    if message == "noise":
        print(NOISE, flush=True)
        say({"type": "new.kind.of.event", "nested": [1, {"a": None}]})


# Claude Code


def _claude(arguments: list[str]) -> None:
    session = ""
    if arguments and arguments[0].startswith("--resume="):
        session = arguments.pop(0).removeprefix("--resume=")
    if arguments != CLAUDE_ARGS:
        raise _usage(arguments)
    first = hear()
    assert (first["type"], first["message"]["role"]) == ("user", "user")
    message = first["message"]["content"]
    if session == DEAD:
        unknown = f"No conversation found with session ID: {DEAD}"
        say({"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": DEAD,
             "errors": [unknown]})  # fmt: skip
        raise Failure(1, unknown)
    _begin(message)
    told = Told(message, session or NEW["claude-code"], not session)
    if message.startswith("ask"):
        outcome = _claude_asks(message.removeprefix("ask").strip(), told.session)
        told = Told(outcome, told.session, told.new)
    for line in plays.claude(told):
        assert isinstance(line, dict)
        say(line)
    if message == "slow":
        time.sleep(SLOW_SECONDS)
    # It would take another message.
    assert not sys.stdin.readline(), "it was told more after its result"


def claude_request(number: int, tool: str, given: Line, **more: Any) -> Line:
    request = {"subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "input": given, **more}
    return {"type": "control_request", "request_id": f"bd29a976-{number}", "request": request}


def _claude_asks(how: str, session: str) -> str:
    say({"type": "system", "subtype": "init", "session_id": session, "tools": ["Bash"], "permissionMode": "default"})
    bash = {"command": COMMAND, "description": "Make a file"}
    match how:
        case "edit":
            given = {"file_path": "a.txt", "old_string": "two", "new_string": "/three" * 2000, "replace_all": False}
            return _claude_decided(claude_request(1, "Edit", given, description="a.txt", tool_use_id="toolu_1"))
        case "twice":
            one = _claude_decided(claude_request(1, "Bash", bash, tool_use_id="toolu_1"))
            again = claude_request(2, "Bash", {"command": SECOND_COMMAND}, tool_use_id="toolu_2")
            return f"{one}, {_claude_decided(again)}"
        case "die":
            say(claude_request(1, "Bash", bash))
            raise Failure(EXIT_CRASHED, "something broke")
        case "leave":
            say(claude_request(1, "Bash", bash))
            say({"type": "control_cancel_request", "request_id": "bd29a976-1"})
            return "left"
        case "odd":
            say({"type": "control_request", "request_id": "odd-1", "request": {"subtype": "hook_callback"}})
            answer = hear()["response"]
            return f"{answer['subtype']} {answer['request_id']}"
        case "question":
            return _claude_decided(claude_request(1, "AskUserQuestion", {"questions": []}))
        case _:
            return _claude_decided(claude_request(1, "Bash", bash, description="Make a file", tool_use_id="toolu_1"))


def _claude_decided(request: Line) -> str:
    say(request)
    answer = hear()
    assert (answer["type"], answer["response"]["subtype"]) == ("control_response", "success")
    assert answer["response"]["request_id"] == request["request_id"]
    decision = answer["response"]["response"]
    use = request["request"].get("tool_use_id", "")
    if decision["behavior"] == "allow":
        assert decision["updatedInput"] == request["request"]["input"], decision
        _claude_result(use, "(no output)")
        return "allowed"
    _claude_result(use, decision["message"], is_error=True)
    return f"denied ({decision['message']})"


def _claude_result(use: str, output: str, **more: Any) -> None:
    result = {"type": "tool_result", "tool_use_id": use, "content": output, **more}
    say({"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": None})


# Codex


def _codex(arguments: list[str]) -> None:
    with_key = arguments[len(CODEX_ARGS) :] == CODEX_KEY_ARGS
    if arguments[: len(CODEX_ARGS)] != CODEX_ARGS or (len(arguments) > len(CODEX_ARGS) and not with_key):
        raise _usage(arguments)
    assert _heard("initialize")["clientInfo"]["name"] == "trunkline"
    say({"method": "remoteControl/status/changed", "params": {"status": "disabled"}, "emittedAtMs": 1})
    assert hear() == {"method": "initialized"}
    if with_key:
        assert _heard("account/login/start")["type"] == "apiKey"
    opening = hear()
    session = opening["params"].get("threadId", "")
    assert opening["method"] == ("thread/resume" if session else "thread/start"), opening
    if session == DEAD:
        say({"error": {"code": -32600, "message": f"no rollout found for thread id {DEAD}"}, "id": opening["id"]})
        assert not sys.stdin.readline()
        raise Failure(1)
    thread = session or NEW["codex"]
    say({"id": opening["id"], "result": {"thread": {"id": thread, "cwd": "/home/u/project"}, "model": "m"}})
    turn = hear()
    assert (turn["method"], turn["params"]["threadId"]) == ("turn/start", thread)
    message = turn["params"]["input"][0]["text"]
    _begin(message)
    say({"id": turn["id"], "result": {"turn": {"id": "turn-1", "status": "inProgress"}}})
    outcome = _codex_asks(message.removeprefix("ask").strip(), thread) if message.startswith("ask") else message
    for line in codex_turn(Told(outcome, thread, not session)):
        say(line)
    if message == "slow":
        time.sleep(SLOW_SECONDS)
    assert not sys.stdin.readline(), "it was told more after its turn"


def _heard(method: str) -> Line:
    request = hear()
    assert request["method"] == method, request
    say({"id": request["id"], "result": {"type": "apiKey"}})
    params: Line = request["params"]
    return params


def codex_turn(told: Told) -> Iterator[Line]:
    """What it tells of a turn, from its start to its end."""

    def note(method: str, **params: Any) -> Line:
        return {"method": method, "params": {"threadId": told.session, "turnId": "turn-1", **params}}

    def usage(turn: str, total: int, last: int) -> Line:
        counts = {"inputTokens": 10, "outputTokens": 5}
        both = {name: {key: count * value for key, value in counts.items()}
                for name, count in (("total", total), ("last", last))}  # fmt: skip
        return note("thread/tokenUsage/updated", tokenUsage=both) | {"params": {
            "threadId": told.session, "turnId": turn, "tokenUsage": both}}  # fmt: skip

    if not told.new:
        yield usage("turn-0", 4, 4)
    spent = 0 if told.new else 4
    if told.fails:
        error = {"message": json.dumps({"type": "error", "error": {"message": REFUSED}})}
        yield note("error", error=error, willRetry=False)
        yield note("turn/completed", turn={"id": "turn-1", "status": "failed", "error": error})
        return
    yield note("error", error={"message": "Reconnecting... 1/5"}, willRetry=True)
    for number, passage in enumerate(told.passages):
        yield note("item/reasoning/summaryTextDelta", itemId="rs_1", delta=THOUGHT)
        yield note("item/completed", item={"type": "reasoning", "id": "rs_1", "summary": [THOUGHT], "content": []})
        yield note("item/started", item={"type": "agentMessage", "id": f"msg_{number}", "text": ""})
        for half in halves(passage):
            yield note("item/agentMessage/delta", itemId=f"msg_{number}", delta=half)
        yield note("item/completed", item={"type": "agentMessage", "id": f"msg_{number}", "text": passage})
        yield usage("turn-1", spent + number + 1, 1)
        sub = {"threadId": "sub-agent", "item": {"type": "agentMessage", "id": "x", "text": "said by a sub-agent"}}
        yield {"method": "item/completed", "params": sub}
        yield {"method": "turn/completed", "params": {"threadId": "sub-agent", "turn": {"status": "completed"}}}
    yield note("turn/completed", turn={"id": "turn-1", "status": "completed", "error": None})


def codex_command(number: int, thread: str, command: str, **more: Any) -> Line:
    params = {"kind": "command", "threadId": thread, "turnId": "turn-1", "itemId": f"call_{number}",
              "startedAtMs": 1, "environmentId": "local", "command": f"/bin/bash -lc '{command}'",
              "cwd": os.getcwd(), "commandActions": [{"type": "unknown", "command": command}],
              "availableDecisions": ["accept", "cancel"], **more}  # fmt: skip
    return {"method": "item/commandExecution/requestApproval", "id": number, "params": params}


def codex_mcp(thread: str) -> list[Line]:
    """The item, and the question about it."""
    item = {"type": "mcpToolCall", "id": "call_0", "server": "notes", "tool": "write_note", "status": "inProgress",
            "arguments": {"text": "hello"}}  # fmt: skip
    meta = {"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"], "tool_params": {"text": "hello"}}
    params = {"threadId": thread, "turnId": "turn-1", "serverName": "notes", "mode": "form", "_meta": meta,
              "message": 'Allow the notes MCP server to run tool "write_note"?',
              "requestedSchema": {"type": "object", "properties": {}}}  # fmt: skip
    return [
        {"method": "item/started", "params": {"item": item, "threadId": thread, "turnId": "turn-1"}},
        {"method": "mcpServer/elicitation/request", "id": 0, "params": params},
    ]


def codex_patch(thread: str) -> list[Line]:
    """The item, and the question about it."""
    changes = [{"path": "new.txt", "kind": {"type": "add"}, "diff": "/hello\nthere\n"}]
    item = {"type": "fileChange", "id": "call_0", "changes": changes, "status": "inProgress"}
    about = {"threadId": thread, "turnId": "turn-1", "itemId": "call_0", "reason": None, "grantRoot": None}
    return [
        {"method": "item/started", "params": {"item": item, "threadId": thread, "turnId": "turn-1"}},
        {"method": "item/fileChange/requestApproval", "id": 0, "params": about},
    ]


def _codex_asks(how: str, thread: str) -> str:
    match how:
        case "edit":
            return _codex_decided(*codex_patch(thread))
        case "mcp":
            return _codex_decided(*codex_mcp(thread))
        case "twice":
            one = _codex_decided(codex_command(0, thread, COMMAND))
            return f"{one}, {_codex_decided(codex_command(1, thread, SECOND_COMMAND))}"
        case "die":
            say(codex_command(0, thread, COMMAND))
            raise Failure(EXIT_CRASHED, "something broke")
        case "leave":
            say(codex_command(0, thread, COMMAND))
            say({"method": "serverRequest/resolved", "params": {"threadId": thread, "requestId": 0}})
            return "left"
        case "odd":
            say({"method": "item/tool/requestUserInput", "id": 0, "params": {"questions": []}})
            answer = hear()
            return f"error {answer['error']['code']}"
        case _:
            return _codex_decided(codex_command(0, thread, COMMAND, reason="It is needed."))


def _codex_decided(*lines: Line) -> str:
    for line in lines:
        say(line)
    request, answer = lines[-1], hear()
    assert answer["id"] == request["id"], answer
    say({"method": "serverRequest/resolved", "params": {"requestId": request["id"]}})
    result = answer["result"]
    allowed = "accept" in (result.get("decision"), result.get("action"))
    item = {"type": "commandExecution", "id": "call_0", "status": "completed" if allowed else "declined",
            "aggregatedOutput": "(no output)" if allowed else None}  # fmt: skip
    item["id"] = request["params"].get("itemId", item["id"])
    say({"method": "item/completed", "params": {"item": item, "threadId": request["params"]["threadId"]}})
    return "allowed" if allowed else "denied"
