"""What each wire carries, degrades or refuses of a conversation, as data: the loss ledger.

One row for every concept of the core, one column for every wire. A cell says what becomes of the concept there, in
which lines, and, where it is degraded, what is lost. Every event type of the core has a row of its own name, so that a
new one cannot be forgotten; a test holds each cell against what the wire really does.

A wire that is added brings its own column: a file with a mapping from each concept to a `Cell`, entered in `WIRES`.
That of AgentProc is about protocol 0.1, and says where 0.4 does better. That of the network of agents, `sns`, is about
an agent that decides for a runner. That of `tryll` is about both of its ends: an agent of ours that a server offers as
the model `agent:NAME`, and the graphs of a server as an agent of ours. That of `mcp` is about agents as the tools of a
server. That of `openai` is about Chat Completions and Responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from trunkline.base.values import Value
from trunkline.wires import (
    ledger_acp,
    ledger_agentproc,
    ledger_jsonstream,
    ledger_mcp,
    ledger_openai,
    ledger_sns,
    ledger_tryll,
)
from trunkline.wires.ledger_cells import Cell, Fate

__all__ = ["CONCEPTS", "WIRES", "Cell", "Concept", "Fate", "Group", "cell"]

Group = Literal["events", "conversation", "approvals", "session", "start"]


class Concept(Value):
    """A row: something that a conversation may need a wire to carry."""

    name: str
    group: Group
    what: str


#: Events go by the names of their types in `core.events`; one with a bracket is a special case of the type before it.
CONCEPTS: tuple[Concept, ...] = (
    Concept("TurnStarted", "events", "a message is being answered"),
    Concept("Steered", "events", "a message was put into the turn in progress"),
    Concept("TextDelta", "events", "a piece of the answer"),
    Concept("ThinkingDelta", "events", "a piece of the model's reasoning"),
    Concept("ToolRequested", "events", "the agent waits for a decision"),
    Concept("ToolAnswered", "events", "a request has its answer"),
    Concept("ToolStarted", "events", "a tool is running"),
    Concept("ToolFinished", "events", "a tool has ended"),
    Concept("ToolCancelled", "events", "a tool was denied or stopped"),
    Concept("Progress", "events", "a sign of life"),
    Concept("Notice", "events", "something worth showing"),
    Concept("Plan", "events", "what the agent means to do"),
    Concept("Audio", "events", "spoken sound"),
    Concept("Extension", "events", "what only some agents know, such as a graph's node event"),
    Concept("Extension (mcp_ready)", "events", "an MCP server is connected"),
    Concept("SessionIdentified", "events", "the agent's own session id"),
    Concept("Failed", "events", "something went wrong"),
    Concept("TurnEnded", "events", "the turn is over"),
    Concept("ModeChanged", "events", "the approval mode changed"),
    Concept("Granted", "events", "a category of tools, or a part of it, no longer needs approval"),
    Concept("GrantRevoked", "events", "what was granted needs approval again"),
    Concept("HistoryInjected", "events", "the host supplied the earlier conversation"),
    Concept("ToolJudged", "events", "a request that the approval policy answered by itself, private"),
    Concept("StopAsked", "events", "who stopped a turn that several share, private"),
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
    Concept("modes", "approvals", "default, auto_edit, yolo, plan"),
    Concept("allow-list", "approvals", "tools that never ask, by name"),
    Concept("session id", "session", "a name under which the conversation is kept"),
    Concept("resume", "session", "continue a stored conversation"),
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

#: The columns. Each has a cell for every concept.
WIRES: Mapping[str, Mapping[str, Cell]] = {
    "jsonstream": ledger_jsonstream.CELLS,
    "agentproc": ledger_agentproc.CELLS,
    "sns": ledger_sns.CELLS,
    "tryll": ledger_tryll.CELLS,
    "acp": ledger_acp.CELLS,
    "mcp": ledger_mcp.CELLS,
    "openai": ledger_openai.CELLS,
}


def cell(wire: str, concept: str) -> Cell:
    """What becomes of a concept on a wire.

    Raises:
        KeyError: there is no such wire, or no such concept.
    """
    return WIRES[wire][concept]
