"""The ledger says what MCP does with what is no event, when a client asks agents as tools."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitResult

from tests.support.ledger_cells import OTHERS, Scenes, flags_of
from tests.support.mcp_client import until
from tests.support.mcp_face import FaceKeeper
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import mcp_serve
from trunkline.wires.ledger import WIRES, Fate
from trunkline.wires.mcp import following
from trunkline.wires.mcp import serve as serving
from trunkline.wires.mcp.agents import AgentsOffer
from trunkline.wires.mcp.serve import mcp_server

MCP = WIRES["mcp"]
#: As the keeper's agents use a tool.
USE = "tool"

SCENES = Scenes["Host"]()


class Host:
    """A client, and in which forms something has crossed. `answer` is what its user says to every question."""

    def __init__(self, keeper: FaceKeeper) -> None:
        self.keeper = keeper
        self.seen: set[str] = set()
        self.asked = 0
        self.answer: dict[str, Any] | None = {"decision": "approve once"}
        self.progress: list[tuple[float, str | None]] = []
        self.client: Client

    async def elicit(self, context: Any, params: Any) -> ElicitResult:
        self.asked += 1
        self.seen.add("elicitation/create")
        return ElicitResult(action="accept" if self.answer else "decline", content=self.answer)

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.add("notifications/progress")
        self.progress.append((progress, message))

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        self.seen |= {"tools/call", tool}
        result = await self.client.call_tool(tool, arguments, progress_callback=self.hear)
        self.seen.add("result")
        return result

    async def ask(self, message: str, session: str = "s1") -> CallToolResult:
        return await self.call("ask_echo", message=message, session=session)

    def begun(self, message: str, session: str = "s1") -> asyncio.Task[CallToolResult]:
        return asyncio.create_task(self.ask(message, session))


def words(result: CallToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


async def ended(*tasks: asyncio.Task[CallToolResult]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@SCENES.of("message", "session id", "resume")
async def a_session(host: Host) -> Fate:
    for text in ("one", "two"):
        result = await host.ask(text)
        assert words(result) == f"You said: {text}"
        assert result.structured_content["session"] == "s1"
    uris = [str(each.uri) for each in (await host.client.list_resources()).resources]
    assert uris == ["trunkline://sessions/s1"]
    return "carried" if host.keeper.said("s1") == ["one", "two"] else "refused"


@SCENES.of("attachments", "images in", "images out", "speech in", "history")
async def text_alone(host: Host) -> Fate:
    """A tool takes words and a session, and gives words."""
    (tool,) = (tool for tool in (await host.client.list_tools()).tools if tool.name == "ask_echo")
    assert set(tool.input_schema["properties"]) == {"message", "session"}
    for block in (await host.call("ask_echo", message="x", files=["a.png"])).content:
        assert block.type == "text"
    return "refused"


@SCENES.of("usage in total")
async def used_so_far(host: Host) -> Fate:
    one, two = await host.ask("one"), await host.ask("two")
    assert one.structured_content["usage"] == two.structured_content["usage"]
    return "refused"


@SCENES.of("cancel")
async def a_cancel(host: Host) -> Fate:
    mine, other = host.begun("wait", "mine"), host.begun("wait", "other")
    await until(lambda: [session.turn for session, _, _ in host.keeper.held.values()] == [1, 1])
    await ended(mine)
    host.seen.add("notifications/cancelled")
    await until(lambda: not host.keeper.held["mine"][0].turn)
    assert host.keeper.held["other"][0].turn == 1
    await ended(other)
    return "carried"


@SCENES.of("busy")
async def two_messages(host: Host) -> Fate:
    first = host.begun("wait")
    await until(lambda: host.keeper.held and host.keeper.held["s1"][0].turn)
    second = host.begun("two")
    await until(lambda: len(host.progress) >= 2)
    await ended(first)
    assert words(await second) == "You said: two"
    return "carried"


@SCENES.of("faults", "outcome", "fatal start")
async def a_failure(host: Host) -> Fate:
    failed = await host.ask("fail")
    assert failed.is_error
    assert "The model is down. Try again later." in words(failed)
    assert "provider" not in str(failed)
    assert failed.structured_content["outcome"] == "error"
    assert (await host.ask("fine")).structured_content["outcome"] == "success"
    host.keeper.may_ask = False
    refused = await host.ask("no", "s2")
    assert (refused.is_error, words(refused)) == (True, "An observer may not do that.")
    return "degraded"


@SCENES.of("usage of a turn")
async def used(host: Host) -> Fate:
    usage = (await host.ask("one")).structured_content["usage"]
    return "carried" if usage == {"input_tokens": 10, "output_tokens": 5} else "degraded"


@SCENES.of("liveness")
async def silence(host: Host) -> Fate:
    assert following.ALIVE_SECONDS == 10
    with mock.patch.object(following, "ALIVE_SECONDS", 0.01):
        asking = host.begun("wait")
        await until(lambda: [message for _, message in host.progress].count("I wait.") > 1)
    assert (await host.client.list_tools()).tools
    await ended(asking)
    return "carried"


@SCENES.of("approve once", "approve always")
async def yes(host: Host) -> Fate:
    """A client that shows forms is asked. One that cannot, on its own, is not, and that is what is lost."""
    for decision, questions in (("approve once", 2), ("approve always", 1)):
        host.answer, host.asked = {"decision": decision}, 0
        for _ in range(2):
            assert "It ran." in words(await host.ask(USE, decision[-4:]))
        assert host.asked == questions
    async with Client(mcp_server(offer := AgentsOffer(), lambda _: serving.Client(host.keeper, "mute"))) as mute:
        denied = await mute.call_tool("ask_echo", {"message": USE, "session": "s9"})
    await offer.close()
    return "degraded" if "cannot be asked" in words(denied) else "carried"


@SCENES.of("deny")
async def no(host: Host) -> Fate:
    host.answer = {"decision": "deny", "reason": "not today"}
    assert words(await host.ask(USE)).endswith("It may not: not today")
    host.answer = None
    assert "It may not" in words(await host.ask(USE))
    return "carried"


@SCENES.of("modes", "allow-list", "workspace", "instructions", "model options", "MCP servers")
async def at_the_start(host: Host) -> Fate:
    """By flags of the server and files; a tool has no argument for it."""
    flags = {"--mode", "--allow", "--workspace", "--system-prompt", "--model", "--provider"}
    assert flags <= flags_of(mcp_serve.make_parser)
    (tool,) = (tool for tool in (await host.client.list_tools()).tools if tool.name == "ask_echo")
    assert set(tool.input_schema["properties"]) == {"message", "session"}
    await host.call("ask_echo", message=USE, session="s1", mode="yolo", allow=["Bash"])
    assert host.asked == 1
    assert host.keeper.held["s1"][0].mode == "default"
    return "degraded"


@SCENES.of("replay", "sequence numbers", "several watchers")
async def somebody_else(host: Host) -> Fate:
    """Reads a session, but is not told of news."""
    await host.ask("one")
    await host.ask(USE)
    read = await host.call("read_session", session="s1")
    turns = read.structured_content["turns"]
    assert [turn["number"] for turn in turns] == [1, 2]
    assert [turn["message"] for turn in turns] == ["one", USE]
    assert "Bash" in str(turns)
    assert '"ls"' not in str(turns)
    assert [number for number, _ in host.progress] == sorted(number for number, _ in host.progress)
    resource = await host.client.read_resource("trunkline://sessions/s1")
    host.seen.add("resources/read")
    assert "You said: one" in str(resource.contents)
    capabilities = host.client.server_capabilities
    assert not (capabilities.resources and capabilities.resources.subscribe)
    return "degraded"


@SCENES.of("capabilities")
async def capabilities(host: Host) -> Fate:
    (tool,) = (tool for tool in (await host.client.list_tools()).tools if tool.name == "ask_echo")
    host.seen.add("tools/list")
    return "degraded" if "It is called echo." in (tool.description or "") else "refused"


#: What a scene that is about several of them finds of each.
FOUND = {"outcome": "carried", "fatal start": "carried"}


@pytest.mark.parametrize("concept", OTHERS)
async def test_the_protocol_does_with_what_is_no_event_what_the_ledger_says(concept: str) -> None:
    host = Host(FaceKeeper())
    offer = AgentsOffer()
    server = mcp_server(offer, lambda _: serving.Client(host.keeper, "tester"))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with Client(server, mode="legacy", elicitation_callback=host.elicit) as host.client:
                found = await SCENES.by_concept[concept](host)
    finally:
        await offer.close()
        await host.keeper.close()
    assert FOUND.get(concept, found) == MCP[concept].fate
    assert set(MCP[concept].lines) <= host.seen
