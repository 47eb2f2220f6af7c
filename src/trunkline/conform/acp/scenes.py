"""What checks have in common: an agent that is ready, a session with it, a turn from beginning to end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline import __version__
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpAsked, AcpReply, AcpSubject, Policy, updates_in
from trunkline.conform.acp.vocabulary import AUTH_REQUIRED, MESSAGE_CHUNK, PROTOCOL_VERSION
from trunkline.conform.kit import Broken, NotApplicable, NotExercised

#: What the kit's client can do: neither files nor terminals, so that nothing depends on how it would do them.
CLIENT = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}

Params = Mapping[str, Any]


def greeting(version: int = PROTOCOL_VERSION) -> dict[str, Any]:
    """The parameters of `initialize`."""
    info = {"name": "trunkline-conform", "title": "Trunkline's conformance kit", "version": __version__}
    return {"protocolVersion": version, "clientCapabilities": CLIENT, "clientInfo": info}


def word() -> str:
    """A text that nobody has said before."""
    return f"conform-{os.urandom(6).hex()}"


# An agent, a session.


async def ready(stage: Stage, policy: Policy = "allow") -> AcpSubject:
    """An agent that was started and initialized.

    Raises:
        NotExercised: it cannot be.
    """
    agent = await stage.start(policy)
    try:
        reply = await agent.ask("initialize", greeting(), stage.target.timeout)
    except Broken as problem:
        raise NotExercised(str(problem)) from None
    if reply.error is not None:
        raise NotExercised(f"{reply.asked} was answered with {reply.shown}")
    found = reply.result.get("agentCapabilities")
    agent.capabilities = found if isinstance(found, dict) else {}
    return agent


def new_params(stage: Stage) -> dict[str, Any]:
    """The parameters of an ordinary `session/new`."""
    return {"cwd": str(stage.workspace), "mcpServers": []}


async def new_session(stage: Stage, agent: AcpSubject) -> str:
    """A new session.

    Raises:
        NotExercised: there is none to be had.
    """
    try:
        reply = await agent.ask("session/new", new_params(stage), stage.target.timeout)
    except Broken as problem:
        raise NotExercised(str(problem)) from None
    if reply.code == AUTH_REQUIRED:
        raise NotExercised("the agent wants a login first: log in with its own command, then run the kit again")
    session = reply.result.get("sessionId")
    if not isinstance(session, str) or not session:
        raise NotExercised(f"{reply.asked} was answered with {reply.shown}, which has no `sessionId`")
    return session


async def opened(stage: Stage, policy: Policy = "allow") -> tuple[AcpSubject, str]:
    """An agent, and a session with it.

    Raises:
        NotExercised: they cannot be had.
    """
    agent = await ready(stage, policy)
    return agent, await new_session(stage, agent)


def offers(agent: AcpSubject, *path: str) -> bool:
    """Whether the agent said in `initialize` that it can do something."""
    found: Any = agent.capabilities
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found is True or isinstance(found, dict)


def needs(agent: AcpSubject, *path: str) -> None:
    """Something must be offered, or the check is not about this agent.

    Raises:
        NotApplicable: it is not.
    """
    if not offers(agent, *path):
        raise NotApplicable(f"the agent does not offer `agentCapabilities.{'.'.join(path)}`")


# A turn.


def text_block(text: str) -> dict[str, Any]:
    """A content block of text."""
    return {"type": "text", "text": text}


def begin(agent: AcpSubject, session: str, text: str | Sequence[Params]) -> AcpAsked:
    """Send a prompt, a text or blocks; do not wait."""
    blocks = [text_block(text)] if isinstance(text, str) else [dict(each) for each in text]
    return agent.begin("session/prompt", {"sessionId": session, "prompt": blocks})


async def finish(stage: Stage, agent: AcpSubject, turn: AcpAsked) -> AcpReply:
    """The end of a turn.

    Raises:
        Broken: it does not come, or is an error.
    """
    reply = await agent.answer(turn, stage.target.timeout)
    return succeeded(reply)


async def say(stage: Stage, agent: AcpSubject, session: str, prompt: str, **parts: str) -> AcpReply:
    """A whole turn with one of the kit's prompts.

    Raises:
        Broken: it does not end, or with an error.
    """
    return await finish(stage, agent, begin(agent, session, stage.prompt(prompt, **parts)))


async def lives(stage: Stage, agent: AcpSubject, after: str) -> None:
    """The agent still answers requests.

    Raises:
        Broken: it does not.
    """
    try:
        reply = await agent.ask("session/new", new_params(stage), stage.target.timeout)
    except Broken as problem:
        raise Broken(f"after {after}, {problem}") from None
    if not reply.result.get("sessionId"):
        raise Broken(f"after {after}, {reply.asked} was answered with {reply.shown}")


async def under_way(stage: Stage, agent: AcpSubject, session: str) -> AcpAsked:
    """A turn whose answer has begun and goes on.

    Raises:
        NotApplicable: it was over at once.
    """
    turn = begin(agent, session, stage.prompt("long"))

    def begun() -> bool:
        return bool(updates_in(agent.heard[turn.since :], session, MESSAGE_CHUNK)) or over()

    def over() -> bool:
        return agent.answer_to(turn.id) is not None

    await agent.until(begun, stage.target.timeout)
    if await agent.until(over, stage.target.quiet):
        raise NotApplicable("the turn was over before the kit could act; the prompt `long` must make it last")
    return turn


async def permission(stage: Stage, agent: AcpSubject, turn: AcpAsked) -> Mapping[str, Any]:
    """The first request for a permission in a turn; the kit has not answered it, if its policy is `hold`.

    Raises:
        NotApplicable: there is none.
    """
    known = len(agent.permissions)

    def over() -> bool:
        return len(agent.permissions) > known or agent.answer_to(turn.id) is not None

    await agent.until(over, stage.target.timeout)
    if len(agent.permissions) == known:
        raise NotApplicable(
            "the agent asked for no permission; the prompt `write` must make it use a tool for which it asks"
        )
    return agent.permissions[known]


# What is said of answers.


def succeeded(reply: AcpReply) -> AcpReply:
    """A request has a result.

    Raises:
        Broken: it has an error.
    """
    if reply.error is not None:
        raise Broken(f"{reply.asked} was answered with {reply.shown}, not with a result")
    return reply


def refused(reply: AcpReply, why: str, *codes: int) -> None:
    """A request has an error, with one of the codes if some are named.

    Raises:
        Broken: it has not.
    """
    if reply.error is None:
        raise Broken(f"{reply.asked} {why} was answered with {reply.shown}, not with an error")
    if codes and reply.code not in codes:
        wanted = " or ".join(map(str, codes))
        raise Broken(f"{reply.asked} {why} was answered with {reply.shown}, not with the code {wanted}")
