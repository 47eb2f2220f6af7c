"""The JSON stream in the loss ledger."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

CELLS: Mapping[str, Cell] = {
    "TurnStarted": carried("with the host's own `msg_id`", "stream_start"),
    "TextDelta": carried("one line each", "text_delta"),
    "ThinkingDelta": carried("one line each", "thinking"),
    "ToolRequested": degraded(
        "only where a person must decide; what the policy answers is not asked",
        "that it reaches outside the workspace, which only its description says",
        "tool_request",
    ),
    "ToolStarted": carried("one line each", "tool_running"),
    "ToolFinished": carried("text, diff or image, with its metadata", "tool_result"),
    "ToolCancelled": carried("with the reason", "tool_cancelled"),
    "Progress": degraded("text for display", "which call it belongs to", "info"),
    "Notice": carried("text for display", "info"),
    "Audio": refused("the protocol has no line for sound"),
    "Extension": refused("the protocol has no line for what it does not know"),
    "Extension (mcp_ready)": carried("the server's name and its tools (dialect)", "mcp_ready"),
    "SessionIdentified": refused("the host knows the session by our id, told in `ready`"),
    "Failed": degraded("code, text and whether to try again", "its kind (see faults)", "error"),
    "TurnEnded": degraded("with the usage of this message", "its outcome (see there)", "stream_end"),
    "ModeChanged": degraded("text for display; `config_changed` follows", "the mode as data, in this line", "info"),
    "Granted": refused("the host granted it and knows"),
    "GrantRevoked": refused("no command of the host takes a grant back"),
    "HistoryInjected": refused("the host sent it and knows"),
    "ToolJudged": refused("private: the host sees `tool_running` or `tool_cancelled`"),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("`input`, or `content` as newer hosts write", "message"),
    "attachments": carried("paths in `files`; host and agent share a file system", "message"),
    "images in": carried("paths in `files`", "message"),
    "images out": carried("base64, `output_type` `image`; `metadata` may tell the media type", "tool_result"),
    "speech in": refused("the protocol has no line for sound"),
    "cancel": carried("the turn ends within a second; messages that wait are dropped, each with its end", "stop"),
    "busy": carried("messages wait in order; no line says so", "message"),
    "faults": degraded("`error.code` and `retryable`", "which of the kinds that share a code it was", "error"),
    "outcome": degraded(
        "an `error` line before `stream_end` tells of a failure",
        "success, cancelled and unknown look alike",
        "error",
        "stream_end",
    ),
    "usage of a turn": carried("left out when not known; cache tokens left out when there were none", "stream_end"),
    "usage in total": refused("usage is each message's; the host adds it up"),
    "liveness": carried("answered at once, also in a turn (dialect)", "ping", "pong"),
    "approve once": carried("several may be open, answered in any order", "tool_approve"),
    "approve always": carried("by category, also for what is already waiting", "tool_approve"),
    "deny": carried("the reason goes back to the model", "tool_deny"),
    "modes": carried("also releases what is already waiting", "set_mode"),
    "allow-list": degraded("the flag `--allow`", "it cannot be changed while the agent runs"),
    "session id": carried("`--session-id`, told in `ready`", "ready"),
    "resume": carried("`--resume ID` or `--resume latest`", "ready"),
    "history": carried("several times; what comes late is context of the next message", "init_history"),
    "replay": refused("a host that resumes shows its own copy; `trunkline sessions export` has ours"),
    "sequence numbers": refused("lines of a pipe come in order and whole, or not at all"),
    "several watchers": refused("one process, one pipe, one host"),
    "capabilities": degraded(
        "approval, thinking and MCP; images, effort and modes (dialect)", "resume and voice", "ready", "config_changed"
    ),
    "workspace": carried("`--workspace`, else the working directory"),
    "instructions": carried("`--system-prompt`"),
    "model options": carried("flags at the start; changed between turns (dialect)", "set_config", "config_changed"),
    "MCP servers": carried("added while the agent runs (dialect); an agent may refuse", "add_mcp_server", "mcp_ready"),
    "fatal start": carried("one line with `config_error`, no `ready`, and a non-zero exit", "error"),
}
