"""What a line of the JSON stream means, in a few words: the subject is whoever sent it."""

from __future__ import annotations

from trunkline.core.usage import Usage
from trunkline.wires.jsonstream import messages as m


def caption(message: m.Message) -> str:
    """The words for an event of an agent or a command of a host."""
    match message:
        case m.Command():
            return _of_command(message)
        case m.ToolRequest() | m.ToolRunning() | m.ToolResult() | m.ToolCancelled():
            return _of_tool(message)
        case m.Ready(session_id=session_id):
            return "is ready" + (f"; this is session {session_id}" if session_id else "")
        case m.StreamStart(msg_id=msg_id):
            return f"begins to answer {msg_id}"
        case m.TextDelta():
            return "answers, piece by piece"
        case m.Thinking():
            return "thinks"
        case m.StreamEnd(msg_id=msg_id, usage=usage):
            return f"has finished {msg_id}{_tokens(usage)}"
        case m.Error(error=error):
            return f"reports a failure: {error.message}" + ("; it may be tried again" if error.retryable else "")
        case m.Info():
            return "has something to show"
        case _:
            return "says something else"


def _of_command(command: m.Command) -> str:
    match command:
        case m.UserMessage(input=text):
            return f"asks: {text}"
        case m.Stop():
            return "has heard enough"
        case m.ToolApprove(call_id=call_id, scope="always"):
            return f"allows {call_id}, and every tool of its category from now on"
        case m.ToolApprove(call_id=call_id):
            return f"allows {call_id}, this once"
        case m.ToolDeny(call_id=call_id):
            return f"refuses {call_id}, with a reason"
        case _:
            return "asks for something else"


def _of_tool(event: m.ToolRequest | m.ToolRunning | m.ToolResult | m.ToolCancelled) -> str:
    match event:
        case m.ToolRequest(call_id=call_id, tool=tool):
            return f"waits for permission ({call_id}): {tool.description}"
        case m.ToolRunning(tool_name=name):
            return f"runs {name}"
        case m.ToolResult(tool_name=name, output_type="diff"):
            return f"shows what {name} changed"
        case m.ToolResult(tool_name=name, status=status):
            return f"has the result of {name}" + (", which failed" if status == "error" else "")
        case m.ToolCancelled():
            return "gives up that tool"


def _tokens(usage: Usage | None) -> str:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return ""
    return f" ({usage.input_tokens} tokens in, {usage.output_tokens} out)"
