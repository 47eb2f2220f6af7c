"""Checks of agents: their ids, whose they are, and how they end."""

from __future__ import annotations

from trunkline.conform.expect import expect, same
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well
from trunkline.wires.tryll import messages as m

#: Agents that one session has at a time, at least.
MANY = 50


@check("tryll.agent.create", "MUST", "Session lifecycle")
async def create(stage: Stage) -> None:
    """`CreateAgentRequest` is answered with `CreateAgentResponse` and a nonzero id, a different one each time."""
    link = await stage.session()
    ids = [await link.agent(canned("say", LINE)) for _ in range(3)]
    expect(all(ids) and len(set(ids)) == len(ids), f"the ids of three agents are {ids}")


@check("tryll.agent.destroy", "MUST", "Session lifecycle")
async def destroy(stage: Stage) -> None:
    """`DestroyAgentRequest` is answered with `Ack`; afterwards the id is refused with 3002."""
    link = await stage.session()
    agent, other = await link.agent(canned("say", LINE)), await link.agent(canned("say", LINE))
    await link.ask(m.DestroyAgentRequest(0, agent), m.Ack)
    for request in (m.SendMessageRequest(0, agent, "hello"), m.DestroyAgentRequest(0, agent)):
        await link.refused(request, 3002, why="for a destroyed agent")
    same("the answer of another agent", ended_well(await link.say(other, "hello")).text, LINE)


@check("tryll.agent.unknown", "MUST", "Error responses")
async def unknown(stage: Stage) -> None:
    """An id that was never issued is refused with 3001."""
    link = await stage.session()
    params = m.CannedResponseParams(None, (LINE,))
    for agent in (0, NOBODY, 2**64 - 1):
        for request in (
            m.SendMessageRequest(0, agent, "hello"),
            m.DestroyAgentRequest(0, agent),
            m.ChangeAgentParamRequest(0, agent, "say", params),
        ):
            await link.refused(request, 3001, why=f"for the agent {agent}, which never existed")


@check("tryll.agent.others", "MUST", "Session lifecycle")
async def others(stage: Stage) -> None:
    """An agent of another session cannot be reached: 3001, and it is not affected."""
    one, other = await stage.session(), await stage.session()
    agent = await one.agent(canned("say", LINE))
    for request in (
        m.SendMessageRequest(0, agent, "hello"),
        m.DestroyAgentRequest(0, agent),
        m.ChangeAgentParamRequest(0, agent, "say", m.CannedResponseParams(None, (LINE,))),
    ):
        await other.refused(request, 3001, why="for an agent of another session")
    same("the answer in its own session", ended_well(await one.say(agent, "hello")).text, LINE)


@check("tryll.agent.gone", "MUST", "Transport")
async def gone(stage: Stage) -> None:
    """Closing the connection destroys the session's agents: they cannot be found later."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    await link.half_close()
    await link.ended()
    again = await stage.session()
    await again.refused(m.SendMessageRequest(0, agent, "hello"), 3001, why="for an agent of a session that has ended")


@check("tryll.agent.many", "SHOULD", "Session lifecycle")
async def many(stage: Stage) -> None:
    """A session can have many agents, and each gives its own answers."""
    link = await stage.session()
    agents = {await link.agent(canned("say", f"I am {number}.")): number for number in range(MANY)}
    await link.send(*(m.SendMessageRequest(5000 + number, agent, "who?") for agent, number in agents.items()))
    for agent, number in agents.items():
        turn = ended_well(await link.turn(agent, 5000 + number))
        same("an agent's answer", (turn.text, turn.complete.request_id), (f"I am {number}.", 5000 + number))
