"""Checks of sessions: an id from one turn goes on with the conversation in the next."""

from __future__ import annotations

import re

from trunkline.conform.agentproc.agent.stage import Stage
from trunkline.conform.agentproc.agent.suite import in_both
from trunkline.conform.agentproc.agent.turns import told_or_answered, word
from trunkline.conform.kit import Broken, NotExercised
from trunkline.wires.agentproc.messages import TurnRequest


async def _new(stage: Stage, message: str) -> str:
    """A new conversation, and its id.

    Raises:
        NotExercised: the agent told none.
    """
    heard = await stage.answer(TurnRequest(message))
    if not heard.sessions:
        raise NotExercised("the agent keeps no session: it reported no id")
    return heard.sessions[-1]


@in_both("session.told", "MAY", "Session")
async def sessions_are_told(stage: Stage) -> None:
    """A new conversation gets a session id."""
    heard = await stage.answer(TurnRequest(stage.prompt("hello")))
    if not heard.sessions:
        raise Broken("no session id was reported")


@in_both("session.resume", "MUST", "Core")
async def sessions_are_resumed(stage: Stage) -> None:
    """A turn with the id of an earlier one is answered, even if the agent never reported an id."""
    heard = await stage.answer(TurnRequest(stage.prompt("hello")))
    session = heard.sessions[-1] if heard.sessions else word()
    again = await stage.answer(TurnRequest(stage.prompt("hello"), session_id=session))
    for later in again.sessions[-1:]:
        if later != session:
            await stage.answer(TurnRequest(stage.prompt("hello"), session_id=later))


async def _counted(stage: Stage, wanted: int, session: str) -> str:
    """The agent knows how many messages the conversation has; the id for the next one is returned."""
    heard = await stage.answer(TurnRequest(stage.prompt("count"), session_id=session))
    if re.findall(r"\d+", heard.text)[-1:] != [str(wanted)]:
        raise Broken(f"asked for the number of messages, which is {wanted}, the agent said {heard.text[:200]!a}")
    return heard.sessions[-1] if heard.sessions else session


@in_both("session.remembers", "SHOULD", "Session")
async def conversations_are_remembered(stage: Stage) -> None:
    """A turn with the id of an earlier one continues that conversation, and so does the turn after it."""
    session = await _new(stage, stage.prompt("hello"))
    await _counted(stage, 3, await _counted(stage, 2, session))


@in_both("session.fresh", "SHOULD", "Session")
async def new_sessions_are_new(stage: Stage) -> None:
    """Two new conversations have different ids and do not share their contents."""
    first = await _new(stage, stage.prompt("hello"))
    if await _counted(stage, 1, "") == first:
        raise Broken("two new conversations have the same session id")


@in_both("session.unknown", "SHOULD", "Session")
async def unknown_sessions_are_told(stage: Stage) -> None:
    """An unknown id leads to an answer, or to an error that says so, not to silence."""
    told_or_answered(await stage.take(TurnRequest(stage.prompt("hello"), session_id=word())), "an unknown session id")


@in_both("session.hostile", "SHOULD", "Session")
async def ids_are_no_paths(stage: Stage) -> None:
    """A session id is never used as a path or a flag."""
    outside = stage.workspace.parent / word()
    for session in (f"../{outside.name}", str(outside), "--conform-no-such-flag"):
        told_or_answered(
            await stage.take(TurnRequest(stage.prompt("hello"), session_id=session)), f"the id `{session}`"
        )
    if list(stage.workspace.parent.rglob(f"{outside.name}*")):
        raise Broken("a session id was used as a path")
