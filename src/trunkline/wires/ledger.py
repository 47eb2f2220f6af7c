"""What each wire carries, degrades or refuses of a conversation, as data: the loss ledger.

One row for every concept of the core, one column for every wire. A cell says what becomes of the concept there, in
which lines, and, where it is degraded, what is lost. Every event type of the core has a row of its own name, so that a
new one cannot be forgotten; a test holds each cell against what the wire really does.

A wire that is added brings its own column: a mapping from each concept to a `Cell`, entered in `WIRES`. That of
AgentProc is about protocol 0.1, and says where 0.4 does better. That of the network of agents, `sns`, is about an
agent that decides for a runner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from trunkline.base.values import Value

Fate = Literal["carried", "degraded", "refused"]
Group = Literal["events", "conversation", "approvals", "session", "start"]


class Concept(Value):
    """A row: something that a conversation may need a wire to carry."""

    name: str
    group: Group
    what: str


class Cell(Value):
    """What becomes of a concept on one wire."""

    fate: Fate
    how: str
    """In which form it crosses the wire, or why it does not."""
    lost: str | None = None
    """What a peer does not learn or cannot say. Only where it is degraded, and always there."""
    lines: tuple[str, ...] = ()
    """The types of the messages that carry it."""


#: Events go by the names of their types in `core.events`; one with a bracket is a special case of the type before it.
CONCEPTS: tuple[Concept, ...] = (
    Concept("TurnStarted", "events", "a message is being answered"),
    Concept("TextDelta", "events", "a piece of the answer"),
    Concept("ThinkingDelta", "events", "a piece of the model's reasoning"),
    Concept("ToolRequested", "events", "the agent waits for a decision"),
    Concept("ToolStarted", "events", "a tool is running"),
    Concept("ToolFinished", "events", "a tool has ended"),
    Concept("ToolCancelled", "events", "a tool was denied or stopped"),
    Concept("Progress", "events", "a sign of life"),
    Concept("Notice", "events", "something worth showing"),
    Concept("Audio", "events", "spoken sound"),
    Concept("Extension", "events", "what only some agents know, such as a graph's node event"),
    Concept("Extension (mcp_ready)", "events", "an MCP server is connected"),
    Concept("SessionIdentified", "events", "the agent's own session id"),
    Concept("Failed", "events", "something went wrong"),
    Concept("TurnEnded", "events", "the turn is over"),
    Concept("ModeChanged", "events", "the approval mode changed"),
    Concept("Granted", "events", "a category of tools needs no approval any more"),
    Concept("HistoryInjected", "events", "the host told what was said before"),
    Concept("ToolJudged", "events", "a request that the approval policy answered by itself, private"),
    Concept("Journaled", "events", "the agent's own record, private"),
    Concept("JournalReplaced", "events", "the agent's records after a compaction, private"),
    Concept("Checkpointed", "events", "what resuming needs, private"),
    Concept("message", "conversation", "text for the agent to answer"),
    Concept("attachments", "conversation", "files that come with a message"),
    Concept("images in", "conversation", "pictures for the model to see"),
    Concept("images out", "conversation", "a tool's result that is a picture"),
    Concept("speech in", "conversation", "spoken words for the agent"),
    Concept("cancel", "conversation", "stop the turn, keep the session"),
    Concept("busy", "conversation", "a message that comes while a turn runs"),
    Concept("faults", "conversation", "the kind of what went wrong, and whether to try again"),
    Concept("outcome", "conversation", "how a turn ended: success, error, cancelled or unknown"),
    Concept("usage of a turn", "conversation", "tokens of one message, cache reads and writes"),
    Concept("usage in total", "conversation", "tokens of the whole session"),
    Concept("liveness", "conversation", "whether the agent is still there"),
    Concept("approve once", "approvals", "this call may run"),
    Concept("approve always", "approvals", "every call of the category may run"),
    Concept("deny", "approvals", "it may not, and why"),
    Concept("modes", "approvals", "default, auto_edit, yolo"),
    Concept("allow-list", "approvals", "tools that never ask, by name"),
    Concept("session id", "session", "a name under which the conversation is kept"),
    Concept("resume", "session", "go on with a kept conversation"),
    Concept("history", "session", "what was said before the session began"),
    Concept("replay", "session", "the events of earlier turns, once more"),
    Concept("sequence numbers", "session", "each event's place, so that a gap can be seen"),
    Concept("several watchers", "session", "more than one peer sees the same session"),
    Concept("capabilities", "start", "what the agent says it can do"),
    Concept("workspace", "start", "the directory to work in"),
    Concept("instructions", "start", "a system prompt"),
    Concept("model options", "start", "model, thinking, effort and the like"),
    Concept("MCP servers", "start", "tools from outside"),
    Concept("fatal start", "start", "the agent cannot begin"),
)


def _carried(how: str, *lines: str) -> Cell:
    return Cell("carried", how, lines=lines)


def _degraded(how: str, lost: str, *lines: str) -> Cell:
    return Cell("degraded", how, lost, lines)


def _refused(why: str) -> Cell:
    return Cell("refused", why)


_PRIVATE = "private: for the log alone, no peer ever sees it"

_JSONSTREAM: Mapping[str, Cell] = {
    "TurnStarted": _carried("with the host's own `msg_id`", "stream_start"),
    "TextDelta": _carried("one line each", "text_delta"),
    "ThinkingDelta": _carried("one line each", "thinking"),
    "ToolRequested": _degraded(
        "only where a person must decide; what the policy answers is not asked",
        "that it reaches outside the workspace, which only its description says",
        "tool_request",
    ),
    "ToolStarted": _carried("one line each", "tool_running"),
    "ToolFinished": _carried("text, diff or image, with its metadata", "tool_result"),
    "ToolCancelled": _carried("with the reason", "tool_cancelled"),
    "Progress": _degraded("text for display", "which call it belongs to", "info"),
    "Notice": _carried("text for display", "info"),
    "Audio": _refused("the protocol has no line for sound"),
    "Extension": _refused("the protocol has no line for what it does not know"),
    "Extension (mcp_ready)": _carried("the server's name and its tools (dialect)", "mcp_ready"),
    "SessionIdentified": _refused("the host knows the session by our id, told in `ready`"),
    "Failed": _degraded("code, text and whether to try again", "its kind (see faults)", "error"),
    "TurnEnded": _degraded("with the usage of this message", "its outcome (see there)", "stream_end"),
    "ModeChanged": _degraded("text for display", "the mode as data", "info"),
    "Granted": _refused("the host granted it and knows"),
    "HistoryInjected": _refused("the host sent it and knows"),
    "ToolJudged": _refused("private: the host sees `tool_running` or `tool_cancelled`"),
    "Journaled": _refused(_PRIVATE),
    "JournalReplaced": _refused(_PRIVATE),
    "Checkpointed": _refused(_PRIVATE),
    "message": _carried("`input`, or `content` as newer hosts write", "message"),
    "attachments": _carried("paths in `files`; host and agent share a file system", "message"),
    "images in": _carried("paths in `files`", "message"),
    "images out": _carried("base64, `output_type` `image`; `metadata` may tell the media type", "tool_result"),
    "speech in": _refused("the protocol has no line for sound"),
    "cancel": _carried("the turn ends within a second; messages that wait are dropped, each with its end", "stop"),
    "busy": _carried("messages wait in order; no line says so", "message"),
    "faults": _degraded("`error.code` and `retryable`", "which of the kinds that share a code it was", "error"),
    "outcome": _degraded(
        "an `error` line before `stream_end` tells of a failure",
        "success, cancelled and unknown look alike",
        "error",
        "stream_end",
    ),
    "usage of a turn": _carried("left out when not known; cache tokens left out when there were none", "stream_end"),
    "usage in total": _refused("usage is each message's; the host adds it up"),
    "liveness": _carried("answered at once, also in a turn (dialect)", "ping", "pong"),
    "approve once": _carried("several may be open, answered in any order", "tool_approve"),
    "approve always": _carried("by category, also for what is already waiting", "tool_approve"),
    "deny": _carried("the reason goes back to the model", "tool_deny"),
    "modes": _carried("also releases what is already waiting", "set_mode"),
    "allow-list": _degraded("the flag `--allow`", "it cannot be changed while the agent runs"),
    "session id": _carried("`--session-id`, told in `ready`", "ready"),
    "resume": _carried("`--resume ID` or `--resume latest`", "ready"),
    "history": _carried("before the first message only, several times", "init_history"),
    "replay": _refused("a host that resumes shows its own copy; `trunkline sessions export` has ours"),
    "sequence numbers": _refused("lines of a pipe come in order and whole, or not at all"),
    "several watchers": _refused("one process, one pipe, one host"),
    "capabilities": _degraded(
        "approval, thinking and MCP; modes after `set_config`", "images, resume and voice", "ready", "config_changed"
    ),
    "workspace": _carried("`--workspace`, else the working directory"),
    "instructions": _carried("`--system-prompt`"),
    "model options": _carried("flags at the start; changed between turns (dialect)", "set_config", "config_changed"),
    "MCP servers": _carried("added while the agent runs (dialect); an agent may refuse", "add_mcp_server", "mcp_ready"),
    "fatal start": _carried("one line with `config_error`, no `ready`, and a non-zero exit", "error"),
}

_AGENTPROC: Mapping[str, Cell] = {
    "TurnStarted": _refused("the process that was started is the turn"),
    "TextDelta": _carried("one line each where the bridge streams, else the body at the end", "AGENT_PARTIAL", "body"),
    "ThinkingDelta": _refused("0.1 has no line for it; in 0.4 a `partial` with the role `thinking`"),
    "ToolRequested": _refused("nobody can be asked in 0.1: the policy decides; in 0.4 a `permission_request`"),
    "ToolStarted": _refused("the protocol has no line for tools"),
    "ToolFinished": _refused("the protocol has no line for tools"),
    "ToolCancelled": _refused("the protocol has no line for tools; a denial is told on standard error"),
    "Progress": _refused("the protocol has no line for it"),
    "Notice": _refused("standard error, which a bridge does not show"),
    "Audio": _refused("the protocol has no line for sound"),
    "Extension": _refused("the protocol has no line for what it does not know"),
    "Extension (mcp_ready)": _refused("the protocol has no line for it"),
    "SessionIdentified": _refused("the bridge knows the session by our id, told in `AGENT_SESSION`"),
    "Failed": _degraded("text for the user", "its kind, and whether to try again", "AGENT_ERROR"),
    "TurnEnded": _degraded(
        "the end of the process and its exit code", "usage; in 0.4 the `result` has it", "exit code"
    ),
    "ModeChanged": _refused("the protocol has no line for it"),
    "Granted": _refused("nobody grants anything on this wire"),
    "HistoryInjected": _refused("nobody tells history on this wire"),
    "ToolJudged": _refused(_PRIVATE),
    "Journaled": _refused(_PRIVATE),
    "JournalReplaced": _refused(_PRIVATE),
    "Checkpointed": _refused(_PRIVATE),
    "message": _carried("a variable, and standard input where the profile says so", "AGENT_MESSAGE"),
    "attachments": _degraded(
        "URLs, each with a type and a name; those that are no files on this machine are named in the text",
        "files behind other URLs are not fetched",
        "AGENT_ATTACHMENTS",
        "AGENT_IMAGE_URL",
        "AGENT_FILE_URL",
    ),
    "images in": _carried("a `file:` URL", "AGENT_ATTACHMENTS", "AGENT_IMAGE_URL"),
    "images out": _refused("the reply is text"),
    "speech in": _degraded("an attachment of the type `audio`", "that it is speech for the agent", "AGENT_ATTACHMENTS"),
    "cancel": _carried("SIGTERM to the process, a grace, SIGKILL to its tree; the session lives on"),
    "busy": _refused("every message is a process of its own; the bridge keeps the order"),
    "faults": _degraded("text, and an exit code", "the kind; only a timeout has a code of its own", "AGENT_ERROR"),
    "outcome": _degraded(
        "exit code 0, or another one; 143 and 130 after a signal", "an outcome that is not known", "exit code"
    ),
    "usage of a turn": _refused("0.1 has no place for it; in 0.4 the `result` has it"),
    "usage in total": _refused("the protocol has no place for it"),
    "liveness": _carried("the process runs, or it does not"),
    "approve once": _refused("0.1 asks nobody; in 0.4 a `permission_response`"),
    "approve always": _refused("neither dialect can say it"),
    "deny": _refused("0.1 asks nobody; in 0.4 a `permission_response`"),
    "modes": _degraded("the flag `--mode`", "it cannot be changed by the bridge"),
    "allow-list": _degraded("the flag `--allow`", "it cannot be changed by the bridge"),
    "session id": _carried("ours, in characters that every bridge takes", "AGENT_SESSION", "AGENT_SESSION_ID"),
    "resume": _carried("the id of the last turn comes back with the next one", "AGENT_SESSION_ID"),
    "history": _refused("the protocol has no place for what was said elsewhere"),
    "replay": _refused("`trunkline sessions export` has it"),
    "sequence numbers": _refused("lines of a pipe come in order and whole, or not at all"),
    "several watchers": _refused("one process, one pipe, one bridge"),
    "capabilities": _refused("the bridge knows what its profile says"),
    "workspace": _carried("the working directory, or the flag `--workspace`"),
    "instructions": _degraded("the agent's own configuration", "the bridge cannot give any"),
    "model options": _degraded("flags and configuration", "they cannot be changed by the bridge"),
    "MCP servers": _degraded("the agent's own configuration", "they cannot be added by the bridge"),
    "fatal start": _carried("a line with the reason, and a non-zero exit", "AGENT_ERROR", "exit code"),
}

_NO_TOOLS = "nobody is there to be asked: an agent that decides for a runner may use no tools"

_SNS: Mapping[str, Cell] = {
    "TurnStarted": _refused("the runner asked and knows"),
    "TextDelta": _degraded(
        "the pieces together are the decision", "what was said before the last tool, and the pieces", "decision"
    ),
    "ThinkingDelta": _refused("a decision has no place for reasoning"),
    "ToolRequested": _refused(_NO_TOOLS),
    "ToolStarted": _degraded("the decision begins anew behind it", "which tool, and what it does", "decision"),
    "ToolFinished": _refused("the agent alone sees what a tool gave"),
    "ToolCancelled": _refused("the agent alone is told that it may not"),
    "Progress": _refused("the runner waits for the whole answer"),
    "Notice": _refused("a decision has no place for it"),
    "Audio": _refused("a decision is text"),
    "Extension": _refused("a decision has no place for it"),
    "Extension (mcp_ready)": _refused("a decision has no place for it"),
    "SessionIdentified": _refused("each prompt is a conversation of its own"),
    "Failed": _degraded("the error of the cycle", "its kind, and whether to try again", "error"),
    "TurnEnded": _degraded(
        "the answer is whole, and its tokens are counted", "every outcome but success is an error", "usage"
    ),
    "ModeChanged": _refused("nobody changes it"),
    "Granted": _refused("nobody grants anything"),
    "HistoryInjected": _refused("nobody tells history; the prompt has all that there is"),
    "ToolJudged": _refused(_PRIVATE),
    "Journaled": _refused(_PRIVATE),
    "JournalReplaced": _refused(_PRIVATE),
    "Checkpointed": _refused(_PRIVATE),
    "message": _carried("the agent's context as JSON, in the runner's own words", "prompt"),
    "attachments": _refused("threads and comments are text"),
    "images in": _refused("threads and comments are text"),
    "images out": _refused("threads and comments are text"),
    "speech in": _refused("threads and comments are text"),
    "cancel": _degraded("the time limit of an answer, and stopping the runner", "the network cannot ask for it"),
    "busy": _degraded("a cycle that comes while another runs is skipped", "it is not made up for"),
    "faults": _degraded("text in the report of the cycle", "the kind, and whether to try again", "error"),
    "outcome": _degraded(
        "a decision, or an error", "cancelled and unknown look like any other error", "decision", "error"
    ),
    "usage of a turn": _carried("in the report of the cycle", "usage"),
    "usage in total": _degraded("the runner adds up the cycles since its start", "those before it", "usage"),
    "liveness": _degraded("a time limit for the whole answer", "whether the agent is there before it is over"),
    "approve once": _refused(_NO_TOOLS),
    "approve always": _refused(_NO_TOOLS),
    "deny": _refused("every tool is denied; a transaction that waits for a person is no tool of the agent's"),
    "modes": _refused(_NO_TOOLS),
    "allow-list": _refused("it is empty"),
    "session id": _refused("each prompt is a conversation of its own"),
    "resume": _refused("each prompt is a conversation of its own"),
    "history": _degraded(
        "threads, comments, and what became of earlier actions",
        "the agent's own words of earlier cycles",
        "prompt",
        "runnerInbox",
    ),
    "replay": _refused("the communication log has it"),
    "sequence numbers": _refused("one prompt, one answer"),
    "several watchers": _degraded(
        "everybody reads the threads and comments that a decision becomes",
        "the rest of it is in the communication log alone",
        "create_thread",
        "comment",
    ),
    "capabilities": _refused("every brain is asked in the same way"),
    "workspace": _degraded("a folder of the agent's own under the runner's home", "the network cannot choose it"),
    "instructions": _carried("a file of the runner's, which can be replaced", "system prompt"),
    "model options": _degraded(
        "the runner's configuration; where it has none, the provider and the model that the owner chose",
        "everything else that the owner may want",
        "general",
    ),
    "MCP servers": _degraded("the agent's own configuration", "their tools, which may not be used"),
    "fatal start": _carried("the cycle fails with the reason", "error"),
}

#: The columns. Each has a cell for every concept.
WIRES: Mapping[str, Mapping[str, Cell]] = {"jsonstream": _JSONSTREAM, "agentproc": _AGENTPROC, "sns": _SNS}


def cell(wire: str, concept: str) -> Cell:
    """What becomes of a concept on a wire.

    Raises:
        KeyError: there is no such wire, or no such concept.
    """
    return WIRES[wire][concept]
