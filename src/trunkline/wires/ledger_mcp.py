"""MCP in the loss ledger: an agent that a client asks by a tool."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

_ASKED = "a client that cannot be asked: on an exchange somebody else is, and elsewhere the call is denied"
_TEXT = "a message is text, and so is an answer"
_WAITS = "the client waits for the whole answer; `read_session` tells it later"
_FASTER = "what comes faster than five in a second, and more than a line of it"
_NO_PLACE = "a result has no place for it"
_SERVER_SAYS = "a client cannot change it"

CELLS: Mapping[str, Cell] = {
    "TurnStarted": degraded(
        "a line of progress", "which message it is, where others are answered first", "notifications/progress"
    ),
    "Steered": refused(_WAITS),
    "TextDelta": carried(
        "the pieces together are the result; its end so far is progress", "result", "notifications/progress"
    ),
    "ThinkingDelta": degraded("progress says that the agent thinks", "what it thinks", "notifications/progress"),
    "ToolRequested": degraded(
        "a form with the tool, what it does and its arguments",
        f"arguments beyond 2000 characters; everything, with {_ASKED}",
        "elicitation/create",
    ),
    "ToolAnswered": degraded(
        "a question that somebody else has answered is withdrawn", "who did, and how", "notifications/cancelled"
    ),
    "ToolStarted": degraded("progress names the tool", "which of its calls", "notifications/progress"),
    "ToolFinished": degraded("progress names the tool, and how it ended", "what it gave", "notifications/progress"),
    "ToolCancelled": degraded("progress tells the reason", "which tool", "notifications/progress"),
    "Progress": degraded("a line of progress", _FASTER, "notifications/progress"),
    "Notice": degraded("a line of progress", _FASTER, "notifications/progress"),
    "Plan": degraded("progress names what is being done", "the rest of the plan", "notifications/progress"),
    "Audio": refused(_TEXT),
    "Extension": refused(_NO_PLACE),
    "Extension (mcp_ready)": refused(_NO_PLACE),
    "SessionIdentified": refused("sessions go by one id everywhere, which is not the agent's own"),
    "Failed": degraded("the words of a result that is an error", "its kind, and whether to try again", "result"),
    "TurnEnded": carried("`outcome` and `usage` of the result", "result"),
    "ModeChanged": refused(_NO_PLACE),
    "Granted": refused(_NO_PLACE),
    "GrantRevoked": refused(_NO_PLACE),
    "HistoryInjected": refused(_NO_PLACE),
    "ToolJudged": refused(PRIVATE),
    "StopAsked": refused(PRIVATE),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("the argument `message`", "tools/call"),
    "attachments": refused("a tool's arguments are text; the agent can read files of its own directory"),
    "images in": refused(_TEXT),
    "images out": refused(_TEXT),
    "speech in": refused(_TEXT),
    "cancel": carried("the turn of that request ends, and no other", "notifications/cancelled"),
    "busy": carried("it waits for its turn, and progress is told meanwhile", "tools/call"),
    "faults": degraded("a sentence for models and people", "the kind, and whether to try again", "result"),
    "outcome": carried("`outcome`; all but success are errors", "result"),
    "usage of a turn": carried("`usage`", "result"),
    "usage in total": refused("results are about their own turn"),
    "liveness": carried("progress every ten seconds, and the server answers in the meantime", "notifications/progress"),
    "approve once": degraded("`approve once` in the form", _ASKED, "elicitation/create"),
    "approve always": degraded("`approve always` in the form", _ASKED, "elicitation/create"),
    "deny": carried("`deny` in the form with a reason, declining it, closing it", "elicitation/create"),
    "modes": degraded("the flag `--mode` of the server; on an exchange, the agent's", _SERVER_SAYS),
    "allow-list": degraded("the flag `--allow` of the server; on an exchange, the agent's", _SERVER_SAYS),
    "session id": carried("the argument and the member `session`, and the resource's URI", "tools/call", "result"),
    "resume": carried("the same `session` once more", "tools/call"),
    "history": refused("a session has what was said in it; what was said elsewhere goes into the message"),
    "replay": degraded(
        "the messages and answers of a session, and the names of tools",
        "everything else that happened",
        "read_session",
        "resources/read",
    ),
    "sequence numbers": degraded("progress only grows, and turns have numbers", "those of events", "read_session"),
    "several watchers": degraded(
        "on an exchange everybody may read and continue a session", "being told of news", "read_session"
    ),
    "capabilities": degraded("the agent's description, in the tool's", "what it can do", "tools/list"),
    "workspace": degraded("the flag `--workspace` of the server; on an exchange, the agent's", _SERVER_SAYS),
    "instructions": degraded("the flags of the server; on an exchange, the agent's", _SERVER_SAYS),
    "model options": degraded("the flags of the server; on an exchange, the agent's", _SERVER_SAYS),
    "MCP servers": degraded("the agent's own configuration", "they cannot be added by the client"),
    "fatal start": carried("the result is an error with the reason", "result"),
}
