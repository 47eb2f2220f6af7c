"""A Tryll server and its models: what clients hear while one is fetched, and when the host fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.faults import kinds
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, echo, served
from trunkline.base.extras import install_hint
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import DownloadFailed, Fault, ModelError, ModelNotFetched
from trunkline.core.graph.hosting import Progress
from trunkline.core.graph.resident import ResidentModel
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.engines import EmbeddingEngine, LanguageEngine, Slot
from trunkline.models.installed import no_engine
from trunkline.models.mock_language import MockLanguage
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.serve import scheduler


class Released(MockLanguage):
    """Counts whom it is not used by any more."""

    count_released = 0

    def release(self, slot: Slot) -> None:
        self.count_released += 1


class Pool:
    """Models that are fetched when the test says so."""

    def __init__(self) -> None:
        self.engine = Released()
        self.here = asyncio.Event()
        self.asked: list[str] = []

    async def language(self, name: str, engine: int, guest: object = None) -> LanguageEngine:
        self.asked.append(f"language {name} {engine}")
        return self.engine

    async def embedding(self, name: str, engine: int) -> EmbeddingEngine:
        return MockEmbedding(name)

    async def speech(self, name: str, kind: str, missing: type[ModelError]) -> tuple[Any, Callable[[], None]]:
        raise missing(f"There is no model `{name}`.")

    def named(self, kind: str) -> tuple[str, ...]:
        return ()

    def is_here(self, name: str) -> bool:
        return False

    def list(self) -> tuple[m.ModelInfo, ...]:
        return tuple(m.ModelInfo(f"model {number}", files=("x" * 1000,)) for number in range(2000))

    async def download(self, name: str, progress: Progress) -> None:
        if name == "bad":
            raise DownloadFailed("The model `bad` could not be downloaded.")
        progress(name, 1, 4)
        await self.here.wait()
        progress(name, 4, 4)

    async def ensure(self, name: str, engine: int, progress: Progress) -> None:
        try:
            await self.download(name, progress)
        except Fault as error:
            raise ModelNotFetched(error.message) from None

    async def load(self, name: str) -> None:
        if name == "bad":
            raise ValueError("nobody foresaw this")
        if name == "without":
            raise ModelError(no_engine("local"))
        if name in TABLE:
            raise kinds()[name]("told", hint="do this")

    def resident(self) -> tuple[ResidentModel, ...]:
        return (ResidentModel("good", 1 << 20, True, 2), ResidentModel("bad", 1 << 10))

    async def unload(self, name: str) -> None:
        self.asked.append(f"unload {name}")

    async def delete(self, name: str) -> None:
        self.asked.append(f"delete {name}")

    async def close(self) -> None:
        self.asked.append("close")


@pytest.fixture
async def pool() -> Pool:
    return Pool()


@pytest.fixture
async def peer(tmp_path: Path, pool: Pool) -> AsyncIterator[Peer]:
    async with served(tmp_path, pool) as server, server.peer() as made:
        yield made
    assert pool.asked[-1] == "close"


async def test_a_download_is_told_step_by_step_while_everything_else_goes_on(peer: Peer, pool: Pool) -> None:
    peer.say(m.DownloadModelRequest(3, "good"))
    assert await peer.get(m.DownloadProgress) == m.DownloadProgress(3, "good", 1, 4, 25.0)
    peer.say(m.SendMessageRequest(5, await peer.agent(), "meanwhile"))
    assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
    pool.here.set()
    assert await peer.get(m.DownloadProgress) == m.DownloadProgress(3, "good", 4, 4, 100.0)
    assert await peer.get(m.DownloadComplete) == m.DownloadComplete(3, "good", True)
    assert await peer.refused(m.DownloadModelRequest(4, "bad")) == 6001


@pytest.mark.parametrize("kind", TABLE)
async def test_every_fault_of_a_host_has_its_number(peer: Peer, kind: str) -> None:
    error = await peer.ask(m.LoadModelRequest(3, kind), m.ErrorResponse)
    if kind in ("crashed", "internal", "local_protocol"):
        # The words are a programmer's. The number is that of whatever nobody foresaw in such a request.
        assert (error.code, error.message) == (6002, f"The server failed at this ({kinds()[kind].__name__}).")
    else:
        assert (error.request_id, error.code, error.message) == (3, TABLE[kind].tryll, "told do this")


async def test_a_client_hears_what_is_not_installed_and_the_log_has_the_command_for_this_python(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    error = await peer.ask(m.LoadModelRequest(3, "without"), m.ErrorResponse)
    told = "The engine for local models is not installed. Add it with `pip install 'trunkline[local]'`."
    assert error.message == told
    assert f"`{install_hint('local')}`" in caplog.text
    assert sys.executable in caplog.text


async def test_a_model_that_an_agent_needs_is_fetched_if_the_session_allows_it(peer: Peer, pool: Pool) -> None:
    await peer.configure(inference_engine=m.InferenceEngine.LLAMA_CPP, allow_auto_model_downloading=True)
    peer.say(m.CreateAgentRequest(3, echo(), "good"))
    assert (await peer.get(m.DownloadProgress)).request_id == 3
    pool.here.set()
    assert (await peer.get(m.DownloadProgress)).percent == 100
    assert (await peer.get(m.CreateAgentResponse)).request_id == 3
    assert pool.asked == ["language good 1"]
    error = await peer.ask(m.CreateAgentRequest(4, echo(), "bad"), m.ErrorResponse)
    assert (error.code, "bad" in error.message) == (6006, True)


async def test_a_client_that_goes_while_its_agent_is_made_leaves_nothing_behind(peer: Peer, pool: Pool) -> None:
    await peer.configure(inference_engine=m.InferenceEngine.LLAMA_CPP, allow_auto_model_downloading=True)
    peer.say(m.CreateAgentRequest(3, echo(), "good"), m.CreateStringStorageRequest(4, "after", ("x",)))
    await peer.get(m.DownloadProgress)
    peer.writer.write_eof()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await peer.hear() is None
    assert pool.asked == []


async def test_an_agent_that_is_gone_uses_its_model_no_longer(tmp_path: Path, pool: Pool) -> None:
    async with served(tmp_path, pool) as server:
        async with server.peer() as peer:
            first, _ = await peer.agent(), await peer.agent()
            await peer.ask(m.DestroyAgentRequest(3, first), m.Ack)
            assert pool.engine.count_released == 1
            peer.writer.write_eof()
            assert await peer.hear() is None
        assert pool.engine.count_released == 2


async def test_a_client_that_is_not_read_is_not_blamed_for_half_a_frame(tmp_path: Path, pool: Pool) -> None:
    async with served(tmp_path, pool, frame_seconds=0.1) as server, server.peer() as peer:
        whole = frame(encode(m.HealthRequest(7)))
        peer.say(*(m.DownloadModelRequest(3, "good") for _ in range(scheduler.MAX_REQUESTS)))
        peer.writer.write(frame(encode(m.HealthRequest(6))) + whole[:9])
        (connection,) = server.server.connections
        for _ in range(scheduler.MAX_REQUESTS):
            await peer.get(m.DownloadProgress)
        assert not connection.transport.is_reading()
        peer.writer.write(whole[9:])
        await asyncio.sleep(0.3)
        pool.here.set()
        while not isinstance(heard := await peer.hear(), m.HealthResponse):
            assert isinstance(heard, m.DownloadProgress | m.DownloadComplete)
        while not isinstance(heard := await peer.hear(), m.HealthResponse):
            assert isinstance(heard, m.DownloadProgress | m.DownloadComplete)
        assert heard.request_id == 7


async def test_models_are_loaded_unloaded_and_deleted_by_name(peer: Peer, pool: Pool) -> None:
    assert await peer.ask(m.LoadModelRequest(3, "good"), m.LoadModelResponse) == m.LoadModelResponse(3, "good")
    assert await peer.ask(m.UnloadModelRequest(4, "good"), m.Ack) == m.Ack(4)
    assert await peer.ask(m.DeleteModelRequest(5, "good"), m.Ack) == m.Ack(5)
    assert pool.asked == ["unload good", "delete good"]


async def test_a_catalog_that_does_not_fit_into_a_frame_comes_in_several(peer: Peer) -> None:
    peer.say(m.ListModelsRequest(3))
    found: list[m.ListModelsResponse] = []
    while not found or found[-1].more:
        found.append(await peer.get(m.ListModelsResponse))
    assert sum(len(part.models) for part in found) == 2000
    assert len(found) > 1


async def test_what_nobody_foresaw_fails_one_request_and_is_logged(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    assert await peer.refused(m.LoadModelRequest(3, "bad")) == 6002
    assert "a `LoadModelRequest` failed" in caplog.text
    assert await peer.agent()
