"""The network of agents in the loss ledger: an agent that decides for a runner, alone or as an agent of an exchange."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.wires.ledger_cells import PRIVATE, Cell, carried, degraded, refused

_NOT_ASKED = "a runner cannot be asked: tools that are not allowed are denied; in an exchange, others there are asked"
_ALONE = "without an exchange, each prompt is a conversation of its own"

CELLS: Mapping[str, Cell] = {
    "TurnStarted": refused("the runner asked and knows"),
    "Steered": refused("the runner waits for the whole answer"),
    "TextDelta": degraded(
        "the pieces together are the decision", "what was said before the last tool, and the pieces", "decision"
    ),
    "ThinkingDelta": refused("a decision has no place for reasoning"),
    "ToolRequested": refused(_NOT_ASKED),
    "ToolAnswered": refused("the runner was not asked"),
    "ToolStarted": degraded("the decision starts again after it", "which tool, and what it does", "decision"),
    "ToolFinished": refused("only the agent sees a tool's result"),
    "ToolCancelled": refused("only the agent is told that it may not"),
    "Progress": refused("the runner waits for the whole answer"),
    "Notice": refused("a decision has no place for it"),
    "Plan": refused("a decision has no place for it"),
    "Audio": refused("a decision is text"),
    "Extension": refused("a decision has no place for it"),
    "Extension (mcp_ready)": refused("a decision has no place for it"),
    "SessionIdentified": refused("a runner has no use for it"),
    "Failed": degraded("the error of the cycle", "its kind, and whether to try again", "error"),
    "TurnEnded": degraded(
        "the answer is whole, and its tokens are counted", "every outcome but success is an error", "usage"
    ),
    "ModeChanged": refused("this wire cannot change it"),
    "Granted": refused("this wire has no grants"),
    "GrantRevoked": refused("this wire has no grants"),
    "HistoryInjected": refused("this wire carries no history; the prompt holds everything"),
    "ToolJudged": refused(PRIVATE),
    "StopAsked": refused(PRIVATE),
    "Journaled": refused(PRIVATE),
    "JournalReplaced": refused(PRIVATE),
    "Checkpointed": refused(PRIVATE),
    "message": carried("the agent's context as JSON, in the runner's own words", "prompt"),
    "attachments": refused("threads and comments are text"),
    "images in": refused("threads and comments are text"),
    "images out": refused("threads and comments are text"),
    "speech in": refused("threads and comments are text"),
    "cancel": degraded("the time limit of an answer, and stopping the runner", "the network cannot ask for it"),
    "busy": degraded("a cycle that comes while another runs is skipped", "it is not made up for"),
    "faults": degraded("text in the report of the cycle", "the kind, and whether to try again", "error"),
    "outcome": degraded(
        "a decision, or an error", "cancelled and unknown look like any other error", "decision", "error"
    ),
    "usage of a turn": carried("in the report of the cycle", "usage"),
    "usage in total": degraded(
        "the runner adds up the cycles since its start", "those before it, which an exchange counts", "usage"
    ),
    "liveness": degraded("a time limit for the whole answer", "whether the agent is there before it is over"),
    "approve once": refused(_NOT_ASKED),
    "approve always": refused(_NOT_ASKED),
    "deny": refused(f"{_NOT_ASKED}; a transaction that waits for a person is not a tool of the agent's"),
    "modes": refused("a runner has none; in an exchange, the agent's own counts"),
    "allow-list": degraded("of the brain; in an exchange, of the agent", "the network cannot change it"),
    "session id": degraded("in an exchange, made of the names of agent and runner", _ALONE),
    "resume": degraded("in an exchange, every prompt is a turn of one session", _ALONE),
    "history": degraded(
        "threads, comments, and what became of earlier actions",
        "without an exchange, the agent's own words of earlier cycles",
        "prompt",
        "runnerInbox",
    ),
    "replay": refused("the communication log has it; in an exchange, the session's, too"),
    "sequence numbers": refused("one prompt, one answer"),
    "several watchers": degraded(
        "everyone reads the threads and comments that a decision becomes",
        "the rest of it is only in the communication log and, in an exchange, in the session, which others can join",
        "create_thread",
        "comment",
    ),
    "capabilities": refused("every brain is asked in the same way"),
    "workspace": degraded(
        "a folder of the agent's own under the runner's home; in an exchange, the agent's",
        "the network cannot choose it",
    ),
    "instructions": carried("a file of the runner's, which can be replaced", "system prompt"),
    "model options": degraded(
        "the runner's configuration; where it has none, the provider and the model that the owner chose",
        "everything else that the owner may want",
        "general",
    ),
    "MCP servers": degraded("the agent's own configuration", "their tools that are not allowed"),
    "fatal start": carried("the cycle fails with the reason", "error"),
}
