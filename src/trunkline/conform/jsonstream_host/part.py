"""What the agent of the kit says: events of the JSON stream, and the steps of a part that are the same everywhere."""

from __future__ import annotations

from typing import Any

Step = list[Any]
Event = dict[str, Any]

#: What the polite agent answers: a text that no host says by itself.
ANSWER = "conform-answer"
#: How long the agent waits for a host to write a message, or a decision: longer than a host takes to start.
HOST_SECONDS = 10.0

_OWN = {"msg_id": "$msg_id"}


def say(*events: Event) -> Step:
    """Write events."""
    return ["say", *events]


def ready(**more: Any) -> Event:
    """The first event."""
    capabilities = {"tool_approval": True, "thinking": True, "mcp": False}
    return {"type": "ready", "version": "0.1.0", "session_id": "conform", "capabilities": capabilities, **more}


def start() -> Event:
    """A turn begins."""
    return {"type": "stream_start", **_OWN}


def text(said: str) -> Event:
    """A piece of the answer."""
    return {"type": "text_delta", "text": said, **_OWN}


def end(**more: Any) -> Event:
    """The turn has ended."""
    return {"type": "stream_end", **_OWN, "usage": {"input_tokens": 3, "output_tokens": 2}, **more}


def request(call_id: str, command: str = "true") -> Event:
    """May this be run?"""
    tool = {"name": "Bash", "category": "exec", "args": {"command": command}, "description": f"Run {command}"}
    return {"type": "tool_request", **_OWN, "call_id": call_id, "tool": tool}


def running(call_id: str) -> Event:
    """It runs."""
    return {"type": "tool_running", **_OWN, "call_id": call_id, "tool_name": "Bash"}


def result(call_id: str, output: str = "done") -> Event:
    """It has run."""
    about = {"call_id": call_id, "tool_name": "Bash", "status": "success", "output": output, "output_type": "text"}
    return {"type": "tool_result", **_OWN, **about}


def error(message: str, code: str = "provider_error", msg_id: str | None = "$msg_id") -> Event:
    """Something went wrong."""
    return {"type": "error", "msg_id": msg_id, "error": {"code": code, "message": message, "retryable": False}}


#: Hear the host, say that we are ready, and wait for its message.
OPEN: tuple[Step, ...] = (["listen"], say(ready()), ["message", HOST_SECONDS])
#: Answer whatever else the host says, until it is done.
CLOSE: Step = ["serve", ANSWER]


def turn(*steps: Step | Event) -> tuple[Step, ...]:
    """A part: an ordinary beginning, a turn with these steps or events, an ordinary end."""
    inner = tuple(step if isinstance(step, list) else say(step) for step in steps)
    return (*OPEN, say(start()), *inner, say(end()), CLOSE)
