"""An agent that speaks the Agent Client Protocol by lines, written without our code, and misbehaves as it is told.

    python tests/support/acp_agent.py HABIT...

Habits are about its start: `quits`, `mute`, `chatty` (prints a banner), `version:N`, `refuses`, `login`, `no-load`
(it cannot load sessions), `loads` (it can load and not resume), `forgets` (it knows no session of before), `decides`
(its mode decides by itself), `plain` (it takes words alone). What it does with a prompt is decided by its last text, by
the first word of it: see `PLAYS`. What is said in a session is kept in the working directory.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any

HABITS = set(sys.argv[1:])
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "all", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
]
MODES = ["default", "auto-edit", "yolo"]

modes = {"current": "yolo" if "decides" in HABITS else "default"}
servers: list[Any] = []
number = 0


def send(**members: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


def update(session: str, what: str, /, **members: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **members}})


def say(session: str, text: str) -> None:
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    found: dict[str, Any] = json.loads(line)
    return found


def ask(session: str, call: dict[str, Any], options: list[dict[str, str]] | None = None) -> str:
    """What the client answers: an option's id, or `cancelled`."""
    global number
    number += 1
    mine = f"q{number}"
    params = {"sessionId": session, "toolCall": call, "options": OPTIONS if options is None else options}
    send(id=mine, method="session/request_permission", params=params)
    while True:
        message = receive()
        if message.get("id") == mine and "method" not in message:
            if "error" in message:
                return f"error {message['error']['code']}"
            outcome = message["result"]["outcome"]
            return str(outcome.get("optionId", outcome["outcome"]))


# What it does with a prompt: gives the stop reason, or None if it does not answer.


def play_echo(session: str, rest: str) -> str:
    for word in rest.split(" "):
        say(session, word + " ")
    return "end_turn"


def play_ask(session: str, rest: str) -> str:
    """`ask KIND [JSON]`: a call of that kind with that input, about which the user is asked."""
    kind, _, given = rest.partition(" ")
    call = {"toolCallId": "c1", "title": "Do it", "kind": kind, "status": "pending"}
    call |= {"rawInput": json.loads(given)} if given else {}
    update(session, "tool_call", **call)
    update(session, "tool_call_update", toolCallId="c1", status="in_progress")
    outcome = ask(session, {"toolCallId": "c1"})
    if outcome in ("yes", "all"):
        with open("done.txt", "w") as file:
            file.write("done")
    status = "completed" if outcome in ("yes", "all") else "failed"
    content = [{"type": "content", "content": {"type": "text", "text": f"it is {status}"}}]
    update(session, "tool_call_update", toolCallId="c1", status=status, content=content)
    say(session, outcome)
    return "cancelled" if outcome == "cancelled" else "end_turn"


def play_unknown(session: str, rest: str) -> str:
    """A question about a call that was never told of."""
    call = {"toolCallId": "new", "title": "Write a.txt", "kind": "edit", "rawInput": {"file_path": "a.txt"}}
    say(session, ask(session, call))
    return "end_turn"


