"""Checks of sessions: a new one, its directory, and what is asked of one that there is not."""

from __future__ import annotations

from trunkline.conform.acp.prompts import FILES
from trunkline.conform.acp.scenes import begin, finish, new_params, new_session, opened, ready, refused, succeeded, word
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import INVALID_PARAMS
from trunkline.conform.expect import short
from trunkline.conform.kit import Broken, NotApplicable


@SUITE.check("acp.session.new", "MUST", "Session Setup")
async def sessions_have_ids(stage: Stage) -> None:
    """`session/new` is answered with a `sessionId`, which is a string."""
    agent = await ready(stage)
    reply = succeeded(await agent.ask("session/new", new_params(stage), stage.target.timeout))
    found = reply.result.get("sessionId")
    if not isinstance(found, str) or not found:
        raise Broken(f"{reply.asked} was answered with {reply.shown}, not with a `sessionId`")


@SUITE.check("acp.session.unique", "MUST", "Session Setup")
async def ids_are_unique(stage: Stage) -> None:
    """Every session has an id of its own."""
    agent = await ready(stage)
    found = [await new_session(stage, agent) for _ in range(3)]
    if len(set(found)) < len(found):
        raise Broken(f"three sessions have the ids {short(found)}")


@SUITE.check("acp.session.relative", "SHOULD", "Session Setup")
async def directories_are_absolute(stage: Stage) -> None:
    """A `cwd` that is not absolute is refused with the error -32602."""
    agent = await ready(stage)
    for cwd in (".", "conform/relative", ""):
        reply = await agent.ask("session/new", {"cwd": cwd, "mcpServers": []}, stage.target.patience)
        refused(reply, "(not absolute)", INVALID_PARAMS)


@SUITE.check("acp.session.cwd", "MUST", "Session Setup")
async def sessions_have_their_directory(stage: Stage) -> None:
    """The session's `cwd` is used, wherever the agent itself was started."""
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    agent = await ready(stage)
    reply = await agent.ask("session/new", {"cwd": str(elsewhere), "mcpServers": []}, stage.target.timeout)
    session = str(succeeded(reply).result.get("sessionId"))
    await finish(stage, agent, begin(agent, session, stage.prompt("write")))
    name = FILES["write"]
    if stage.file("write").exists():
        raise Broken(f"`{name}` was written where the agent was started, not in the session's `cwd`")
    if not (elsewhere / name).exists():
        raise NotApplicable(f"the agent wrote no `{name}`; the prompt `write` must make it do so")


@SUITE.check("acp.session.unknown", "SHOULD", "Session Setup")
async def unknown_sessions_are_refused(stage: Stage) -> None:
    """A prompt for a session that does not exist is refused."""
    agent = await ready(stage)
    reply = await agent.answer(begin(agent, word(), stage.prompt("hello")), stage.target.timeout)
    refused(reply, "(no such session)")


@SUITE.check("acp.session.parallel", "SHOULD", "Session Setup")
async def sessions_do_not_wait(stage: Stage) -> None:
    """Prompts in two sessions at once are both answered, each with updates of its own session."""
    agent, first = await opened(stage)
    second = await new_session(stage, agent)
    words = {first: word(), second: word()}
    turns = {session: begin(agent, session, stage.prompt("repeat", text=words[session])) for session in words}
    for session, turn in turns.items():
        other = words[second if session == first else first]
        reply = await finish(stage, agent, turn)
        if other in reply.text(session):
            raise Broken(f"the answer to `{other}` came in the session of `{words[session]}`")
        if not reply.text(session):
            raise Broken(f"{reply.asked} got no text in its own session")


@SUITE.check("acp.session.mcp", "SHOULD", "Session Setup")
async def mcp_servers_may_be_missing(stage: Stage) -> None:
    """`session/new` with an MCP server that cannot be started is answered all the same, or refused; never silence."""
    agent = await ready(stage)
    server = {"name": "conform", "command": str(stage.folder / "no-such-program"), "args": [], "env": []}
    await agent.ask("session/new", {**new_params(stage), "mcpServers": [server]}, stage.target.timeout)
