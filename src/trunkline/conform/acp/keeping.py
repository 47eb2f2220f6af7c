"""Checks of sessions that are kept: loaded, resumed, listed, forked, closed, deleted. All of that is optional."""

from __future__ import annotations

import re
from typing import Any

from trunkline.conform.acp.scenes import (
    begin,
    needs,
    new_params,
    new_session,
    opened,
    ready,
    refused,
    say,
    succeeded,
    under_way,
    word,
)  # fmt: skip
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpSubject
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import CHUNKS, MESSAGE_CHUNK, USER_CHUNK
from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Broken, NotApplicable

#: Pages of a list that are read at most, in search of one session.
_MOST_PAGES = 50


async def _talked(stage: Stage, *offer: str) -> tuple[str, str, str]:
    """A session in which something was said, with an agent that has left: its id, what was said, and the answer."""
    agent = await ready(stage)
    needs(agent, *offer)
    session = await new_session(stage, agent)
    mark = word()
    reply = await say(stage, agent, session, "repeat", text=mark)
    agent.close_input()
    await agent.process.ended(stage.target.patience)
    await agent.process.close()
    return session, mark, reply.text(session)


def _again(stage: Stage, session: str) -> dict[str, Any]:
    return {"sessionId": session, **new_params(stage)}


async def _goes_on(stage: Stage, method: str, *offer: str) -> None:
    """A session that another process is given by that method takes the next prompt."""
    session, _, _ = await _talked(stage, *offer)
    agent = await ready(stage)
    succeeded(await agent.ask(method, _again(stage, session), stage.target.timeout))
    reply = await say(stage, agent, session, "hello")
    if not reply.text(session):
        raise Broken(f"after `{method}`, {reply.asked} got no text")


async def _unknown(stage: Stage, method: str, *offer: str) -> None:
    """That method refuses a session that does not exist."""
    agent = await ready(stage)
    needs(agent, *offer)
    refused(await agent.ask(method, _again(stage, word()), stage.target.patience), "(no such session)")


@SUITE.check("acp.load.replays", "MUST", "Session Setup")
async def loading_replays(stage: Stage) -> None:
    """`session/load` replays the whole conversation, both sides of it, before it is answered."""
    session, mark, said = await _talked(stage, "loadSession")
    agent = await ready(stage)
    reply = succeeded(await agent.ask("session/load", _again(stage, session), stage.target.timeout))
    asked, answered = reply.text(session, USER_CHUNK), reply.text(session, MESSAGE_CHUNK)
    if mark not in asked:
        raise Broken(f"{reply.asked} told {short(asked)} of what the user had said, without {short(mark)}")
    if said not in answered:
        raise Broken(f"{reply.asked} told {short(answered)} of what the agent had said, which was {short(said)}")


@SUITE.check("acp.load.goes-on", "MUST", "Session Setup")
async def loaded_sessions_go_on(stage: Stage) -> None:
    """A session that was loaded takes the next prompt."""
    await _goes_on(stage, "session/load", "loadSession")


@SUITE.check("acp.load.unknown", "MUST", "Session Setup")
async def unknown_sessions_cannot_be_loaded(stage: Stage) -> None:
    """`session/load` of a session that does not exist is refused."""
    await _unknown(stage, "session/load", "loadSession")


@SUITE.check("acp.resume.goes-on", "MUST", "Session Setup")
async def resumed_sessions_go_on(stage: Stage) -> None:
    """A session that was resumed takes the next prompt."""
    await _goes_on(stage, "session/resume", "sessionCapabilities", "resume")


@SUITE.check("acp.resume.silent", "MUST", "Session Setup")
async def resuming_replays_nothing(stage: Stage) -> None:
    """`session/resume` does not replay the conversation."""
    session, _, _ = await _talked(stage, "sessionCapabilities", "resume")
    agent = await ready(stage)
    reply = succeeded(await agent.ask("session/resume", _again(stage, session), stage.target.timeout))
    if told := reply.updates(session, *CHUNKS):
        raise Broken(f"{reply.asked} replayed {short(told[0])}, where nothing is to be replayed")


@SUITE.check("acp.resume.unknown", "SHOULD", "Session Setup")
async def unknown_sessions_cannot_be_resumed(stage: Stage) -> None:
    """`session/resume` of a session that does not exist is refused."""
    await _unknown(stage, "session/resume", "sessionCapabilities", "resume")


