"""The Agent Client Protocol in the loss ledger: an agent of ours in an editor."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

_START_SAYS = "it cannot be changed by the client"

CELLS: Mapping[str, Cell] = {
    "TurnStarted": degraded(
        "the message, to the others in the session and when it is loaded", "who has sent it", "user_message_chunk"
    ),
    "Steered": degraded("as a message of the user", "that it joined the turn in progress", "user_message_chunk"),
    "TextDelta": carried("one update each", "agent_message_chunk"),
    "ThinkingDelta": carried("one update each", "agent_thought_chunk"),
    "ToolRequested": degraded(
        "the call with its change, and then the question",
        "that it reaches outside the workspace, which only its description says",
        "tool_call",
        "session/request_permission",
    ),
    "ToolAnswered": degraded(
        "the question is taken back from the others, and an allowed call is in progress",
        "who has answered",
        "tool_call_update",
        "$/cancel_request",
    ),
    "ToolStarted": carried("status `in_progress`", "tool_call_update"),
    "ToolFinished": carried("status, content and `rawOutput`", "tool_call_update"),
    "ToolCancelled": carried("status `failed`, with the reason", "tool_call_update"),
    "Progress": degraded("in `_meta` of the call that it belongs to", "what belongs to no call", "tool_call_update"),
    "Notice": degraded("a paragraph of the answer", "that the model did not write it", "agent_message_chunk"),
    "Plan": carried("the whole plan each time", "plan"),
    "Audio": degraded("a block of audio in the answer", "clients that cannot play raw samples", "agent_message_chunk"),
    "Extension": degraded(
        "commands and the model's window, where an agent reports them", "all other kinds", "usage_update"
    ),
    "Extension (mcp_ready)": refused("the protocol has no update for it"),
    "SessionIdentified": refused("the client knows the session by our id"),
    "Failed": carried("the prompt's error, with its kind; in a turn that continues, a paragraph", "session/prompt"),
    "TurnEnded": carried("the answer to the prompt, with its `stopReason` and usage", "session/prompt"),
    "ModeChanged": carried("also if another client has changed it", "current_mode_update"),
    "Granted": refused("the client granted it and knows"),
    "GrantRevoked": refused("no message of the client takes a grant back"),
    "HistoryInjected": refused("clients of this protocol have no history to give"),
    "ToolJudged": refused("private: its arguments are told when the call begins"),
    "StopAsked": refused(PRIVATE),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("text, links and embedded resources, in their order", "session/prompt"),
    "attachments": carried("links to files of this machine, and embedded data as files", "session/prompt"),
    "images in": carried("blocks of the type `image`, if the model can see", "session/prompt"),
    "images out": carried("a block of the type `image` in the call's content", "tool_call_update"),
    "speech in": refused("no agent hears what is only attached; `promptCapabilities` says so"),
    "cancel": carried("the prompt is answered `cancelled`; prompts of other clients continue", "session/cancel"),
    "busy": carried("prompts wait in order", "session/prompt"),
    "faults": carried("JSON-RPC's code, the words, and in `data` the kind and whether to try again", "session/prompt"),
    "outcome": degraded("`stopReason`, or an error", "unknown looks like an error", "session/prompt"),
    "usage of a turn": carried("`usage` of the answer, if it is known", "session/prompt"),
    "usage in total": degraded("how full the model's window is", "what was used before", "usage_update"),
    "liveness": refused("the protocol has no message for it"),
    "approve once": carried("`allow_once`", "session/request_permission"),
    "approve always": carried("`allow_always`, for calls like this one", "session/request_permission"),
    "deny": degraded(
        "`reject_once`, or `reject_always` for the session", "the user's reason", "session/request_permission"
    ),
    "modes": carried("as the session's modes", "session/set_mode", "current_mode_update"),
    "allow-list": degraded("the flag `--allow`; on an exchange, the agent's", _START_SAYS),
    "session id": carried("`sessionId`, the same on all wires", "session/new"),
    "resume": carried("with what was said, or without", "session/load", "session/resume"),
    "history": refused("clients of this protocol have no history to give"),
    "replay": carried("the whole conversation, before the answer", "session/load"),
    "sequence numbers": refused("updates come in order and whole; who reads slowly is told later"),
    "several watchers": carried("on an exchange; everybody is asked, and the first answer counts", "session/load"),
    "capabilities": degraded(
        "images, MCP servers, and what can be done with sessions",
        "thinking, voice, and steering",
        "initialize",
    ),
    "workspace": carried("`cwd`", "session/new"),
    "instructions": degraded("the flag `--system-prompt`; on an exchange, the agent's", _START_SAYS),
    "model options": degraded(
        "the flags; effort as an option of the session", "all others", "session/set_config_option"
    ),
    "MCP servers": carried("`mcpServers`; an agent may refuse, and an exchange takes them from admins", "session/new"),
    "fatal start": carried("an error with the reason; -32000 if a key is missing", "session/new"),
}
