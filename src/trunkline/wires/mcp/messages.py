"""What an MCP client sees of agents and sessions: names, arguments, results and questions, as plain JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from trunkline.base.values import Value
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.keeper import KnownSession, OfferedAgent
from trunkline.core.usage import Usage

Json = dict[str, Any]

#: The longest name of a tool. The specification allows 128; several hosts refuse more than 64.
NAME_CHARS = 64
ASK = "ask_"
LIST_SESSIONS = "list_sessions"
READ_SESSION = "read_session"

#: Sessions are resources under this; the rest of the URI is the session's id.
SESSION_URI = "trunkline://sessions/"
SESSION_TEMPLATE = f"{SESSION_URI}{{session}}"
SESSION_TYPE = "text/markdown"

#: How many sessions or turns are told if nobody says how many, and at most: a tool's result goes into a model's prompt.
LISTED_SESSIONS = 20
READ_TURNS = 20
MOST = 100

#: Sessions in one page of resources.
PAGE = 50
#: The most values in a completion, by the specification.
COMPLETED = 100

#: What a client is told with the list of what there is.
INSTRUCTIONS = (
    "Each tool `ask_NAME` gives a message to the agent of that name and returns its answer. Give the `session` of an "
    "earlier result to go on with that conversation; without one, a new conversation begins. `list_sessions` and "
    "`read_session` show conversations."
)


class AskArguments(Value):
    """The arguments of `ask_AGENT`."""

    message: str
    session: str | None = None


class ListArguments(Value):
    """The arguments of `list_sessions`."""

    agent: str | None = None
    limit: int = LISTED_SESSIONS


class ReadArguments(Value):
    """The arguments of `read_session`."""

    session: str
    limit: int = READ_TURNS


def tool_names(agents: Iterable[str]) -> dict[str, str]:
    """A tool's name for each agent, valid and unique; the agents by those."""
    named: dict[str, str] = {}
    for agent in agents:
        wanted = ASK + (re.sub(r"[^A-Za-z0-9_-]+", "_", agent).strip("_") or "agent")
        name, number = wanted[:NAME_CHARS], 1
        while name in named:
            number += 1
            end = f"_{number}"
            name = wanted[: NAME_CHARS - len(end)] + end
        named[name] = agent
    return named


_SESSION_ID = {"type": "string", "minLength": 1, "description": "The id of a session."}
_AGENT = {"type": "string", "description": "The name of the agent."}
_NUMBER = {"type": "integer"}

_ANSWER_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "session": _SESSION_ID,
        "text": {"type": "string", "description": "The answer."},
        "outcome": {"type": "string", "enum": ["success", "error", "cancelled", "unknown"]},
        "error": {"type": "string", "description": "What went wrong, if something did."},
        "usage": {
            "type": "object",
            "description": "The tokens of this turn, as far as they are known.",
            "properties": dict.fromkeys(Usage.__fields__, _NUMBER),
        },
    },
    "required": ["session", "text", "outcome"],
}

_SESSION_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "session": _SESSION_ID,
        "agent": _AGENT,
        "title": {"type": "string", "description": "How its first message begins."},
        "workspace": {"type": "string"},
        "created_at": {**_NUMBER, "description": "In milliseconds since 1970."},
        "updated_at": {**_NUMBER, "description": "In milliseconds since 1970."},
        "uri": {"type": "string", "description": "The session as a resource."},
    },
    "required": ["session", "agent", "uri"],
}

_TURN_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "number": _NUMBER,
        "message": {"type": "string"},
        "sender": {"type": "string"},
        "answer": {"type": "string"},
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "status": {"type": "string"}},
                "required": ["name", "status"],
            },
        },
        "outcome": {"type": "string"},
        "error": {"type": "string"},
    },
    "required": ["number", "message", "answer"],
}


def ask_tool(name: str, agent: OfferedAgent) -> Json:
    """The tool that asks an agent."""
    about = f" {agent.description}" if agent.description else ""
    return {
        "name": name,
        "title": f"Ask {agent.name}",
        "description": (
            f"Give a message to the agent `{agent.name}` and wait for its answer.{about} The result names the session; "
            "give it again to go on with the same conversation."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": {"type": "string", "minLength": 1, "description": "What to say to the agent."},
                "session": {
                    **_SESSION_ID,
                    "description": "The session to go on with. Without one, or with a new id, a conversation begins.",
                },
            },
            "required": ["message"],
        },
        "outputSchema": _ANSWER_SCHEMA,
        # What an agent does with its own tools, nobody knows in advance; the approvals are its own.
        "annotations": {"readOnlyHint": False, "openWorldHint": True},
    }


