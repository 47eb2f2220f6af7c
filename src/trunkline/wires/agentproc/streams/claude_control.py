"""Claude Code with `--input-format=stream-json --permission-prompt-tool=stdio`: it asks before it acts.

What it prints is read as in `claude`. Besides, it sends a `control_request` for each use of a tool that its own rules
do not settle, and waits for the `control_response`. It goes on to read messages after its `result`; the end of its
input ends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunkline.wires.agentproc.messages import UNANSWERABLE, PermissionRequest, PermissionResponse, TurnRequest
from trunkline.wires.agentproc.streams import claude
from trunkline.wires.agentproc.streams.dialogue import Event, JsonDialogue, is_id, line, shown
from trunkline.wires.agentproc.streams.jsonlines import member, objects, text_of

#: Its tools that name a file: the argument that does, and what else they take, which is text. With any other argument
#: it is not the tool that we know.
_FILE_TOOLS = {
    "Read": ("file_path", "offset", "limit", "pages"),
    "Write": ("file_path", "content"),
    "Edit": ("file_path", "old_string", "new_string", "replace_all"),
    "MultiEdit": ("file_path", "edits"),
    "NotebookEdit": ("notebook_path", "cell_id", "new_source", "cell_type", "edit_mode"),
}

_COMMAND = "Bash"
#: It asks so for an answer that no yes is. A model that is told this asks in words.
_QUESTION = "AskUserQuestion"
_NO_ID = "This `request_id` cannot be used."
_ASK_IN_WORDS = "Nobody sees this question. Ask it in your answer, and end your turn: the user replies with a message."


class Stream(JsonDialogue, claude.Stream):
    """Talks to one run."""

    asks = re.compile(rb'\s*\{[^{[]*"type"\s*:\s*"control_request"')

    def begin(self, turn: TurnRequest) -> bytes:
        """The message. The session is an argument."""
        return line({"type": "user", "message": {"role": "user", "content": turn.message}})

    def take(self, event: Event) -> None:
        """Say what an object means."""
        if self._concluded:
            # It would go on to the next message: what comes now is no part of this answer.
            return
        match event.get("type"):
            case "control_request":
                self._take_request(event)
            case "control_cancel_request":
                self.withdraw(text_of(event.get("request_id")))
            case "user":
                self._take_results(member(event, "message", "content"))
            case _:
                super().take(event)
                if self._succeeded:
                    self.conclude()

    def answer_of(self, key: Any, request: PermissionRequest, response: PermissionResponse) -> Mapping[str, Any]:
        """What was asked for, or a changed input, may be done; or not, with the reason."""
        if response.behavior == "allow":
            given = request.input if response.updated_input is None else response.updated_input
            return _success(request.request_id, {"behavior": "allow", "updatedInput": dict(given)})
        return _denial(request.request_id, response.message)

    def _take_results(self, content: Any) -> None:
        for block in objects(content):
            if block.get("type") == "tool_result":
                result = block.get("content")
                parts = (
                    [text_of(result)] if isinstance(result, str) else [text_of(p.get("text")) for p in objects(result)]
                )
                self.used(text_of(block.get("tool_use_id")), block.get("is_error") is not True, "\n".join(parts))

    def _take_request(self, event: Event) -> None:
        request_id, request = event.get("request_id"), event.get("request")
        if request_id is None:
            # Without an id there is nothing to answer.
            self._said.append(UNANSWERABLE)
            return
        if not isinstance(request_id, str) or not is_id(request_id):
            # Of what nobody could be asked about, it gets a no all the same: it would wait for ever.
            self.refuse("a `control_request` without a usable `request_id`", _denial(request_id, _NO_ID))
            return
        kind, tool = member(request, "subtype"), text_of(member(request, "tool_name"))
        if kind != "can_use_tool":
            why = f"`{shown(kind)}` is not answered here"
            failure = {"subtype": "error", "request_id": request_id, "error": why}
            self.refuse(shown(kind), {"type": "control_response", "response": failure})
        elif tool == _QUESTION:
            self.tell(_denial(request_id, _ASK_IN_WORDS))
        else:
            self.ask(None, _permission(request_id, tool, request))


def _permission(request_id: str, tool: str, request: Any) -> PermissionRequest:
    """The request; one that is malformed names no tool."""
    given = member(request, "input")
    if not tool or not isinstance(given, dict):
        return PermissionRequest(request_id, "", {})
    return PermissionRequest(
        request_id,
        tool,
        given,
        text_of(member(request, "description")) or text_of(member(request, "decision_reason")),
        text_of(member(request, "tool_use_id")),
        _paths(tool, given, text_of(member(request, "blocked_path"))),
    )


def _paths(tool: str, given: Mapping[str, Any], blocked: str) -> tuple[str, ...] | None:
    """The file that a tool is about, with the one that made the program ask."""
    known = _FILE_TOOLS.get(tool, ("",))
    path = given.get(known[0])
    if isinstance(path, str) and given.keys() <= set(known):
        return (path, blocked) if blocked else (path,)
    texts = tuple(value for value in given.values() if isinstance(value, str))
    return (*texts, blocked) if blocked and tool == _COMMAND else None


def _denial(request_id: Any, message: str) -> Mapping[str, Any]:
    return _success(request_id, {"behavior": "deny", "message": message or "denied by the user"})


def _success(request_id: Any, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    response = {"subtype": "success", "request_id": request_id, "response": answer}
    return {"type": "control_response", "response": response}
