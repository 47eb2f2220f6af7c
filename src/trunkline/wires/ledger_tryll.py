"""Tryll in the loss ledger, at both of its ends.

One is an agent of ours that a server offers as the model `agent:NAME`, for the nodes of a client's graph. The other is
a server whose graphs are an agent of ours, `tryll:HOST:PORT`. What is an addition to the protocol says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

_NO_FRAME = "the protocol has no frame for it"
_NO_TOOLS = "an agent's tools are its own affair; what a ToolCall node calls is an extension (see there)"
_CANNOT_ASK = "this wire cannot ask: the server's own policy decides"
_TEXT = "a message is text, and so is an answer"
_SERVER_SAYS = "a client cannot change it"

CELLS: Mapping[str, Cell] = {
    "TurnStarted": refused("the client asked and knows"),
    "Steered": refused(_NO_FRAME),
    "TextDelta": carried("one frame each where the node streams, else the whole answer in one", "AnswerText"),
    "ThinkingDelta": refused(_NO_FRAME),
    "ToolRequested": refused(_CANNOT_ASK),
    "ToolAnswered": refused(_NO_TOOLS),
    "ToolStarted": refused(_NO_TOOLS),
    "ToolFinished": refused(_NO_TOOLS),
    "ToolCancelled": refused(_NO_TOOLS),
    "Progress": degraded("how far the download of a model is", "every other sign of life", "DownloadProgress"),
    "Notice": refused(_NO_FRAME),
    "Plan": refused(_NO_FRAME),
    "Audio": degraded(
        "what the nodes of a graph speak",
        "what an agent in the place of a model says aloud: its answer is text, which a node may speak",
        "TtsAudioFrame",
    ),
    "Extension": degraded(
        "what the nodes of a graph report, in pairs of strings",
        "what an agent in the place of a model reports",
        "NodeEvent",
    ),
    "Extension (mcp_ready)": refused(_NO_FRAME),
    "SessionIdentified": refused("sessions and agents have numbers, which end with the connection"),
    "Failed": degraded(
        "a turn that fails ends so; with diagnostics on, the number and the sentence are in `debug_info`",
        "its kind, whether to try again, and the sentence where diagnostics are off",
        "TurnComplete",
        "ErrorResponse",
    ),
    "TurnEnded": degraded(
        "its status and its tokens", "an unknown outcome, and what was written to a cache", "TurnComplete"
    ),
    "ModeChanged": refused("this wire cannot change it"),
    "Granted": refused("this wire has no grants"),
    "GrantRevoked": refused("this wire has no grants"),
    "HistoryInjected": refused("the client told it and knows"),
    "ToolJudged": refused(PRIVATE),
    "StopAsked": refused(PRIVATE),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("with what the node's template makes of the turn, such as knowledge", "SendMessageRequest"),
    "attachments": refused(_TEXT),
    "images in": refused(_TEXT),
    "images out": refused(_TEXT),
    "speech in": refused("an agent hears text: what is spoken becomes text before, or does not reach it"),
    "cancel": carried(
        "the first is an addition; the end of the connection also does it", "CancelTurnRequest", "DestroyAgentRequest"
    ),
    "busy": degraded(
        "refused with 3004; the turn continues", "the message: the client has to send it again", "ErrorResponse"
    ),
    "faults": degraded(
        "a number, and a sentence for people",
        "which of the kinds that share a number it was; both within a turn, where diagnostics are off",
        "ErrorResponse",
        "TurnComplete",
    ),
    "outcome": degraded("success, error or cancelled", "an unknown one is an error", "TurnComplete"),
    "usage of a turn": degraded(
        "tokens of the answer; of the prompt and from a cache (an addition)",
        "what was written to a cache; and each piece that an agent says counts as a token, unless it reports more",
        "TurnComplete",
    ),
    "usage in total": refused("usage is each turn's; the client adds it up"),
    "liveness": degraded(
        "answered at once, also in a turn (an addition)",
        "whether the agent behind the server is still there",
        "HealthRequest",
        "HealthResponse",
    ),
    "approve once": refused(_CANNOT_ASK),
    "approve always": refused(_CANNOT_ASK),
    "deny": refused("the server's own policy denies what it does not allow, with the reason"),
    "modes": degraded("the flag `--mode` of the server", _SERVER_SAYS),
    "allow-list": degraded("the flag `--allow` of the server", _SERVER_SAYS),
    "session id": refused("sessions and agents have numbers, which end with the connection"),
    "resume": degraded(
        "messages and answers are given to a new agent (an addition)",
        "all else that the agent remembered: tools, reasoning, what a template had added",
        "SaveHistoryRequest",
        "SaveHistoryResponse",
        "RestoreHistoryRequest",
    ),
    "history": degraded(
        "messages and answers (an addition), which an agent in the place of a model is told as one text; any other "
        "text goes in front of the next message",
        "all of it, for an agent that takes no history",
        "RestoreHistoryRequest",
        "SendMessageRequest",
    ),
    "replay": refused("a history says what was said, and not what happened"),
    "sequence numbers": refused("frames of a connection come in order and whole, or not at all"),
    "several watchers": refused("an agent belongs to one connection"),
    "capabilities": degraded(
        "the server's additions, and which agents it offers",
        "what an agent can do",
        "SessionReady",
        "ListModelsResponse",
    ),
    "workspace": degraded("the flag `--workspace` of the server", _SERVER_SAYS),
    "instructions": degraded(
        "the node's system prompt, when the conversation begins",
        "for an agent in the place of a model, one that changes later",
        "CreateAgentRequest",
    ),
    "model options": degraded(
        "each node's model and sampling",
        "thinking and effort; and for an agent in the place of a model all sampling, `max_tokens`, grammars and the "
        "trimming of the history, which it sees to by itself",
        "CreateAgentRequest",
        "ChangeAgentParamRequest",
    ),
    "MCP servers": degraded("the agent's own configuration", "they cannot be added by the client"),
    "fatal start": degraded(
        "3003 for an agent that the server does not offer",
        "what an agent lacks, which only its first turn tells",
        "ErrorResponse",
    ),
}
