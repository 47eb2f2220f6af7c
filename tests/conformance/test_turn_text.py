"""One turn has one text, at whatever end it is read: a line, an answer as it is generated, and a line again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import click
import pytest

from tests.agents.helpers import MemoryJournal, play, request, text_of
from tests.support.host import Host
from tests.support.invoked import invoke
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served, served
from tests.wires.agentproc.test_serve import Bridge
from tests.wires.tryll import foreign_client
from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_events import Answered, AnswerPiece
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.agents.graph import yaml_graph
from trunkline.agents.graph.turn import MAX_REPEATED
from trunkline.agents.graph.yaml_graph import GraphFile
from trunkline.base.redact import Redactor
from trunkline.cli import graph_run, tryll_chat
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.agentproc.codec_auto import AutoReader
from trunkline.wires.agentproc.messages import Dialect
from trunkline.wires.agentproc.reply import GrowingReply
from trunkline.wires.agentproc.serve import AgentProcServer, Witness
from trunkline.wires.agentproc.serve_dialects import dialect_writer
from trunkline.wires.jsonstream.serve import JsonStreamServer
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.drive.sync import SyncTryll

GRAPH = """start: greet
default_model: mock
nodes:
  greet: {type: CannedResponse, inline_strings: [Well met.], default: nothing}
  nothing: {type: CannedResponse, inline_strings: [""], default: answer}
  answer: {type: Generate, stream: true, default: bye}
  bye: {type: CannedResponse, inline_strings: [Farewell.]}