def play_diff(session: str, rest: str) -> str:
    diff = {"type": "diff", "path": os.path.abspath("a.txt"), "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    call = {"toolCallId": "d", "title": "Change a.txt", "kind": "edit", "content": [diff]}
    say(session, ask(session, call | ({"rawInput": json.loads(rest)} if rest else {})))
    update(session, "tool_call_update", toolCallId="d", status="completed")
    return "end_turn"


def play_twice(session: str, rest: str) -> str:
    """Two questions about one call."""
    call = {"toolCallId": "c1", "title": "Run", "kind": "execute", "rawInput": {"command": "ls"}}
    answers = [ask(session, call), ask(session, call | {"title": "Look outside"})]
    update(session, "tool_call_update", toolCallId="c1", status="completed")
    say(session, " ".join(answers))
    return "end_turn"


def play_once_only(session: str, rest: str) -> str:
    """`offers KIND...`: a question with these answers alone."""
    options = [option for option in OPTIONS if option["kind"] in rest.split()]
    say(session, ask(session, {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": "ls"}}, options))
    return "end_turn"


def play_withdraw(session: str, rest: str) -> str:
    """A question that is taken back."""
    call = {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": "ls"}}
    send(id="w", method="session/request_permission",
         params={"sessionId": session, "toolCall": call, "options": OPTIONS})  # fmt: skip
    send(method="$/cancel_request", params={"requestId": "w"})
    answer = receive()
    say(session, str(answer.get("error", {}).get("code", answer)))
    return "end_turn"


def play_tool(session: str, rest: str) -> str:
    """Tools that nobody is asked about."""
    meta = {"vendor": {"call": {"toolName": "view"}}}
    update(session, "tool_call", toolCallId="t1", title="Look at it", kind="read", status="in_progress",
           locations=[{"path": "/tmp/x"}], rawInput={"path": "/tmp/x"}, _meta=meta)  # fmt: skip
    update(session, "tool_call_update", toolCallId="t1", status="completed", rawOutput={"output": "seen"})
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"png").decode()}
    update(session, "tool_call", toolCallId="t2", title="mcp__web__shot", kind="other", status="completed",
           content=[{"type": "content", "content": image}])  # fmt: skip
    update(session, "tool_call", toolCallId="t3", title="Edit", kind="edit", status="failed",
           content=[{"type": "diff", "path": "a", "oldText": None, "newText": "x\n"}])  # fmt: skip
    return "end_turn"


def play_long_tool(session: str, rest: str) -> str | None:
    update(session, "tool_call", toolCallId="t1", title="Build", kind="execute", status="in_progress")
    return play_hang(session, rest)


def play_news(session: str, rest: str) -> str:
    entries = [{"content": "look", "priority": "high", "status": "completed"}, {"content": "do", "priority": "odd"}]
    update(session, "agent_thought_chunk", content={"type": "text", "text": "hm"})
    update(session, "plan", entries=entries)
    update(session, "available_commands_update",
           availableCommands=[{"name": "init", "description": "Begin", "input": {"hint": "where"}}])  # fmt: skip
    update(session, "current_mode_update", currentModeId="yolo")
    update(session, "usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
    update(session, "never_heard_of", x=1)
    send(method="_vendor/news", params={})
    update(session, "agent_message_chunk", content={"type": "resource_link", "uri": "file:///a", "name": "a"})
    update(session, "agent_message_chunk", content={"type": "audio", "data": "", "mimeType": "audio/wav"})
    return "end_turn"


def play_crash(session: str, rest: str) -> str:
    say(session, "half ")
    print(f"it broke: {os.environ.get('SOME_API_KEY', '')}", file=sys.stderr, flush=True)
    os._exit(3)


def play_garbage(session: str, rest: str) -> str:
    print('[debug] not JSON\n[1, 2]\n{"a": 1}\n\x00\xff')
    sys.stdout.write("x" * 100_000 + "\n")
    update(session, "agent_message_chunk", content="no block")
    update("of-somebody-else", "agent_message_chunk", content={"type": "text", "text": "wrong"})
    send(id=99, result={})
    send(id="odd", method="fs/read_text_file", params={"sessionId": session, "path": "/etc/passwd"})
    refused = receive()
    say(session, str(refused["error"]["code"]))
    return "end_turn"


def play_flood(session: str, rest: str) -> str:
    for _ in range(int(rest)):
        say(session, "word ")
    return "end_turn"


def play_hang(session: str, rest: str) -> str | None:
    """Answers nothing until it is stopped."""
    say(session, "begun ")
    while True:
        message = receive()
        if message.get("method") == "session/cancel":
            say(session, "late")
            return "cancelled"


def play_deaf(session: str, rest: str) -> str | None:
    """Answers nothing, ever."""
    say(session, "begun ")
    while True:
        receive()


def play_pid(session: str, rest: str) -> str:
    say(session, str(os.getpid()))
    return "end_turn"


def play_recall(session: str, rest: str) -> str:
    say(session, json.dumps({"session": session, "said": remembered(session)[:-1], "servers": servers, **modes}))
    return "end_turn"


def play_reason(session: str, rest: str) -> str:
    return rest


PLAYS: dict[str, Callable[[str, str], str | None]] = {
    "echo": play_echo,
    "ask": play_ask,
    "unknown": play_unknown,
    "diff": play_diff,
    "twice": play_twice,
    "offers": play_once_only,
    "withdraw": play_withdraw,
    "tool": play_tool,
    "long-tool": play_long_tool,
    "news": play_news,
    "crash": play_crash,
    "garbage": play_garbage,
    "flood": play_flood,
    "hang": play_hang,
    "deaf": play_deaf,
    "pid": play_pid,
    "recall": play_recall,
    "reason": play_reason,
}


# Sessions


def place(session: str) -> str:
    return f".acp-{session}.json"


def remembered(session: str) -> list[str]:
    try:
        with open(place(session)) as file:
            found: list[str] = json.load(file)
            return found
    except FileNotFoundError:
        return []


def remember(session: str, text: str) -> None:
    said = [*remembered(session), text]
    with open(place(session), "w") as file:
        json.dump(said, file)


def prompt(id: Any, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    blocks = params["prompt"]
    text = [block["text"] for block in blocks if block["type"] == "text"][-1]
    remember(session, json.dumps(blocks) if len(blocks) > 1 else text)
    word, _, rest = text.partition(" ")
    if word == "fail":
        send(id=id, error={"code": -32603, "message": "Internal error", "data": {"details": rest}})
        return
    if word == "odd-answer":
        send(id=id, result={"stopReason": 7})
        return
    reason = PLAYS.get(word, play_echo)(session, rest)
    usage = {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10, "cachedReadTokens": 5}
    if rest == "cached-beside":
        usage["totalTokens"] += usage["cachedReadTokens"]
    answers = 2 if word == "answers-twice" else 1
    for _ in range(answers):
        send(id=id, result={"stopReason": reason, "usage": usage})
    if rest == "then-die":
        sys.exit(0)


def opened() -> dict[str, Any]:
    available = [{"id": mode, "name": mode.title()} for mode in MODES]
    model = {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small",
             "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}  # fmt: skip
    return {"modes": {"currentModeId": modes["current"], "availableModes": available}, "configOptions": [model]}


def new_session(id: Any, params: dict[str, Any]) -> None:
    if "refuses" in HABITS:
        send(id=id, error={"code": -32603, "message": "Internal error", "data": {"details": "no model is configured"}})
    elif "login" in HABITS:
        send(id=id, error={"code": -32000, "message": "Authentication required"})
    else:
        servers[:] = params["mcpServers"]
        session = f"s{len([name for name in os.listdir('.') if name.startswith('.acp-')]) + 1}"
        with open(place(session), "w") as file:
            file.write("[]")
        update(session, "available_commands_update", availableCommands=[{"name": "early", "description": "First"}])
        send(id=id, result={"sessionId": session, **opened()})


def go_on(id: Any, params: dict[str, Any], *, replay: bool) -> None:
    session = params["sessionId"]
    if "forgets" in HABITS or not os.path.exists(place(session)):
        send(id=id, error={"code": -32002, "message": f"No session {session}"})
        return
    servers[:] = params["mcpServers"]
    for text in remembered(session) if replay else ():
        update(session, "user_message_chunk", content={"type": "text", "text": text})
        say(session, "a replayed answer")
    send(id=id, result=opened())


def initialize(id: Any, params: dict[str, Any]) -> None:
    if "mute" in HABITS:
        return
    version = next((int(habit.partition(":")[2]) for habit in HABITS if habit.startswith("version:")), 1)
    sessions: dict[str, Any] = {"close": {}, "list": {}, "fork": {}, "resume": {}}
    if "loads" in HABITS or "no-load" in HABITS:
        del sessions["resume"]
    rich = "plain" not in HABITS
    capabilities = {
        "loadSession": "no-load" not in HABITS,
        "promptCapabilities": {"image": rich, "embeddedContext": rich},
        "mcpCapabilities": {"http": True, "sse": False},
        "sessionCapabilities": sessions,
    }
    ways = [{"id": "key", "name": "Use a key", "description": "Set SOME_API_KEY"}]
    send(id=id, result={"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": ways,
                        "agentInfo": {"name": "scripted", "version": "1"}})  # fmt: skip


def fork(id: Any, params: dict[str, Any]) -> None:
    remember(f"{params['sessionId']}f", "forked")
    send(id=id, result={"sessionId": f"{params['sessionId']}f"})


def list_sessions(id: Any, params: dict[str, Any]) -> None:
    page = int(params.get("cursor") or 0)
    listed = [{"sessionId": f"l{page}", "cwd": os.getcwd(), "title": f"Session {page}"}]
    send(id=id, result={"sessions": listed, **({"nextCursor": str(page + 1)} if page < 2 else {})})


def set_mode(id: Any, params: dict[str, Any]) -> None:
    if params["modeId"] not in MODES:
        send(id=id, error={"code": -32602, "message": "There is no such mode"})
        return
    modes["current"] = params["modeId"]
    send(id=id, result=None)


def set_option(id: Any, params: dict[str, Any]) -> None:
    modes["model"] = params["value"]
    send(id=id, result={"configOptions": opened()["configOptions"]})


METHODS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "initialize": initialize,
    "session/new": new_session,
    "session/load": lambda id, params: go_on(id, params, replay=True),
    "session/resume": lambda id, params: go_on(id, params, replay=False),
    "session/fork": fork,
    "session/list": list_sessions,
    "session/close": lambda id, params: send(id=id, result={}),
    "session/set_mode": set_mode,
    "session/set_config_option": set_option,
    "session/prompt": prompt,
}


def answer(message: dict[str, Any]) -> None:
    id, method = message.get("id"), message.get("method", "")
    if method in METHODS:
        METHODS[method](id, message.get("params", {}))
    elif method and id is not None:
        send(id=id, error={"code": -32601, "message": f"no {method}"})


def main() -> None:
    if "quits" in HABITS:
        print("there is no model here", file=sys.stderr, flush=True)
        sys.exit(3)
    if "chatty" in HABITS:
        print("Welcome to the agent!", flush=True)
    if "blurts" in HABITS:
        print("Error: it is not configured", flush=True)
        sys.exit(1)
    while True:
        answer(receive())


if __name__ == "__main__":
    main()
