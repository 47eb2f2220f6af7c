"""AgentProc in the loss ledger: protocol 0.1, and where 0.4 does better."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

CELLS: Mapping[str, Cell] = {
    "TurnStarted": refused("the process that was started is the turn"),
    "TextDelta": carried("one line each where the bridge streams, else the body at the end", "AGENT_PARTIAL", "body"),
    "ThinkingDelta": refused("0.1 has no line for it; in 0.4 a `partial` with the role `thinking`"),
    "ToolRequested": refused("nobody can be asked in 0.1: the policy decides; in 0.4 a `permission_request`"),
    "ToolStarted": refused("the protocol has no line for tools"),
    "ToolFinished": refused("the protocol has no line for tools"),
    "ToolCancelled": refused("the protocol has no line for tools; a denial is told on standard error"),
    "Progress": refused("the protocol has no line for it"),
    "Notice": refused("standard error, which a bridge does not show"),
    "Audio": refused("the protocol has no line for sound"),
    "Extension": refused("the protocol has no line for what it does not know"),
    "Extension (mcp_ready)": refused("the protocol has no line for it"),
    "SessionIdentified": refused("the bridge knows the session by our id, told in `AGENT_SESSION`"),
    "Failed": degraded("text for the user", "its kind, and whether to try again", "AGENT_ERROR"),
    "TurnEnded": degraded("the end of the process and its exit code", "usage; in 0.4 the `result` has it", "exit code"),
    "ModeChanged": refused("the protocol has no line for it"),
    "Granted": refused("nobody grants anything on this wire"),
    "HistoryInjected": refused("nobody tells history on this wire"),
    "ToolJudged": refused(PRIVATE),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("a variable, and standard input where the profile says so", "AGENT_MESSAGE"),
    "attachments": degraded(
        "URLs, each with a type and a name; images and files of the web are fetched, and named in the text",
        "what is too large or slow, or lies on a private address: the text says so",
        "AGENT_ATTACHMENTS",
        "AGENT_IMAGE_URL",
        "AGENT_FILE_URL",
    ),
    "images in": carried("a `file:` URL", "AGENT_ATTACHMENTS", "AGENT_IMAGE_URL"),
    "images out": refused("the reply is text"),
    "speech in": degraded("an attachment of the type `audio`", "that it is speech for the agent", "AGENT_ATTACHMENTS"),
    "cancel": carried("SIGTERM to the process, a grace, SIGKILL to its tree; the session lives on"),
    "busy": refused("every message is a process of its own; the bridge keeps the order"),
    "faults": degraded("text, and an exit code", "the kind; only a timeout has a code of its own", "AGENT_ERROR"),
    "outcome": degraded(
        "exit code 0, or another one; 143 and 130 after a signal", "an outcome that is not known", "exit code"
    ),
    "usage of a turn": refused("0.1 has no place for it; in 0.4 the `result` has it"),
    "usage in total": refused("the protocol has no place for it"),
    "liveness": carried("the process runs, or it does not"),
    "approve once": refused("0.1 asks nobody; in 0.4 a `permission_response`"),
    "approve always": refused("neither dialect can say it"),
    "deny": refused("0.1 asks nobody; in 0.4 a `permission_response`"),
    "modes": degraded("the flag `--mode`", "it cannot be changed by the bridge"),
    "allow-list": degraded("the flag `--allow`", "it cannot be changed by the bridge"),
    "session id": carried("ours, in characters that every bridge takes", "AGENT_SESSION", "AGENT_SESSION_ID"),
    "resume": carried("the id of the last turn comes back with the next one", "AGENT_SESSION_ID"),
    "history": refused("the protocol has no place for what was said elsewhere"),
    "replay": refused("`trunkline sessions export` has it"),
    "sequence numbers": refused("lines of a pipe come in order and whole, or not at all"),
    "several watchers": refused("one process, one pipe, one bridge"),
    "capabilities": refused("the bridge knows what its profile says"),
    "workspace": carried("the working directory, or the flag `--workspace`"),
    "instructions": degraded("the agent's own configuration", "the bridge cannot give any"),
    "model options": degraded("flags and configuration", "they cannot be changed by the bridge"),
    "MCP servers": degraded("the agent's own configuration", "they cannot be added by the bridge"),
    "fatal start": carried("a line with the reason, and a non-zero exit", "AGENT_ERROR", "exit code"),
}