def session_tools() -> list[Json]:
    """The tools that show sessions."""
    reading = {"readOnlyHint": True, "openWorldHint": False}
    return [
        {
            "name": LIST_SESSIONS,
            "title": "List sessions",
            "description": "List the conversations with agents, the newest first.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "agent": {**_AGENT, "description": "Only those with this agent."},
                    "limit": {
                        **_NUMBER,
                        "minimum": 1,
                        "maximum": MOST,
                        "default": LISTED_SESSIONS,
                        "description": "How many, at most.",
                    },
                },
            },
            "outputSchema": {
                "type": "object",
                "properties": {"sessions": {"type": "array", "items": _SESSION_SCHEMA}},
                "required": ["sessions"],
            },
            "annotations": reading,
        },
        {
            "name": READ_SESSION,
            "title": "Read a session",
            "description": "Read what was said in a conversation with an agent.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "session": _SESSION_ID,
                    "limit": {
                        **_NUMBER,
                        "minimum": 1,
                        "maximum": MOST,
                        "default": READ_TURNS,
                        "description": "How many turns, the last ones.",
                    },
                },
                "required": ["session"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "session": _SESSION_ID,
                    "agent": _AGENT,
                    "title": {"type": "string"},
                    "turns": {"type": "array", "items": _TURN_SCHEMA},
                    "omitted": {**_NUMBER, "description": "How many earlier turns are not told."},
                },
                "required": ["session", "agent", "turns", "omitted"],
            },
            "annotations": reading,
        },
    ]


def ask_prompt(name: str, agent: OfferedAgent) -> Json:
    """The prompt that has the client's model ask an agent."""
    return {
        "name": name,
        "title": f"Ask {agent.name}",
        "description": f"Have the agent `{agent.name}` answer a message.",
        "arguments": [
            {"name": "message", "description": "What to say to the agent.", "required": True},
            {"name": "session", "description": "The session to go on with.", "required": False},
        ],
    }


def prompt_text(name: str, arguments: AskArguments) -> Json:
    """What the prompt of an agent says."""
    within = f" in the session `{arguments.session}`" if arguments.session else ""
    text = f"Use the tool `{name}` to give this message to the agent{within}, and tell me its answer:\n\n"
    return {
        "messages": [{"role": "user", "content": {"type": "text", "text": text + arguments.message}}],
    }


def session_uri(session: str) -> str:
    """The URI of a session."""
    return SESSION_URI + quote(session, safe="")


def session_of(uri: str) -> str | None:
    """The session that a URI is of, if it is of one."""
    rest = uri.removeprefix(SESSION_URI)
    return unquote(rest) if rest and rest != uri and "/" not in rest else None


def session_value(session: KnownSession) -> Json:
    """A session in a list."""
    return {
        "session": session.id,
        "agent": session.agent,
        "title": session.title,
        "workspace": session.workspace,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "uri": session_uri(session.id),
    }


def session_resource(session: KnownSession) -> Json:
    """A session as a resource."""
    return {
        "uri": session_uri(session.id),
        "name": session.id,
        "title": session.title or session.id,
        "description": f"A conversation with the agent `{session.agent}`.",
        "mimeType": SESSION_TYPE,
    }


def session_template() -> Json:
    """What the URIs of sessions look like."""
    return {
        "uriTemplate": SESSION_TEMPLATE,
        "name": "session",
        "title": "A session",
        "description": "A conversation with an agent.",
        "mimeType": SESSION_TYPE,
    }


def result(text: str, structured: Mapping[str, Any] | None = None, *, is_error: bool = False) -> Json:
    """The result of a tool."""
    made: Json = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if structured is not None:
        made["structuredContent"] = structured
    return made


# Questions about tool calls.

APPROVE_ONCE, APPROVE_ALWAYS, DENY = "approve once", "approve always", "deny"
_DECISIONS: Mapping[str, Decision] = {APPROVE_ONCE: Approve(), APPROVE_ALWAYS: Approve("always")}

#: What to tell the agent of a call that its client did not approve.
DENIED_BY_CLIENT = "The user denied it."


def decision_form() -> Json:
    """The form in which a client answers. An enumeration that names itself is one for every version of the protocol."""
    return {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "`approve always` also approves later calls of this kind in this session.",
                "enum": [*_DECISIONS, DENY],
            },
            "reason": {"type": "string", "title": "Reason", "description": "If you deny it: what to tell the agent."},
        },
        "required": ["decision"],
    }


def decision_of(answer: Any) -> Decision:
    """What a client decided. Anything but a clear yes is a no."""
    members = answer if isinstance(answer, Mapping) else {}
    content = members.get("content")
    if members.get("action") != "accept" or not isinstance(content, Mapping):
        return Deny(DENIED_BY_CLIENT)
    decision, reason = content.get("decision"), content.get("reason")
    if isinstance(decision, str) and decision in _DECISIONS:
        return _DECISIONS[decision]
    return Deny(reason if isinstance(reason, str) and reason else DENIED_BY_CLIENT)


def listed_text(sessions: Sequence[KnownSession]) -> str:
    """A list of sessions as text."""
    if not sessions:
        return "There are no sessions."
    return "\n".join(f"{each.id} ({each.agent}): {each.title or 'nothing said yet'}" for each in sessions)
