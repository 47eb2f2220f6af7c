"""The Tryll client and the Tryll server, with each other."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.support.certificates import own_certificate, showing
from tests.support.loop import until
from tests.support.tryll_served import Served, echo, served
from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.drive import Reconnect, Tryll
from trunkline.wires.tryll.errors import TryllError

QUICK = Reconnect(attempts=3, first_seconds=0.01)


async def test_turns_changes_and_histories(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        agent = await tryll.create_agent(echo(), default_model="mock", diagnostics=True)
        turn = await agent.ask("hello world")
        assert turn.text == "You said: hello world"
        assert turn.debug["nodes"][0]["name"] == "say"
        assert [entry.role for entry in await agent.history()] == ["user", "assistant"]
        await agent.restore([m.HistoryEntry("user", "a"), m.HistoryEntry("assistant", "b")])
        assert [entry.text for entry in await agent.history()] == ["a", "b"]
        await agent.change_some("say", system_prompt="Be brief.")
        with pytest.raises(TryllError) as structural:
            await agent.change_some("say", model_name="another")
        assert structural.value.code == 3006
        assert (await tryll.health()).agents == 1
        assert {model.name for model in await tryll.list_models()} >= {"smollm2-135m", "minilm-l6"}


async def test_cancelled_destroyed_and_parallel_turns(tmp_path: Path) -> None:
    words = " ".join("word" for _ in range(200))
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        slow, quick = [await tryll.create_agent(echo(), default_model=name) for name in ("mock-slow", "mock")]
        async with slow.stream(words) as reply:
            await anext(reply)
            assert (await quick.ask("now")).text == "You said: now"
            await slow.cancel()
            assert (await reply.result()).cancelled
        async with slow.stream(words) as reply:
            await anext(reply)
        assert (await slow.ask("then")).text == "You said: then"
        async with slow.stream(words) as reply:
            await anext(reply)
            await slow.destroy()
            assert (await reply.result()).cancelled


async def test_a_tool_call_is_heard(tmp_path: Path) -> None:
    params = m.ToolCallParams(tools=(m.ToolDefinition("open_door", "Opens."),), notify_client=True)
    graph = m.GraphDescription((m.NodeDescription("tools", params),), "tools")
    heard: list[str] = []
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        agent = await tryll.create_agent(graph, default_model="mock")
        agent.on_tool_call(lambda call: heard.append(call.name))
        await agent.ask("please open_door now")
    assert heard == ["open_door"]


async def test_a_conversation_goes_on_after_the_connection_was_lost(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(port=server.port, reconnect=QUICK) as tryll:
        await tryll.create_storage("lines", ["No."])
        canned = m.CannedResponseParams(string_storage="lines")
        graph = m.GraphDescription((m.NodeDescription("refuse", canned),), "refuse")
        agent = await tryll.create_agent(graph)
        assert (await agent.ask("may I?")).text == "No."
        before = tryll.session_id
        await _drop(server, tryll)
        assert (await agent.ask("and now?")).text == "No."
        assert tryll.session_id != before
        assert [entry.text for entry in await agent.history()] == ["may I?", "No.", "and now?", "No."]


async def test_an_agent_is_made_again_with_the_storages_and_the_engine_that_it_was_made_with(tmp_path: Path) -> None:
    def saying(storage: str) -> m.GraphDescription:
        node = m.NodeDescription("say", m.CannedResponseParams(string_storage=storage))
        return m.GraphDescription((node,), "say")

    async with served(tmp_path) as server, Tryll(port=server.port, reconnect=QUICK) as tryll:
        await tryll.create_storage("lines", ["first"])
        one = await tryll.create_agent(saying("lines"))
        await tryll.destroy_storage("lines")
        await tryll.create_storage("lines", ["second"])
        two = await tryll.create_agent(saying("lines"))
        await tryll.create_storage("others", ["changed"])
        await two.change_some("say", string_storage="others")
        await tryll.destroy_storage("others")
        mock = await tryll.create_agent(echo(), default_model="mock")
        await tryll.configure(m.ConfigureSessionRequest(inference_engine=m.InferenceEngine.LLAMA_CPP))
        for _ in range(2):
            assert [(await agent.ask("x")).text for agent in (one, two, mock)] == ["first", "changed", "You said: x"]
            with pytest.raises(TryllError, match="3003"):
                await tryll.create_agent(echo(), default_model="mock")
            await _drop(server, tryll)
        with pytest.raises(TryllError, match="7001"):
            await tryll.destroy_storage("others")
        assert (await tryll.health()).agents == 3


async def test_changes_that_fit_into_no_frame_together_are_made_again(tmp_path: Path) -> None:
    nodes = tuple(
        m.NodeDescription(name, m.GenerateParams(default_exit=after)) for name, after in (("a", "b"), ("b", ""))
    )
    async with served(tmp_path) as server, Tryll(port=server.port, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(m.GraphDescription(nodes, "a"), default_model="mock", diagnostics=True)
        for name in ("a", "b"):
            await agent.change_some(name, system_prompt=name * 600_000)
        await _drop(server, tryll)
        assert (await agent.ask("x")).text == "You said: x\nYou said: x"


async def test_an_agent_that_cannot_be_made_again_fails_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(port=server.port, reconnect=QUICK) as tryll:
        lines = tmp_path / "root" / "lines.txt"
        lines.write_text("From a file.\n")
        node = m.NodeDescription("say", m.CannedResponseParams(string_storage="lines.txt"))
        agent = await tryll.create_agent(m.GraphDescription((node,), "say"))
        other = await tryll.create_agent(echo(), default_model="mock")
        voice = await tryll.voice_input("any")
        lines.rename(tmp_path / "elsewhere")
        await _drop(server, tryll)
        for _ in range(2):
            with pytest.raises(TryllError, match="3010"):
                await agent.ask("x")
        with pytest.raises(TryllError, match="3010"):
            await voice.begin(agent=agent)
        await voice.begin(agent=other)
        assert (await other.ask("x")).text == "You said: x"
        # The next connection may have it again.
        (tmp_path / "elsewhere").rename(lines)
        await _drop(server, tryll)
        assert (await agent.ask("x")).text == "From a file."
        lines.unlink()
        await _drop(server, tryll)
        await tryll.list_models()
        await agent.destroy()
        assert (await tryll.health()).agents == 1


async def _drop(server: Served, tryll: Tryll) -> None:
    for connection in list(server.server.connections):
        connection.transport.abort()
    await until(lambda: not tryll.session_id)


async def test_a_token_is_asked_for(tmp_path: Path) -> None:
    async with served(tmp_path, token="secret") as server:
        # That it is alive is all that is told without it.
        async with server.peer(configured=False) as stranger:
            assert await stranger.ask(m.HealthRequest(7), m.HealthResponse) == m.HealthResponse(7, "ready")
        with pytest.raises(TryllError) as refused:
            await Tryll(port=server.port).connect()
        assert refused.value.code == 2003
        async with Tryll(port=server.port, config=m.ConfigureSessionRequest(token="secret")) as tryll:
            assert (await tryll.create_agent(echo(), default_model="mock")).id


async def test_over_tls_only_a_server_that_is_vouched_for_is_talked_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context, trusting = await _vouched_for(tmp_path)
    async with served(tmp_path) as server:
        _, port = await server.server.listen("127.0.0.1", 0, context)
        async with Tryll(port=port, ssl=trusting) as tryll:
            agent = await tryll.create_agent(echo(), default_model="mock")
            assert (await agent.ask("hi")).text == "You said: hi"
        with pytest.raises(TryllError) as refused:
            await Tryll(port=port, ssl=ssl.create_default_context()).connect()
        assert refused.value.code == 1001
        # Nothing goes wrong at the end of a session that the server ends, whenever the client closes.
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.write(frame(encode(m.ConfigureSessionRequest(1, protocol_version=1))))
        await reader.read()
        writer.close()
        await writer.wait_closed()
    assert "eof_received" not in caplog.text


async def test_a_client_over_tls_that_is_not_read_may_be_gone_when_it_is_looked_after(
    tmp_path: Path,
) -> None:
    context, trusting = await _vouched_for(tmp_path)
    async with served(tmp_path, stall_seconds=0.0) as server:
        _, port = await server.server.listen("127.0.0.1", 0, context)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        await reader.read(1)
        (connection,) = server.server.connections
        server.server.not_reading(connection)
        connection.cut()
        await asyncio.sleep(0)
        # The transport has no socket any more, and the connection has not heard of it.
        assert connection.transport.get_extra_info("socket") is None
        assert server.server.connections
        server.server._look_after_unread()
        connection.pause_writing()
        connection._look()
        writer.transport.abort()


async def _vouched_for(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server says that it is, and what clients of it believe."""
    certificate = await asyncio.to_thread(own_certificate, folder)
    return showing(certificate), ssl.create_default_context(cafile=certificate)


async def test_what_a_file_describes_is_brought_along_and_found(tmp_path: Path) -> None:
    storages = (
        StringStorageDescription("list", ("a",)),
        StringStorageDescription("map", ("b",), "", m.StringStorageKind.MAP, ("k",)),
        StringStorageDescription("file", (), "more.txt"),
        EmbeddedStorageDescription("lore", "", ("the mill burned",), "any"),
    )
    told: list[str] = []
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        (tmp_path / "root" / "more.txt").write_text("c\n")
        await tryll.bring(*storages, progress=lambda progress: told.append(progress.model_name))
        for name in ("list", "file"):
            canned = m.NodeDescription("say", m.CannedResponseParams(string_storage=name))
            agent = await tryll.create_agent(m.GraphDescription((canned,), "say"))
            assert (await agent.ask("x")).text == {"list": "a", "file": "c"}[name]
        with pytest.raises(TryllError, match="map"):
            await tryll.bring(storages[1])
        found = m.NodeDescription("look", m.RetrieveParams(embedded_string_storage="lore"))
        agent = await tryll.create_agent(m.GraphDescription((found,), "look"), diagnostics=True)
        assert "the mill burned" in str((await agent.ask("the mill")).debug)
    assert set(told) <= {"lore"}
