"""What every kind of agent does on every way into an exchange: the matrix of the loss ledger, as data.

A cell is an agent and a way in; it has a word for each scenario, and the reason where less than all of it comes
through. A way in takes something from every agent, and some agents have less to give: of the two, the agent's limit is
told. A test runs every cell, and fails where the word is not what it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from trunkline.base.values import Value

Scenario = Literal["text", "tool", "stop", "fault", "resume"]
Found = Literal["carried", "asked", "elsewhere", "denied", "by code", "in words", "told again"]


class CellOutcome(Value):
    """What came of a scenario in a cell."""

    word: Found
    why: str = ""
    """What is less than it could be, and why; nothing where all of it comes through."""


#: What is tried, in this order.
SCENARIOS: Mapping[Scenario, str] = {
    "text": "a message and its answer",
    "tool": "a tool that needs approval",
    "stop": "an answer that is stopped in the middle",
    "fault": "a turn that fails",
    "resume": "the conversation after a restart of the exchange",
}

#: What the words mean, the best first.
WORDS: Mapping[Found, str] = {
    "carried": "all of it comes through",
    "asked": "the client is asked, and its answer counts",
    "elsewhere": "the client cannot be asked: the question waits for anybody else in the exchange",
    "denied": "nobody is asked: a policy says no, and the turn continues",
    "by code": "as a sentence and a code, which similar kinds of failures share",
    "in words": "as a sentence for people, without its kind",
    "told again": "a new session starts with what was said",
}

#: The agents, by their names in the exchange's file.
AGENTS: Mapping[str, str] = {
    "coder": "`coder`",
    "graph": "`graph:FILE`",
    "agentproc": "`agentproc:PROFILE`",
    "jsonstream": "`jsonstream:COMMAND`",
    "acp": "`acp:COMMAND`",
    "tryll": "`tryll:HOST:PORT`",
    "scripted": "`scripted:FILE`",
    "module": "`MODULE:NAME`, a class in a module",
}

#: The ways in.
WAYS: Mapping[str, str] = {
    "jsonstream": "`trunkline agent --json-stream --attach`",
    "agentproc": "`trunkline agentproc serve AGENT --attach`, protocol 0.4",
    "tryll": "the model `agent:NAME` in the graph of a Tryll client",
    "chat": "a chat platform",
    "runner": "the brain of an agent in `[wires.runner]`",
    "http": "the HTTP API",
    "acp": "`trunkline acp AGENT --attach`, as an editor starts it",
    "openai": "`/v1/chat/completions` and `/v1/responses`, streamed, with `X-Trunkline-Session`",
    "mcp": "`/mcp`, with a host that shows its user what is asked",
}

_ALL = CellOutcome("carried")
_ASKED = CellOutcome("asked")

#: What each way makes of an agent that can do everything.
_BY_WAY: Mapping[str, Mapping[Scenario, CellOutcome]] = {
    "jsonstream": {
        "text": _ALL,
        "tool": _ASKED,
        "stop": _ALL,
        "fault": CellOutcome("by code", "the JSON stream has five codes"),
        "resume": _ALL,
    },
    "agentproc": {
        "text": _ALL,
        "tool": _ASKED,
        "stop": _ALL,
        "fault": CellOutcome("in words", "an error of AgentProc has a text and an exit code"),
        "resume": _ALL,
    },
    "tryll": {
        "text": _ALL,
        "tool": CellOutcome("elsewhere", "Tryll has no frame for a question"),
        "stop": _ALL,
        "fault": CellOutcome("in words", "the diagnostics of a turn have a number and a sentence"),
        "resume": CellOutcome("told again", "an agent of a Tryll server ends with its connection"),
    },
    "chat": {
        "text": _ALL,
        "tool": _ASKED,
        "stop": _ALL,
        "fault": CellOutcome("in words", "people read it"),
        "resume": _ALL,
    },
    "runner": {
        "text": _ALL,
        "tool": CellOutcome("elsewhere", "a runner is a program, and nobody sits in front of it"),
        "stop": _ALL,
        "fault": CellOutcome("in words", "the report of a cycle has a sentence"),
        "resume": _ALL,
    },
    "http": {"text": _ALL, "tool": _ASKED, "stop": _ALL, "fault": _ALL, "resume": _ALL},
    "acp": {"text": _ALL, "tool": _ASKED, "stop": _ALL, "fault": _ALL, "resume": _ALL},
    "openai": {
        "text": _ALL,
        "tool": CellOutcome("elsewhere", "OpenAI's formats have no question for the client"),
        "stop": _ALL,
        "fault": CellOutcome("in words", "a stream of Responses has no place for the kind; Chat Completions has it"),
        "resume": _ALL,
    },
    "mcp": {
        "text": _ALL,
        "tool": _ASKED,
        "stop": _ALL,
        "fault": CellOutcome("in words", "the result of a tool that failed is a sentence"),
        "resume": _ALL,
    },
}

#: What an agent cannot do, whatever the way in.
_BY_AGENT: Mapping[str, Mapping[Scenario, CellOutcome]] = {
    "agentproc": {"fault": CellOutcome("in words", "a program's error has a text and an exit code")},
    "acp": {"fault": CellOutcome("in words", "a program's error has a number and a sentence")},
    "tryll": {
        "tool": CellOutcome("denied", "an agent behind a Tryll server is held to that server's policy"),
        "fault": CellOutcome("in words", "the server sends a number and a sentence"),
    },
}

#: The cells, by agent and way in.
MATRIX: Mapping[tuple[str, str], Mapping[Scenario, CellOutcome]] = {
    (agent, way): {**_BY_WAY[way], **_BY_AGENT.get(agent, {})} for agent in AGENTS for way in WAYS
}


class Limit(Value):
    """Where less than all comes through: with an agent, or on a way in, and the other is "" then."""

    agent: str
    way: str
    outcome: CellOutcome


def limits(scenario: Scenario) -> tuple[Limit, ...]:
    """Why the words of a scenario are what they are: those of agents, which come first, and those of ways in."""
    agents = [Limit(agent, "", outcomes[scenario]) for agent, outcomes in _BY_AGENT.items() if scenario in outcomes]
    ways = [Limit("", way, outcomes[scenario]) for way, outcomes in _BY_WAY.items()]
    return tuple(limit for limit in (*agents, *ways) if limit.outcome.why)
