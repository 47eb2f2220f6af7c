"""What command-line agents print, as data: one generator for each, in the forms that were seen or are documented.

Seen in November 2026: Claude Code 2.1, codex-cli 0.166, Gemini CLI 0.61, opencode 1.18, Qwen Code 0.24, Kimi Code 2.1
and pi 0.70. Documented: Cursor, goose, aider.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

#: What each calls a new session.
NEW = {
    "claude-code": "1d154ddc-6eca-4205-8fb3-f94816ac3368",
    "codebuddy": "7d154ddc-6eca-4205-8fb3-f94816ac3361",
    "codex": "01a1debb-7a24-7e01-8bf2-39fe95469e6b",
    "cursor": "c6b62c6f-7ead-4fd6-9922-e952131177ff",
    "gemini-cli": "8c15eca8-a38a-4b12-a11f-4d55df8218d6",
    "goose": "20261115_7",
    "grok-build": "9c15eca8-a38a-4b12-a11f-4d55df8218d7",
    "kimi": "session_f4e6fb64-6bdc-4f35-b336-80a3475d0855",
    "opencode": "ses_e21446bd2ffedm5E4usftz35Sh",
    "pi": "01a1debe-6d1a-70ec-825b-8eeefb84da52",
    "qwen-code": "fb6aed78-f515-41b7-9e60-e1d0f86062b8",
}
DEAD = "dead-0000"
THOUGHT = "let me see"
LOOKING = "I will look."
REFUSED = "The service refuses this."

Output = dict[str, Any] | str


def answer_to(message: str) -> str:
    """What a fake answers in the ordinary case."""
    return f"You said: {message}"


class Failure(Exception):
    """The program ends with this code, and this on standard error."""

    def __init__(self, code: int, stderr: str = "") -> None:
        super().__init__(stderr)
        self.code = code
        self.stderr = stderr


class Told:
    """What a fake was started with."""

    def __init__(self, message: str, session: str, new: bool) -> None:
        self.message = message
        self.session = session
        self.new = new
        self.fails, self.uses_tool = message == "fail", message == "tool"

    @property
    def passages(self) -> list[str]:
        return [LOOKING, answer_to(self.message)] if self.uses_tool else [answer_to(self.message)]


def halves(text: str) -> tuple[str, str]:
    return text[:9], text[9:]


def claude(told: Told) -> Iterator[Output]:
    def line(type: str, **more: Any) -> Output:
        return {"type": type, "session_id": told.session, "parent_tool_use_id": None, **more}

    def message(*content: Any, model: str = "m", **more: Any) -> Output:
        return line("assistant", message={"role": "assistant", "model": model, "content": content}, **more)

    def delta(**delta: str) -> Output:
        return line("stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta})

    yield line("system", subtype="init", tools=["Bash"], model="m")
    usage = {"input_tokens": 10, "output_tokens": 7}
    if told.fails:
        yield message({"type": "text", "text": f"API Error: 400 {REFUSED}"}, model="<synthetic>")
        error = f"API Error: 400 {REFUSED}"
        yield line("result", subtype="success", is_error=True, result=error, usage={}, total_cost_usd=0)
        raise Failure(1)
    for number, passage in enumerate(told.passages):
        yield line("stream_event", event={"type": "message_start", "message": {"role": "assistant", "content": []}})
        yield delta(type="thinking_delta", thinking=THOUGHT)
        yield message({"type": "thinking", "thinking": THOUGHT, "signature": "abc"})
        yield line("stream_event", event={"type": "content_block_start", "content_block": {"type": "text", "text": ""}})
        for half in halves(passage):
            yield delta(type="text_delta", text=half)
        yield message({"type": "text", "text": passage})
        if number < len(told.passages) - 1:
            yield message({"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {}})
            yield message({"type": "text", "text": "said by a sub-agent"}, parent_tool_use_id="toolu_1")
            yield line("user", message={"role": "user", "content": [{"type": "tool_result", "content": "denied"}]})
    done = {"subtype": "success", "is_error": False, "result": told.passages[-1], "total_cost_usd": 0.5}
    yield line("result", usage=usage, **done)


def qwen(told: Told) -> Iterator[Output]:
    if not told.fails:
        yield from claude(told)
        return
    error = f"[API Error: 400 {REFUSED}]"
    delta = {"type": "text_delta", "text": error}
    common = {"session_id": told.session, "parent_tool_use_id": None}
    yield {"type": "system", "subtype": "init", **common}
    yield {"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}, **common}
    yield {"type": "assistant", "message": {"content": [{"type": "text", "text": error}]}, **common}
    yield {"type": "result", "is_error": True, "error": {"message": error}, **common}
    raise Failure(1)


def codex(told: Told) -> Iterator[Output]:
    def item(type: str, **more: Any) -> Output:
        return {"type": "item.completed", "item": {"id": "item_0", "type": type, **more}}

    yield {"type": "thread.started", "thread_id": told.session}
    yield item("error", message="Model metadata not found.")
    yield {"type": "turn.started"}
    if told.fails:
        error = json.dumps({"type": "error", "error": {"message": REFUSED}})
        yield {"type": "error", "message": error}
        yield {"type": "turn.failed", "error": {"message": error}}
        raise Failure(1)
    yield {"type": "error", "message": "Reconnecting... 1/5"}
    for passage in told.passages:
        yield item("reasoning", text=THOUGHT)
        yield item("agent_message", text=passage)
        if told.uses_tool:
            yield item("command_execution", command="ls", aggregated_output="x", exit_code=0, status="completed")
    yield {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}}


def gemini(told: Told) -> Iterator[Output]:
    yield {"type": "init", "session_id": told.session, "model": "m"}
    yield {"type": "message", "role": "user", "content": told.message}
    if told.fails:
        error = f'[API Error: {{"error":{{"message":"{REFUSED}","code":400}}}}]'
        yield {"type": "result", "status": "error", "error": {"type": "unknown", "message": error}, "stats": {}}
        raise Failure(144)
    for passage in told.passages:
        for half in halves(passage):
            yield {"type": "message", "role": "assistant", "content": half, "delta": True}
        if told.uses_tool and passage == LOOKING:
            yield {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": {}}
            yield {"type": "tool_result", "tool_id": "1", "status": "error", "output": "denied"}
            yield {"type": "error", "severity": "warning", "message": "Loop detected"}
    yield {"type": "result", "status": "success", "stats": {"input_tokens": 10, "output_tokens": 5}}


def opencode(told: Told) -> Iterator[Output]:
    def line(kind: str, **part: Any) -> Output:
        return {"type": kind, "timestamp": 1, "sessionID": told.session, "part": part}

    if told.fails:
        error = {"name": "APIError", "data": {"message": REFUSED, "statusCode": 400}}
        yield {"type": "error", "timestamp": 1, "sessionID": told.session, "error": error}
        raise Failure(1)
    for passage in told.passages:
        yield line("step_start", type="step-start")
        yield line("reasoning", type="reasoning", text=THOUGHT)
        yield line("text", type="text", text=passage)
        if passage == LOOKING:
            yield line("tool_use", type="tool", tool="bash", state={"status": "error", "error": "rejected"})
        yield line("step_finish", type="step-finish", reason="stop", tokens={"input": 10, "output": 5}, cost=0.25)


def cursor(told: Told) -> Iterator[Output]:
    def said(text: str, **more: Any) -> Output:
        return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}, **more}

    yield {"type": "system", "subtype": "init", "session_id": told.session, "model": "m"}
    yield {"type": "user", "message": {"content": [{"type": "text", "text": told.message}]}}
    if told.fails:
        raise Failure(1, REFUSED)
    yield {"type": "thinking", "subtype": "delta", "text": THOUGHT, "session_id": told.session}
    for passage in told.passages:
        for half in halves(passage):
            yield said(half, timestamp_ms=1)
        if passage == LOOKING:
            yield said(passage, timestamp_ms=2, model_call_id="call")
            yield {"type": "tool_call", "subtype": "started", "call_id": "1", "tool_call": {}}
            yield {"type": "tool_call", "subtype": "completed", "call_id": "1", "tool_call": {}}
    yield said("".join(told.passages))
    result = {"is_error": False, "result": "".join(told.passages), "session_id": told.session}
    yield {"type": "result", "subtype": "success", "usage": {"inputTokens": 10}, **result}


def kimi(told: Told) -> Iterator[Output]:
    yield {"role": "meta", "type": "system.version", "version": "2.1.0"}
    if told.fails:
        raise Failure(1, f"error: failed to run prompt: provider.api_error: 400 {REFUSED}")
    for passage in told.passages:
        calls = [{"type": "function", "id": "1", "function": {"name": "Bash", "arguments": "{}"}}]
        yield {"role": "assistant", "content": passage, **({"tool_calls": calls} if passage == LOOKING else {})}
        if passage == LOOKING:
            yield {"role": "tool", "tool_call_id": "1", "content": "done"}
    yield {"role": "meta", "type": "session.resume_hint", "session_id": told.session, "command": "kimi -r ..."}


def pi(told: Told) -> Iterator[Output]:
    def update(type: str, delta: str) -> Output:
        return {"type": "message_update", "assistantMessageEvent": {"type": type, "delta": delta, "partial": {}}}

    yield {"type": "session", "version": 3, "id": told.session, "cwd": "/"}
    yield {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": told.message}]}}
    if told.fails:
        failed = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": f"400 {REFUSED}"}
        yield {"type": "message_end", "message": failed}
        yield {"type": "agent_end", "messages": [failed]}
        return
    for passage in told.passages:
        yield {"type": "message_start", "message": {"role": "assistant", "content": []}}
        yield update("thinking_delta", THOUGHT)
        for half in halves(passage):
            yield update("text_delta", half)
        content = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": passage}]
        usage = {"input": 10, "output": 5, "totalTokens": 15}
        yield {"type": "message_end", "message": {"role": "assistant", "content": content, "usage": usage}}
        yield {"type": "tool_execution_start", "toolCallId": "1", "toolName": "bash", "args": {}}
    yield {"type": "agent_end", "messages": []}


def goose(told: Told) -> Iterator[Output]:
    def said(id: str, *content: Any, role: str = "assistant") -> Output:
        return {"type": "message", "message": {"id": id, "role": role, "created": 1, "content": content}}

    yield f"\x1b[2m{'starting' if told.new else 'resuming'} session | provider:\x1b[0m p model: m"
    yield f"    \x1b[2msession id:\x1b[0m {told.session}"
    yield "    working directory: /"
    if told.fails:
        yield {"type": "error", "error": REFUSED}
        raise Failure(1)
    for number, passage in enumerate(told.passages):
        yield said(f"m{number}", {"type": "thinking", "thinking": THOUGHT, "signature": ""})
        for half in halves(passage):
            yield said(f"m{number}", {"type": "text", "text": half})
        if passage == LOOKING:
            yield said(f"m{number}", {"type": "toolRequest", "id": "1", "toolCall": {}})
            yield said("t", {"type": "toolResponse", "id": "1", "toolResult": {}}, role="user")
    yield {"type": "complete", "total_tokens": 15}


def aider(told: Told) -> Iterator[Output]:
    yield "Detected dumb terminal, disabling fancy input and pretty output."
    yield ""
    yield "Aider v0.86.2"
    yield "Model: m with ask edit format"
    yield "Git repo: .git with 3 files"
    yield "Repo-map: using 1024 tokens, auto refresh"
    yield ""
    yield "Restored previous conversation history."
    if told.fails:
        yield f"litellm.BadRequestError: {REFUSED}"
        yield "The API provider refused the request."
        return
    yield "litellm.RateLimitError: too fast"
    yield "Retrying in 0.2 seconds..."
    for passage in told.passages:
        yield f"\x1b[32m{passage}\x1b[0m"
        yield ""
    yield "Tokens: 1.2k sent, 20 received."


def plain(told: Told) -> Iterator[Output]:
    if told.fails:
        raise Failure(1, REFUSED)
    yield "\n\n".join(told.passages)


def grok(told: Told) -> Iterator[Output]:
    if told.fails:
        yield {"type": "error", "message": REFUSED}
        raise Failure(1)
    yield {"type": "thought", "data": THOUGHT}
    for number, passage in enumerate(told.passages):
        for half in halves(f"\n\n{passage}" if number else passage):
            yield {"type": "text", "data": half}
    yield {"type": "end", "stopReason": "EndTurn", "sessionId": told.session}


def recursive(told: Told) -> Iterator[Output]:
    if told.fails:
        raise Failure(1, REFUSED)
    for step, passage in enumerate(told.passages):
        for half in halves(passage):
            yield {"type": "partial_token", "text": half, "step": step}
        yield {"type": "assistant_text", "text": passage, "step": step}
    yield {"type": "turn_finished"}
