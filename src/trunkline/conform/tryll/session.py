"""Checks of sessions: how they begin, what they need, and how they end."""

from __future__ import annotations

from trunkline.conform.expect import expect, same
from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.tryll.link import END_SECONDS, shown
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well, usable
from trunkline.wires.tryll import messages as m

#: Ids that a server must not take for others: none, one, and the largest.
REQUEST_IDS = (0, 1, 2**63, 2**64 - 1)
#: Characters of a long message, and of a long answer: with all around them they fit into a frame.
LONG_CHARS = 1_000_000


@check("tryll.session.ready", "MUST", "Session lifecycle")
async def ready(stage: Stage) -> None:
    """The first frame, before the client has sent anything, is `SessionReady` with version 2 and a session id."""
    link = await stage.greeted()
    if link.ready is not None:
        same("the protocol version", link.ready.protocol_version, m.PROTOCOL_VERSION)
        expect(link.ready.session_id != 0, "the session id is 0")


@check("tryll.session.ids", "MUST", "Session lifecycle")
async def ids(stage: Stage) -> None:
    """Each connection is its own session, with its own id."""
    found = [(await stage.greeted()).ready for _ in range(3)]
    told = [each.session_id for each in found if each is not None]
    expect(len(set(told)) == len(told), f"the ids of three sessions are {told}")


@check("tryll.session.configure", "MUST", "Session lifecycle")
async def configure(stage: Stage) -> None:
    """`ConfigureSessionRequest` is answered with `ConfigureSessionResponse`."""
    await usable(await stage.session(game_name="conform"), "configuring")


@check("tryll.session.unconfigured", "SHOULD", "Session lifecycle")
async def unconfigured(stage: Stage) -> None:
    """Before the session is configured, agents and storages are refused with 2002; afterwards they can be created."""
    link = await stage.greeted()
    graph = m.GraphDescription((canned("say", LINE),), "say")
    for request in (
        m.CreateAgentRequest(0, graph),
        m.CreateStringStorageRequest(0, "lines", ("a",)),
        m.CreateEmbeddedStringStorageRequest(0, "lore", strings=("a",), embedding_model="any"),
    ):
        await link.refused(request, 2002, why="before the session was configured")
    await link.ask(stage.configure(), m.ConfigureSessionResponse)
    await link.ask(m.CreateAgentRequest(0, graph), m.CreateAgentResponse)


@check("tryll.session.request-ids", "MUST", "Session lifecycle")
async def request_ids(stage: Stage) -> None:
    """A response, or the error in its place, repeats the request id, including 0 and the largest."""
    link = await stage.session()
    for request_id in REQUEST_IDS:
        await link.send(m.ListModelsRequest(request_id))
        found = await link.first("ListModelsResponse")
        while isinstance(found, m.ListModelsResponse) and found.more:
            found = await link.first("ListModelsResponse")
        same(f"what answers {request_id}", (type(found).__name__, getattr(found, "request_id", None)),
             ("ListModelsResponse", request_id))  # fmt: skip
        await link.send(m.DestroyAgentRequest(request_id, NOBODY))
        found = await link.first("ErrorResponse")
        same(f"what refuses {request_id}", (type(found).__name__, getattr(found, "request_id", None)),
             ("ErrorResponse", request_id))  # fmt: skip


@check("tryll.session.version", "MAY", "Additions")
async def version(stage: Stage) -> None:
    """A client with a version other than 2 is refused with 5004; one with version 2, or without one, is not."""
    for wrong in (1, 3, 2**32 - 1):
        link = await stage.greeted()
        await link.refused(stage.configure(protocol_version=wrong), 5004, why=f"with the version {wrong}")
    for right in (0, m.PROTOCOL_VERSION):
        await stage.session(protocol_version=right)


