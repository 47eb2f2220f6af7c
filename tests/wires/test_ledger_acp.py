"""The ledger says what a client of the Agent Client Protocol is told of each event."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.acp_world import acp_world
from tests.wires.test_ledger import SAMPLES
from trunkline.core import events as core
from trunkline.wires.acp import messages
from trunkline.wires.acp.messages_start import ClientCapabilities
from trunkline.wires.acp.peer import AcpPeer
from trunkline.wires.acp.serve_session import SeatedSession
from trunkline.wires.ledger import CONCEPTS, WIRES

ACP = WIRES["acp"]

#: What is told of a call whose request came before.
OF_A_CALL = ("ToolAnswered", "ToolStarted", "ToolFinished", "ToolCancelled", "Progress")
METHODS = {"session/request_permission", "$/cancel_request"}


async def lines_of(concept: str, folder: Path) -> set[str]:
    """In which messages a client hears of an event."""
    async with acp_world(folder, shared=True) as world:
        seat = await world.keeper.open("fake")
        peer = AcpPeer(world.client, world.client.server, requests=messages.AGENT_REQUESTS, notifications={})
        session = SeatedSession(peer, seat, ClientCapabilities(), is_shared=True, is_local=True)

        def show(*events: core.Event) -> None:
            session.show([core.Envelope(session.id, 1, 2, 0.0, event) for event in events])

        prompt = session.prompt()
        if concept in OF_A_CALL:
            show(SAMPLES["ToolRequested"])
            await world.client.settle()
            if concept != "ToolAnswered":
                show(SAMPLES["ToolAnswered"])
                await world.client.settle()
            world.client.take()
        if concept in ("Failed", "TurnEnded"):
            show(core.TurnStarted(core.UserMessage("hi", id=prompt.message_id)))
        if concept == "Extension":
            # The kinds that are told of; all others are lost.
            show(core.Extension(core.CONTEXT, {"used": 1, "size": 2}))
        show(SAMPLES[concept])
        if concept == "Failed":
            show(core.TurnEnded("error"))
            assert prompt.ended.result().failure == SAMPLES[concept]
        await world.client.settle()
        updates = {update["sessionUpdate"] for update in world.client.updates()}
        asked = {line["method"] for line in world.client.lines if line.get("method") in METHODS}
        answered = {"session/prompt"} if prompt.ended.done() else set[str]()
        await session.leave()
        return updates | asked | answered


@pytest.mark.parametrize("concept", [concept.name for concept in CONCEPTS if concept.group == "events"])
async def test_a_client_is_told_of_each_event_what_the_ledger_says(concept: str, tmp_path: Path) -> None:
    found = ACP[concept]
    assert await lines_of(concept, tmp_path) == set(found.lines)
    assert (not found.lines) == (found.fate == "refused")


def test_every_method_that_is_served_is_in_the_ledger_or_manages_sessions() -> None:
    named = {line for cell in ACP.values() for line in cell.lines}
    managing = {"authenticate", "session/list", "session/fork", "session/close", "session/delete"}
    assert set(messages.AGENT_REQUESTS) - managing <= named
