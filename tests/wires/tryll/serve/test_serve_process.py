"""`trunkline tryll serve` as a process: what it needs, how it ends, and what frames and clients may cost it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack

import pytest
from click.testing import CliRunner

from tests.support.package_index import Index, Model, serving
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from tests.support.tryll_process import TryllProcess, tryll_process
from tests.support.tryll_served import served
from tests.wires.tryll import foreign, hostile
from tests.wires.tryll.foreign_client import Foreigner, foreigner, graph, text_of
from trunkline.cli import models as models_command
from trunkline.models import catalog
from trunkline.wires.tryll import messages as m

pytestmark = pytest.mark.process

SAY = graph(say=m.GenerateParams(stream=True))
MEBI = 1 << 20
#: What a frame may cost.
MOST = 64 * MEBI


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TryllProcess]:
    home = tmp_path_factory.mktemp("contract")
    environ = {"TRUNKLINE_HOME": str(home / "state"), "TRUNKLINE_CACHE": str(home / "cache")}
    with tryll_process(environ=environ) as made:
        yield made


async def works(server: TryllProcess) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), foreigner(server) as client:
        agent = await client.agent(SAY)
        client.say(m.SendMessageRequest(3, agent, "fine"))
        assert text_of((await client.turn())[0]) == "You said: fine"


# Its life.


async def test_it_needs_no_terminal_and_no_network_and_ends_in_time_whatever_is_under_way(tmp_path: Path) -> None:
    places = {"TRUNKLINE_HOME": str(tmp_path / "state"), "TRUNKLINE_CACHE": str(tmp_path / "cache")}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    port = free_port()
    # In a session of its own there is no terminal; nothing can be read, and nobody reads what it says.
    with subprocess.Popen(  # noqa: ASYNC220  # a moment, in which nothing else is to happen
        [sys.executable, "-m", "trunkline", "tryll", "serve", "--listen", f"127.0.0.1:{port}"],
        env=os.environ | places | proxies, cwd=tmp_path, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        try:
            reader, writer = await _ready(port)
            client = Foreigner(reader, writer)
            assert (await client.get(m.SessionReady)).protocol_version == 2
            await client.configure()
            agents = [await client.agent(SAY, "mock-slow") for _ in range(5)]
            client.say(*(m.SendMessageRequest(3, agent, " ".join(["word"] * 5000)) for agent in agents))
            # One that does not read, and one that has said half a frame.
            deaf = await asyncio.open_connection("127.0.0.1", port, limit=2)
            deaf[1].write(_frame(m.ConfigureSessionRequest(1)) + _frame(m.ListModelsRequest(2)) * 3000)
            half = await asyncio.open_connection("127.0.0.1", port)
            half[1].write(pack("<I", 1000) + bytes(10))
            await client.get(m.AnswerText)
            child.send_signal(signal.SIGTERM)
            rest = await client.rest()
            ends = [each.status for each in rest if isinstance(each, m.TurnComplete)]
            assert ends == [m.TurnStatus.CANCELLED] * 5
            # The turns would go on for longer.
            assert await asyncio.to_thread(child.wait, PATIENCE_SECONDS) == 128 + signal.SIGTERM
            for stream in (writer, deaf[1], half[1]):
                stream.transport.abort()
        finally:
            child.kill()


async def _ready(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)


def _frame(message: m.Message) -> bytes:
    payload = foreign.build(message)
    return pack("<I", len(payload)) + payload


# What clients may cost.


def _patterns() -> m.CreateAgentRequest:
    """Patterns that take four hundred times their length when they are compiled."""
    lines = [f"{number:04}" + r"\X" * 2040 for number in range(240)]
    nodes = {f"g{at}": m.HumanMessageGuardrailParams(inline_strings=tuple(lines[at::40])) for at in range(40)}
    return m.CreateAgentRequest(2, graph(**nodes))


def _some_patterns() -> m.CreateAgentRequest:
    """As many of the worst ones as are taken."""
    lines = tuple(f"{number:04}" + r"\X" * 2000 for number in range(20))
    return m.CreateAgentRequest(2, graph(g=m.HumanMessageGuardrailParams(inline_strings=lines)))


def _vectors(count: int) -> bytes:
    texts = tuple(f"{number:x}" for number in range(count))
    request = m.CreateEmbeddedStringStorageRequest(2, f"v{count}", strings=texts, embedding_model="any")
    return foreign.build(request)


def _templates() -> m.CreateAgentRequest:
    text = "{{a}}" * 3900
    nodes = {f"n{at}": m.GenerateParams(template=f"{at}{text}") for at in range(50)}
    return m.CreateAgentRequest(2, graph(**nodes), "any")


#: By what they are full of. Only the test that needs one makes it: that takes a while.
FRAMES: dict[str, Callable[[], bytes]] = {
    "one string, often": lambda: hostile.same_string(1000, 4000),
    "one string, far too often": lambda: hostile.same_string(100, 260_000),
    "one wide string": lambda: hostile.same_wide_string(),
    "one table": lambda: hostile.same_table(),
    "many vtables": lambda: hostile.many_vtables(),
    "tables in tables": lambda: hostile.tables_in_tables(),
    "an event": lambda: hostile.event_of_one_text(700_000, 20_000),
    "one record, often": lambda: hostile.body_with_vector(
        m.CreateEmbeddedStringStorageRequest, "strings", 130_000, hostile.string("x")
    ),
    "records": lambda: _vectors(60_000),
    "as many records as may be": lambda: _vectors(20_833),
    "patterns": lambda: foreign.build(_patterns()),
    "as many patterns as may be": lambda: foreign.build(_some_patterns()),
    "templates": lambda: foreign.build(_templates()),
    "a graph of strings": lambda: foreign.build(
        m.CreateAgentRequest(2, graph(a=m.CannedResponseParams(inline_strings=tuple(map(str, range(60_000))))), "any")
    ),
}


def _reset_peak(server: TryllProcess) -> int:
    """Begin to measure anew; gives the memory that is in use now."""
    Path(f"/proc/{server.child.pid}/clear_refs").write_text("5")
    return _peak(server)


def _peak(server: TryllProcess) -> int:
    status = Path(f"/proc/{server.child.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


async def _warm(server: TryllProcess) -> None:
    """See to it that whatever is imported once is."""
    async with foreigner(server) as client:
        request = m.CreateEmbeddedStringStorageRequest(2, "warm", strings=("x",), embedding_model="any")
        await client.ask(request, m.CreateEmbeddedStringStorageResponse)
        nodes = graph(
            g=m.HumanMessageGuardrailParams(inline_strings=("x",) * 40), say=m.GenerateParams(template="{{x}}")
        )
        agent = await client.agent(nodes, enable_diagnostics=True)
        client.say(m.SendMessageRequest(3, agent, "x"))
        await client.turn()


@pytest.mark.parametrize("what", FRAMES)
async def test_no_frame_costs_more_than_64_mebibytes(server: TryllProcess, what: str) -> None:
    payload = FRAMES[what]()
    assert len(payload) <= MEBI
    await _warm(server)
    before = _reset_peak(server)
    async with foreigner(server) as client:
        client.write(payload)
        while isinstance(answer := await client.hear(), m.DownloadProgress):
            pass
        assert isinstance(
            answer, m.ErrorResponse | m.CreateAgentResponse | m.CreateEmbeddedStringStorageResponse
            | m.CreateStringStorageResponse,
        )  # fmt: skip
        assert _peak(server) - before < MOST
    await works(server)


#: Graphs that make much of one message.
LOOPS: dict[str, m.GraphDescription] = {
    "streamed": SAY,
    "whole, again and again": graph(a=m.GenerateParams(default_exit="a")),
    "tools, again and again": graph(
        a=m.ToolCallParams(tools=(m.ToolDefinition("x"),), generate_on_no_tool=True, no_tool_called_exit="a")
    ),
    "instructions, again and again": graph(
        a=m.InstructionParams(instruction="x" * 1000, default_exit="b"),
        b=m.ToolCallParams(tools=(m.ToolDefinition("y"),), no_tool_called_exit="a"),
    ),
}


@pytest.mark.parametrize("what", LOOPS)
async def test_no_message_costs_more_than_64_mebibytes_however_a_graph_repeats_it(
    server: TryllProcess, what: str
) -> None:
    await _warm(server)
    async with foreigner(server) as client:
        agent = await client.agent(LOOPS[what], enable_diagnostics=True, max_steps_per_turn=300)
        text = " ".join(["word" * (4 if what == "streamed" else 150)] * (50_000 if what == "streamed" else 1600))
        before = _reset_peak(server)
        client.say(m.SendMessageRequest(3, agent, text))
        await client.turn()
        assert _peak(server) - before < MOST


async def test_clients_that_do_not_read_or_say_half_a_frame_neither_block_others_nor_grow_the_server(
    server: TryllProcess,
) -> None:
    await _warm(server)
    before = _reset_peak(server)
    made: list[socket.socket] = []
    try:
        for number in range(20):
            deaf = socket.create_connection((server.host, server.port))
            deaf.setblocking(False)
            made.append(deaf)
            flood = _frame(m.ListModelsRequest(2)) * 40_000 if number % 2 else pack("<I", MEBI) + bytes(200_000)
            _pour(deaf, flood)
        for _ in range(3):
            await works(server)
        for deaf in made:
            _pour(deaf, bytes(100_000))
        await works(server)
        # Each has a little room, and none has more.
        assert _peak(server) - before < MOST
    finally:
        for deaf in made:
            deaf.close()


def _pour(deaf: socket.socket, data: bytes) -> None:
    """Send as much as is taken."""
    view = memoryview(data)
    try:
        while view:
            view = view[deaf.send(view) :]
    except BlockingIOError:
        return


# Models.


async def test_a_pulled_model_is_listed_by_a_server_that_runs_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    monkeypatch.setattr(catalog, "ENTRIES", (model.entry,))
    async with served(tmp_path) as server, foreigner(server) as client:
        absent = await client.ask(m.ListModelsRequest(3), m.ListModelsResponse)
        (before,) = absent.models
        assert (before.name, before.status, before.size_bytes) == (model.entry.name, m.ModelStatus.ABSENT, 0)
        assert before.local_path == ""
        with serving(Index(model)) as index:
            environ = {"PIP_INDEX_URL": index.url}
            pull = ["pull", model.entry.name]
            result = await asyncio.to_thread(CliRunner().invoke, models_command.command, pull, env=environ, input="")
        assert result.exit_code == 0, result.output
        (after,) = (await client.ask(m.ListModelsRequest(4), m.ListModelsResponse)).models
        assert after.status in (m.ModelStatus.LOCAL, m.ModelStatus.DOWNLOADED, m.ModelStatus.LOADED)
        assert after.size_bytes == len(model.data)
        assert _size(after.local_path, after.files[0]) == after.size_bytes
        assert await client.ask(m.DeleteModelRequest(5, model.entry.name), m.Ack) == m.Ack(5)
        (gone,) = (await client.ask(m.ListModelsRequest(6), m.ListModelsResponse)).models
        assert (gone.status, gone.local_path) == (m.ModelStatus.ABSENT, "")


def _size(folder: str, name: str) -> int:
    return os.path.getsize(os.path.join(folder, name))