async def _listed(stage: Stage, agent: AcpSubject, wanted: str = "", **params: str) -> list[dict[str, Any]]:
    """The sessions in the list, page by page, until the wanted one is there."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        reply = succeeded(await agent.ask("session/list", {**params, **cursor}, stage.target.timeout))
        sessions = reply.result.get("sessions")
        if not isinstance(sessions, list) or not all(isinstance(each, dict) for each in sessions):
            raise Broken(f"{reply.asked} was answered with {reply.shown}, not with a list of `sessions`")
        found += sessions
        following = reply.result.get("nextCursor")
        if not following or any(each.get("sessionId") == wanted for each in sessions):
            break
        cursor = {"cursor": str(following)}
    return found


async def _lister(stage: Stage) -> tuple[AcpSubject, str]:
    """An agent that lists its sessions, and a session in which something was said."""
    agent = await ready(stage)
    needs(agent, "sessionCapabilities", "list")
    session = await new_session(stage, agent)
    await say(stage, agent, session, "hello")
    return agent, session


@SUITE.check("acp.list.shape", "MUST", "Session List")
async def lists_have_a_shape(stage: Stage) -> None:
    """`session/list` is answered with `sessions`, each with a `sessionId` and an absolute `cwd`."""
    agent, _ = await _lister(stage)
    for each in await _listed(stage, agent):
        cwd = each.get("cwd")
        fine = isinstance(each.get("sessionId"), str) and isinstance(cwd, str) and cwd.startswith(("/", "\\"))
        expect(fine or bool(re.match("[A-Za-z]:", str(cwd))), f"the session {short(each)} in the list lacks something")
        for name in ("title", "updatedAt"):
            value = each.get(name)
            expect(value is None or isinstance(value, str), f"the session {short(each)} has no proper `{name}`")


@SUITE.check("acp.list.has", "SHOULD", "Session List")
async def sessions_are_listed(stage: Stage) -> None:
    """A session in which something was said is in the list."""
    agent, session = await _lister(stage)
    found = [each.get("sessionId") for each in await _listed(stage, agent, session)]
    expect(session in found, f"`session/list` told of {short(found)}, without {short(session)}")


@SUITE.check("acp.list.cwd", "MUST", "Session List")
async def lists_can_be_narrowed(stage: Stage) -> None:
    """With a `cwd`, only sessions of that directory are listed; where there are none, the list is empty."""
    agent, _ = await _lister(stage)
    elsewhere = str(stage.folder / "no-sessions-here")
    found = await _listed(stage, agent, cwd=elsewhere)
    expect(not found, f"`session/list` of a directory without sessions told of {short(found)}")


@SUITE.check("acp.list.cursor", "SHOULD", "Session List")
async def bad_cursors_are_refused(stage: Stage) -> None:
    """A `cursor` that the agent did not give is refused."""
    agent = await ready(stage)
    needs(agent, "sessionCapabilities", "list")
    reply = await agent.ask("session/list", {"cursor": "conform no such cursor"}, stage.target.patience)
    refused(reply, "(not a cursor of the agent's)")


@SUITE.check("acp.close.cancels", "MUST", "Session Setup")
async def closing_ends_the_turn(stage: Stage) -> None:
    """`session/close` ends the turn in progress as if it were cancelled."""
    agent, session = await opened(stage)
    needs(agent, "sessionCapabilities", "close")
    turn = await under_way(stage, agent, session)
    succeeded(await agent.ask("session/close", {"sessionId": session}, stage.target.timeout))
    reply = await agent.answer(turn, stage.target.timeout)
    if reply.error is None and reply.result.get("stopReason") != "cancelled":
        raise Broken(f"{reply.asked} was answered after `session/close` with {reply.shown}, not with `cancelled`")


@SUITE.check("acp.close.gone", "MUST", "Session Setup")
async def closed_sessions_take_no_prompt(stage: Stage) -> None:
    """A session that was closed takes no prompt."""
    agent, session = await opened(stage)
    needs(agent, "sessionCapabilities", "close")
    succeeded(await agent.ask("session/close", {"sessionId": session}, stage.target.timeout))
    reply = await agent.answer(begin(agent, session, stage.prompt("hello")), stage.target.timeout)
    refused(reply, "(closed before)")


@SUITE.check("acp.close.unknown", "SHOULD", "Session Setup")
async def unknown_sessions_cannot_be_closed(stage: Stage) -> None:
    """`session/close` of a session that does not exist is refused."""
    agent = await ready(stage)
    needs(agent, "sessionCapabilities", "close")
    refused(await agent.ask("session/close", {"sessionId": word()}, stage.target.patience), "(no such session)")


@SUITE.check("acp.fork.new", "MUST", "Session Fork")
async def forks_are_new(stage: Stage) -> None:
    """`session/fork` gives a new session with an id of its own; both take prompts."""
    agent, session = await opened(stage)
    needs(agent, "sessionCapabilities", "fork")
    await say(stage, agent, session, "hello")
    reply = succeeded(await agent.ask("session/fork", _again(stage, session), stage.target.timeout))
    fork = reply.result.get("sessionId")
    if not isinstance(fork, str) or not fork or fork == session:
        raise Broken(f"{reply.asked} was answered with {reply.shown}, not with a new `sessionId`")
    for each in (session, fork):
        if not (await say(stage, agent, each, "hello")).text(each):
            raise Broken(f"after a fork, the session {short(each)} gave no text")


@SUITE.check("acp.fork.remembers", "MUST", "Session Fork")
async def forks_remember(stage: Stage) -> None:
    """A fork knows what was said before it, and the two know nothing of each other from then on."""
    agent, session = await opened(stage)
    needs(agent, "sessionCapabilities", "fork")
    await say(stage, agent, session, "hello")
    reply = succeeded(await agent.ask("session/fork", _again(stage, session), stage.target.timeout))
    for each in (session, str(reply.result.get("sessionId"))):
        counted = re.findall(r"\d+", (await say(stage, agent, each, "count")).text(each))
        if not counted:
            raise NotApplicable("the agent does not count; the prompt `count` must make it tell how many prompts came")
        expect(
            counted[-1] == "2", f"after one prompt and a fork, the session {short(each)} counts {counted[-1]}, not 2"
        )


@SUITE.check("acp.delete.gone", "MUST", "Session Delete")
async def deleted_sessions_are_not_listed(stage: Stage) -> None:
    """A session that was deleted is not in the list any more."""
    agent = await ready(stage)
    needs(agent, "sessionCapabilities", "delete")
    needs(agent, "sessionCapabilities", "list")
    session = await new_session(stage, agent)
    await say(stage, agent, session, "hello")
    succeeded(await agent.ask("session/delete", {"sessionId": session}, stage.target.timeout))
    found = [each.get("sessionId") for each in await _listed(stage, agent, session)]
    expect(session not in found, f"`session/list` tells of {short(session)}, which was deleted")
