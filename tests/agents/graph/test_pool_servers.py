"""Graph agents of a Tryll server whose model has several servers: real processes that are killed and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.pools import REAL
from tests.support.local_model import TIMEOUT_SECONDS, llama_server
from tests.support.local_model import Served as LlamaServed
from tests.support.loop import until
from tests.support.paced_model import PacedProcess, paced_model
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, Served, served
from trunkline.agents.graph.pool import ModelPool
from trunkline.core.graph.models import SamplingParams
from trunkline.models import model_server, remote
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.http import HttpService
from trunkline.models.model_server import ModelServer
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.messages import TurnStatus

pytestmark = pytest.mark.process

AGENTS, TURNS = 24, 8


@contextmanager
def three(*firsts: float) -> Iterator[list[PacedProcess]]:
    """Servers with so many seconds before their first word."""
    with ExitStack() as stack:
        yield [stack.enter_context(paced_model(first=first, pause=0.005)) for first in firsts]


@asynccontextmanager
async def game(folder: Path, urls: Sequence[str], **variant: Any) -> AsyncIterator[Served]:
    """A server whose model `far` is at these addresses."""
    models = [{"name": "far", "variants": [{"engine": "openai", "urls": list(urls), **variant}]}]
    (folder / "models.json").write_text(json.dumps({"models": models}))
    async with served(folder, ModelPool(models_dir=str(folder))) as server:
        yield server


class Turns:
    """What became of the turns of some agents, each of which is spoken to as soon as it is silent."""

    def __init__(self) -> None:
        self.whole = 0
        self.broken: list[str] = []
        """What was said of those that failed in the middle."""
        self.mute: list[str] = []
        """Why those failed that had said nothing."""
        self.middle = asyncio.Event()
        """Some are over, and others are not."""

    async def take(self, server: Served, turns: int = TURNS) -> None:
        async with server.peer(configured=False) as peer:
            await peer.configure(inference_engine=REAL)
            agent = await peer.agent("far", enable_diagnostics=True)
            for number in range(turns):
                peer.say(m.SendMessageRequest(10 + number, agent, "hello"))
                await self._ended(peer)

    async def _ended(self, peer: Peer) -> None:
        text = ""
        while not isinstance(heard := await peer.hear(), m.TurnComplete):
            assert isinstance(heard, m.AnswerText | m.NodeEvent), heard
            if isinstance(heard, m.AnswerText):
                text = text + heard.text if heard.is_delta else heard.text or text
        if heard.status == TurnStatus.SUCCESS:
            assert text == "0 1 2 3 4 "
            self.whole += 1
        elif text:
            self.broken.append(text)
        else:
            self.mute.append(json.loads(heard.debug_info)["error"]["message"])
        if self.whole > AGENTS:
            self.middle.set()

    async def all(self, server: Served) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AGENTS):
                tasks.create_task(self.take(server))


def known(server: PacedProcess) -> ModelServer:
    return model_server.known(server.url, "far")


async def test_no_turn_that_had_not_spoken_fails_when_one_of_three_servers_is_killed(tmp_path: Path) -> None:
    with three(0.05, 0.05, 0.05) as servers:
        async with game(tmp_path, [server.url for server in servers]) as server:
            turns = Turns()
            playing = asyncio.ensure_future(turns.all(server))
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turns.middle.wait()
                await until(lambda: bool(known(servers[0]).in_flight))
                servers[0].process.kill()
                await playing
            assert turns.mute == []
            assert turns.whole + len(turns.broken) == AGENTS * TURNS
            # Those that it had begun to answer, and no others.
            assert len(turns.broken) <= AGENTS
            assert not known(servers[0]).up
            # What did not fail in its words was answered by another one, once.
            asked = [known(each).requests for each in servers]
            assert sum(asked) == AGENTS * TURNS + known(servers[0]).failures - len(turns.broken)
            assert [each.asked().came for each in servers[1:]] == asked[1:]


async def test_a_server_that_was_killed_and_started_again_is_used_again(tmp_path: Path) -> None:
    with three(0.0, 0.0) as servers:
        async with game(tmp_path, [server.url for server in servers]) as server, asyncio.timeout(PATIENCE_SECONDS):
            turns = Turns()
            await turns.take(server, 4)
            servers[0].process.kill()
            servers[0].process.wait()
            await turns.take(server, 4)
            assert not known(servers[0]).up
            with paced_model(port=servers[0].port) as again:
                while not again.asked().came:
                    await turns.take(server, 2)
            assert (turns.broken, turns.mute) == ([], [])


async def test_a_slow_server_gets_fewer_turns(tmp_path: Path) -> None:
    with three(0.02, 0.02, 0.4) as servers:
        async with game(tmp_path, [server.url for server in servers]) as server, asyncio.timeout(PATIENCE_SECONDS):
            turns = Turns()
            await turns.all(server)
            quick, quick_too, slow = (each.asked().came for each in servers)
            assert quick + quick_too + slow == turns.whole == AGENTS * TURNS
            assert 0 < slow * 2 < min(quick, quick_too)


async def test_where_all_servers_are_down_the_turn_says_which(tmp_path: Path) -> None:
    with three(0.0, 0.0, 0.0) as servers:
        async with game(tmp_path, [server.url for server in servers]) as server, asyncio.timeout(PATIENCE_SECONDS):
            turns = Turns()
            await turns.take(server, 3)
            for each in servers:
                each.process.kill()
                each.process.wait()
            await turns.take(server, 4)
            assert (turns.whole, turns.broken) == (3, [])
            assert "No server of the model `far` can be used" in turns.mute[-1]
            assert all(f"`{each.url}`" in turns.mute[-1] for each in servers)


async def test_turns_leave_a_server_that_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SILENT_SECONDS", 0.2)
    with three(0.0, 0.0) as servers:
        status = HttpService.status

        async def limited(service: HttpService, url: str, headers: Mapping[str, str], within: float) -> int:
            """Only the one that is stopped is soon given up: the other answers, on a busy machine late."""
            stopped = url.startswith(f"http://127.0.0.1:{servers[0].port}/")
            return await status(service, url, headers, 0.2 if stopped else PATIENCE_SECONDS)

        monkeypatch.setattr(HttpService, "status", limited)
        async with game(tmp_path, [server.url for server in servers]) as server, asyncio.timeout(PATIENCE_SECONDS):
            turns = Turns()
            servers[0].process.send_signal(signal.SIGSTOP)
            try:
                await turns.take(server, 4)
            finally:
                servers[0].process.send_signal(signal.SIGCONT)
            assert (turns.whole, turns.broken, turns.mute) == (4, [], [])
            assert known(servers[0]).failures == 1


async def test_a_cancelled_turn_is_seen_by_the_server_that_answers_it(tmp_path: Path) -> None:
    with three(PATIENCE_SECONDS) as servers:
        async with game(tmp_path, [servers[0].url]) as server, server.peer(configured=False) as peer:
            await peer.configure(inference_engine=REAL)
            agent = await peer.agent("far")
            peer.say(m.SendMessageRequest(10, agent, "hello"))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (await asyncio.to_thread(servers[0].asked)).came:
                    pass
                peer.say(m.CancelTurnRequest(11, agent))
                while not isinstance(heard := await peer.hear(), m.TurnComplete):
                    pass
                assert heard.status == TurnStatus.CANCELLED
                while not (await asyncio.to_thread(servers[0].asked)).left:
                    pass
            assert known(servers[0]).in_flight == 0


async def test_many_agents_share_few_places_and_none_of_them_starves(tmp_path: Path) -> None:
    with three(0.0, 0.0) as servers:
        urls = [server.url for server in servers]
        async with game(tmp_path, urls, max_concurrent=2) as server, asyncio.timeout(PATIENCE_SECONDS):
            turns = Turns()
            await turns.all(server)
            assert (turns.whole, turns.broken, turns.mute) == (AGENTS * TURNS, [], [])
            assert [each.asked().most for each in servers] == [2, 2]


async def test_records_are_found_by_vectors_of_several_servers(tmp_path: Path) -> None:
    with three(0.0, 0.0) as servers:
        variant = {"engine": "openai", "urls": [server.url for server in servers]}
        models = [{"name": "vectors", "purpose": "embedding", "variants": [variant]}]
        (tmp_path / "models.json").write_text(json.dumps({"models": models}))
        pool = ModelPool(models_dir=str(tmp_path))
        engine = await pool.embedding("vectors", REAL)
        servers[1].process.kill()
        servers[1].process.wait()
        for _ in range(4):
            assert len(await engine.embed(["a", "b"])) == 2
        assert servers[0].asked().came == 5
        await pool.close()


@pytest.fixture
def llamas() -> Iterator[tuple[LlamaServed, LlamaServed]]:
    """Two servers of a real model, with one key."""
    key = os.urandom(16).hex()
    with llama_server(key) as one, llama_server(key) as other:
        yield one, other


@pytest.mark.long
@pytest.mark.timeout(2 * TIMEOUT_SECONDS)
async def test_real_models_of_two_servers_answer_and_the_other_goes_on_when_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llamas: tuple[LlamaServed, LlamaServed]
) -> None:
    monkeypatch.setenv("FAR_KEY", llamas[0].key)
    urls = [f"{each.url}/v1" for each in llamas]
    models = [{"name": "far", "engine": "openai", "urls": urls, "api_key_env": "FAR_KEY", "max_concurrent": 2}]
    (tmp_path / "models.json").write_text(json.dumps({"models": models}))
    pool = ModelPool(models_dir=str(tmp_path))
    engine = await pool.language("far", REAL)
    prompt = Prompt((ChatMessage("user", "What is the capital of France?"),))

    async def said() -> str:
        sampling = SamplingParams(temperature=0.0, max_tokens=20)
        return "".join([piece async for piece in engine.generate(prompt, sampling, stream=True)])

    assert all(await asyncio.gather(*(said() for _ in range(6))))
    assert all(server.requests for server in model_server.servers())
    asked = [asyncio.ensure_future(said()) for _ in range(4)]
    await until(lambda: all(server.in_flight == 2 for server in model_server.servers()))
    # They have not spoken: a model takes a while to read.
    os.kill(llamas[0].pid, signal.SIGKILL)
    assert all(await asyncio.gather(*asked))
    assert [server.up for server in model_server.servers()] == [False, True]
    await pool.close()