"""
MESSAGE = "one two"
TEXT = "Well met.\nYou said: one two\nFarewell."


class Place:
    """A server that knows nothing of the graph yet, and the graph, as a file and as a value."""

    def __init__(self, server: Served, folder: Path) -> None:
        self.server = server
        self.file = folder / "talk.yaml"
        self.file.write_text(GRAPH)
        self.graph: GraphFile = yaml_graph.load(str(self.file))
        self.agent = TryllAgent(server.host, server.port, graph=self.graph.graph, model="mock")


async def frames(place: Place) -> str:
    """What a client shows that knows no more than the protocol document."""
    async with place.server.peer() as peer:
        made = await peer.ask(m.CreateAgentRequest(2, place.graph.graph, "mock"), m.CreateAgentResponse)
        peer.say(m.SendMessageRequest(3, made.agent_id, MESSAGE))
        return foreign_client.text_of((await peer.turn())[0])


async def result(place: Place) -> str:
    async with Tryll(port=place.server.port) as tryll:
        return (await (await tryll.create_agent(place.graph.graph, default_model="mock")).ask(MESSAGE)).text


async def pieces(place: Place) -> str:
    async with Tryll(port=place.server.port) as tryll:
        agent = await tryll.create_agent(place.graph.graph, default_model="mock")
        return "".join([piece async for piece in agent.stream(MESSAGE)])


async def waiting_client(place: Place) -> str:
    def ask() -> str:
        with SyncTryll(port=place.server.port) as tryll:
            return tryll.create_agent(place.graph.graph, default_model="mock").ask(MESSAGE).text

    return await asyncio.to_thread(ask)


async def history(place: Place) -> str:
    async with Tryll(port=place.server.port) as tryll:
        agent = await tryll.create_agent(place.graph.graph, default_model="mock")
        await agent.ask(MESSAGE)
        return (await agent.history())[-1].text


async def external(place: Place) -> str:
    conversation = await place.agent.open(request())
    events = await play(conversation, MESSAGE)
    await conversation.close()
    return text_of(events)


async def journal(place: Place) -> str:
    kept = MemoryJournal()
    conversation = await place.agent.open(request(journal=kept))
    await play(conversation, MESSAGE)
    await conversation.close()
    [record] = kept.records
    return str(record["tryll_exchange"][1])


async def talk(place: Place) -> str:
    said = []
    options = TalkOptions("mock", "mock", "mock", graph=place.graph)
    async with (
        await TryllTalk.open(place.server.host, place.server.port, options) as conversation,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await conversation.say(MESSAGE)
        while not isinstance(event := await conversation.next_event(), Answered):
            if isinstance(event, AnswerPiece):
                assert not event.anew
                said.append(event.text)
    return "".join(said)


def printed(made: click.Command, *arguments: str) -> str:
    """What a command prints."""
    ran = invoke(made, *arguments)
    assert ran.exit_code == 0, ran.output
    return ran.stdout.removesuffix("\n")


async def chat(place: Place) -> str:
    address = f"{place.server.host}:{place.server.port}"
    options = ("--engine", "mock", "--graph", str(place.file), "-p", MESSAGE)
    return await asyncio.to_thread(printed, tryll_chat.command, address, *options)


async def jsonstream(place: Place) -> str:
    session, host = await Session.open(place.agent, MemoryLog("s1"), Policy()), Host()
    host.server = server = JsonStreamServer(session, host)
    server.greet()
    host.message("m1", MESSAGE)
    await until(lambda: "m1" in host.ends)
    await server.close()
    await session.close()
    return "".join(line["text"] for line in host.lines if line["type"] == "text_delta")


async def agentproc(place: Place, dialect: Dialect, streaming: bool) -> str:
    bridge = Bridge()
    session = await Session.open(place.agent, MemoryLog("s1"), Policy(interactive=False), redact=Witness(Redactor(())))
    server = AgentProcServer(session, bridge, dialect_writer(dialect, "s1", streaming=streaming))
    server.begin(UserMessage(MESSAGE))
    assert await server.over == 0
    await session.close()
    reader, reply = AutoReader(), GrowingReply(streaming=streaming, max_chars=1000, suffix="")
    reply.take([*reader.feed(bridge.data), *reader.finish()])
    return "".join(reply.partials) + reply.text()


ENDS: dict[str, Callable[[Place], Awaitable[str]]] = {
    "frames": frames, "Turn.text": result, "pieces": pieces, "SyncTryll": waiting_client, "history": history,
    "agents/external": external, "journal": journal, "tryll talk": talk, "tryll chat": chat, "jsonstream": jsonstream,
    **{
        f"agentproc {dialect}, {'in pieces' if streaming else 'at once'}": partial(
            agentproc, dialect=dialect, streaming=streaming
        )
        for dialect in ("0.1", "0.4") for streaming in (True, False)
    },
}  # fmt: skip


def test_one_turn_has_one_text_at_every_end(tmp_path: Path) -> None:
    async def heard() -> dict[str, str]:
        async with served(tmp_path) as server:
            place = Place(server, tmp_path)
            return {end: await read(place) for end, read in ENDS.items()}

    # The commands below have a loop of their own, so this has one, too.
    assert asyncio.run(heard()) == dict.fromkeys(ENDS, TEXT)
    run = (graph_run.command, str(tmp_path / "talk.yaml"), "-m", MESSAGE)
    assert printed(*run) == TEXT
    assert json.loads(printed(*run, "--json"))["answer"] == TEXT


async def test_what_is_not_a_delta_holds_all_of_the_turns_answer_so_far(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.peer() as peer:
        graph = Place(server, tmp_path).graph.graph
        made = await peer.ask(m.CreateAgentRequest(2, graph, "mock"), m.CreateAgentResponse)
        peer.say(m.SendMessageRequest(3, made.agent_id, MESSAGE))
        answers, _ = await peer.turn()
    assert [(answer.text, answer.is_delta) for answer in answers] == [
        ("Well met.", False),
        ("Well met.", False),
        ("\nYou", True),
        (" said:", True),
        (" one", True),
        (" two", True),
        (TEXT, False),
    ]


@pytest.mark.parametrize("line", ["x" * 1000, ""], ids=["long", "empty"])
async def test_a_graph_that_goes_round_does_not_repeat_its_answer_without_end(tmp_path: Path, line: str) -> None:
    node = m.CannedResponseParams(inline_strings=(line,), default_exit="a")
    graph = m.GraphDescription((m.NodeDescription("a", node),), "a")
    async with served(tmp_path) as server, server.peer() as peer:
        made = await peer.ask(m.CreateAgentRequest(2, graph, "", max_steps_per_turn=1000), m.CreateAgentResponse)
        peer.say(m.SendMessageRequest(3, made.agent_id, "go"))
        answers, _ = await peer.turn()
    assert foreign_client.text_of(answers) == "\n".join([line] * 1000).strip("\n")
    assert sum(len(answer.text) for answer in answers) < MAX_REPEATED + 2 * 1000 * (len(line) + 1)
