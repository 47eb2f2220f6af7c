"""OpenAI-compatible HTTP in the loss ledger: Chat Completions and Responses.

`content` is the answer (`delta.content`, `output_text`), `reasoning` what is told beside it (`reasoning_content`, items
of the type `reasoning`).
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

_A_LINE = "a line of reasoning"

CELLS: Mapping[str, Cell] = {
    "TurnStarted": refused("the stream begins when the message is taken; nothing says that its turn has come"),
    "Steered": refused("neither format has an event for it"),
    "TextDelta": carried("one event each, or all of it at the end", "content"),
    "ThinkingDelta": carried("one event each, or all of it at the end", "reasoning"),
    "ToolRequested": degraded(_A_LINE, "its arguments as data; the client cannot answer", "reasoning"),
    "ToolAnswered": degraded(_A_LINE, "which call it was", "reasoning"),
    "ToolStarted": degraded(_A_LINE, "which call it was", "reasoning"),
    "ToolFinished": degraded(_A_LINE, "what came of it", "reasoning"),
    "ToolCancelled": degraded(_A_LINE, "which call it was", "reasoning"),
    "Progress": refused("comments of the stream are the signs of life"),
    "Notice": carried(_A_LINE, "reasoning"),
    "Plan": degraded("lines of reasoning", "priorities, and the entries as data", "reasoning"),
    "Audio": refused("answers are text"),
    "Extension": refused("only plain models' calls of the client's tools: `tool_calls`, `function_call`"),
    "Extension (mcp_ready)": refused("neither format has an event for it"),
    "SessionIdentified": refused("the client knows the session by our id"),
    "Failed": degraded(
        "the body of an error, an event `error`, or `response.failed`, at the end of the turn",
        "in Responses its kind; in streams whether to try again",
        "error",
    ),
    "TurnEnded": degraded(
        "a reason and the usage", "an unknown outcome, which looks like an error", "finish_reason", "usage"
    ),
    "ModeChanged": refused("the client has no say in it"),
    "Granted": refused("the client has no say in it"),
    "GrantRevoked": refused("the client has no say in it"),
    "HistoryInjected": refused("the client sent it and knows"),
    "ToolJudged": refused(PRIVATE),
    "StopAsked": refused(PRIVATE),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("the last message of the user", "messages", "input"),
    "attachments": carried("`data:` URLs, public addresses, and the files themselves", "messages", "input"),
    "images in": carried("`data:` URLs and public addresses", "messages", "input"),
    "images out": refused("answers are text"),
    "speech in": refused("agents cannot hear; `/v1/audio/transcriptions` writes it down"),
    "cancel": carried("the client hangs up, or `POST /v1/responses/{id}/cancel`; the session lives on"),
    "busy": carried("messages of a session wait in order; the stream begins at once"),
    "faults": degraded("status, type and code, with Retry-After", "in Responses' streams the kind", "error"),
    "outcome": degraded(
        "`finish_reason`, the `status` of a response, or an error",
        "in Chat Completions, that a turn was cancelled and not failed, but for the code",
        "finish_reason",
        "error",
    ),
    "usage of a turn": carried("with the cached tokens; null or absent where it is not known", "usage"),
    "usage in total": refused("usage is each message's; the client adds it up"),
    "liveness": carried("a comment in a stream that was silent for 7 s"),
    "approve once": refused(
        "the client cannot be asked: others are, while the stream stays alive, or a policy decides"
    ),
    "approve always": refused("the client cannot be asked"),
    "deny": refused("the client cannot be asked"),
    "modes": degraded("the flag `--mode`, or the exchange's file", "the client cannot change it"),
    "allow-list": degraded("the flag `--allow`, or the exchange's file", "the client cannot change it"),
    "session id": carried(
        "ours, in a header where there is a session, and in the ids of responses", "X-Trunkline-Session", "conversation"
    ),
    "resume": carried(
        "any of these; an older response forks the session",
        "X-Trunkline-Session",
        "conversation",
        "previous_response_id",
    ),
    "history": carried("the messages before the last, where the session is new", "messages", "input"),
    "replay": degraded("`GET /v1/responses/{id}`, `/v1/conversations/{id}/items`", "the events as they came"),
    "sequence numbers": degraded("`sequence_number` in Responses", "they count one answer's events, not the session's"),
    "several watchers": refused("each client sees its own turns"),
    "capabilities": degraded("the agent's description, in the list of models", "what it can do"),
    "workspace": degraded("the flag `--workspace`, or the exchange's file", "the client cannot change it"),
    "instructions": carried("those of a new session", "instructions", "messages"),
    "model options": degraded(
        "plain models take temperature, top_p, seed, stop, max_tokens and a schema; agents stop and max_tokens",
        "effort, and everything else",
        "messages",
        "input",
    ),
    "MCP servers": refused("agents keep their own tools"),
    "fatal start": carried("an error with its status", "error"),
}