@check("tryll.session.again", "SHOULD", "Details")
async def again(stage: Stage) -> None:
    """A session can be configured again, and keeps what it has."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    await link.ask(stage.configure(game_name="another"), m.ConfigureSessionResponse)
    same("the answer afterwards", ended_well(await link.say(agent, "hello")).text, LINE)


@check("tryll.session.order", "SHOULD", "Details")
async def order(stage: Stage) -> None:
    """Requests sent together are handled in order: an agent finds the storage created before it."""
    link = await stage.greeted()
    graph = m.GraphDescription((canned("say", storage="lines"),), "say")
    await link.send(
        stage.configure(request_id=1),
        m.CreateStringStorageRequest(2, "lines", (LINE,)),
        m.CreateAgentRequest(3, graph),
        m.DestroyStringStorageRequest(4, "lines"),
    )
    found = {number: await link.answer(number, f"request {number}") for number in (1, 2, 3, 4)}
    made = found[3]
    if not isinstance(made, m.CreateAgentResponse) or not isinstance(found[4], m.Ack):
        raise Broken(f"the agent got {shown(made)}, and the destruction of its storage got {shown(found[4])}")
    same("the answer", ended_well(await link.say(made.agent_id, "hello")).text, LINE)


@check("tryll.session.scope", "MUST", "String storage")
async def scope(stage: Stage) -> None:
    """Storages and agents belong to their session: another session can use the same names, and does not see them."""
    one, other = await stage.session(), await stage.session()
    await one.ask(m.CreateStringStorageRequest(0, "lines", ("one",)), m.CreateStringStorageResponse)
    await other.ask(m.CreateStringStorageRequest(0, "lines", ("other",)), m.CreateStringStorageResponse)
    for link, line in ((one, "one"), (other, "other")):
        agent = await link.agent(canned("say", storage="lines"))
        same("the line", ended_well(await link.say(agent, "hello")).text, line)
    await one.ask(m.DestroyStringStorageRequest(0, "lines"), m.Ack)
    agent = await other.agent(canned("say", storage="lines"))
    same("the line", ended_well(await other.say(agent, "hello")).text, "other")


@check("tryll.session.half-close", "SHOULD", "Session lifecycle")
async def half_close(stage: Stage) -> None:
    """When the client closes its side of the connection, the server closes within 5 s, without cutting a frame."""
    link = await stage.session()
    agent = await link.agent(canned("say", "x" * LONG_CHARS))
    await link.send(m.SendMessageRequest(7, agent, "hello"), m.ListModelsRequest(8))
    await link.half_close()
    await link.ended(END_SECONDS)
    untouched = await stage.greeted()
    await untouched.half_close()
    await untouched.ended(END_SECONDS)


@check("tryll.session.half-close-turn", "SHOULD", "Session lifecycle", "model")
async def half_close_turn(stage: Stage) -> None:
    """The same during a turn: the server closes within 5 s, without cutting a frame."""
    link = await stage.model_session()
    agent = await stage.slow(link)
    await link.send(m.SendMessageRequest(0, agent, stage.chatter(600)))
    await link.take(lambda message: isinstance(message, m.AnswerText), "text of the answer")
    await link.half_close()
    await link.ended(END_SECONDS)


@check("tryll.session.vanished", "SHOULD", "Transport", "model")
async def vanished(stage: Stage) -> None:
    """Clients that disappear during a turn do not affect others."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    for _ in range(5):
        doomed = await stage.model_session()
        slow = await stage.slow(doomed)
        await doomed.send(m.SendMessageRequest(0, slow, stage.chatter(400)))
        await doomed.take(lambda message: isinstance(message, m.AnswerText), "text of the answer")
        doomed.reset()
        same("the answer to another client", ended_well(await link.say(agent, "hello")).text, LINE)


@check("tryll.session.engines", "SHOULD", "Details")
async def engines(stage: Stage) -> None:
    """An engine that is not in the schema is refused, and the session continues."""
    link = await stage.session()
    for kind in ("inference_engine", "stt_engine", "tts_engine", "embedding_engine"):
        await link.refused(stage.configure(**{kind: 200}), 2000, 3000, 5000, 6000, why=f"with {kind} 200")
    await usable(link, "that")


@check("tryll.session.debug", "MAY", "Details")
async def debug(stage: Stage) -> None:
    """A debug command is answered, or refused with 5005."""
    link = await stage.session()
    request = m.DebugCommandRequest(link.next_id(), "ping")
    await link.send(request)
    found = await link.answer(request.request_id, "DebugCommandRequest")
    if isinstance(found, m.ErrorResponse) and found.code == 5002:
        raise NotExercised("this server does not support debug commands")
    expect(
        isinstance(found, m.DebugCommandResponse) or (isinstance(found, m.ErrorResponse) and found.code == 5005),
        f"the answer is {shown(found)}",
    )
