"""The Tryll client for code that waits."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_stub import SILENCE, TryllStub, held
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Reconnect
from trunkline.wires.tryll.drive.sync import SyncTryll
from trunkline.wires.tryll.drive.thread import LoopThread
from trunkline.wires.tryll.errors import TryllError

GRAPH = m.GraphDescription((m.NodeDescription("answer", m.GenerateParams()),), "answer")


@pytest.fixture
async def stub() -> AsyncIterator[TryllStub]:
    async with TryllStub() as server:
        yield server


async def test_a_whole_session_without_an_event_loop(stub: TryllStub) -> None:
    stub.models["small"] = m.ModelInfo("small")

    def session() -> None:
        heard: list[str] = []
        with SyncTryll(port=stub.port) as tryll:
            assert tryll.session_id
            assert tryll.ensure_model("small", lambda progress: heard.append(progress.model_name)).name == "small"
            tryll.create_storage("list", ["a"])
            with tryll.create_agent(GRAPH, default_model="small") as agent:
                assert agent.ask("one two").text == "one two "
                reply = agent.stream("three four")
                assert list(reply) == ["three ", "four "]
                assert reply.turn.tokens_generated == 2
                agent.change_some("answer", system_prompt="x")
                assert len(agent.history()) == 2
        assert heard == ["small"]
        with pytest.raises(TryllError, match="1002"):
            tryll.list_models()
        tryll.close()

    await asyncio.to_thread(session)
    assert len(stub.asked(m.DestroyAgentRequest)) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "tryll client"]


async def test_leaving_a_loop_stops_the_turn(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = held

    def session() -> None:
        with SyncTryll(port=stub.port) as tryll:
            agent = tryll.create_agent(GRAPH)
            with agent.stream("x") as reply:
                for piece in reply:
                    assert piece == "Well "
                    break
            agent.destroy()

    await asyncio.to_thread(session)
    assert stub.asked(m.CancelTurnRequest)


async def test_a_listener_that_calls_the_client_is_told_that_it_cannot(stub: TryllStub) -> None:
    def turn(_: Any, asked: m.SendMessageRequest) -> list[m.Message]:
        return [m.NodeEvent(asked.agent_id, "n", "e"), m.TurnComplete(asked.request_id, asked.agent_id)]

    stub.answers[m.SendMessageRequest] = turn
    told: list[str] = []

    def session() -> None:
        with SyncTryll(port=stub.port) as tryll:
            agent = tryll.create_agent(GRAPH)

            def listener(event: m.NodeEvent) -> None:
                try:
                    tryll.list_models()
                except RuntimeError as error:
                    told.append(str(error))

            agent.on_node_event(listener)
            agent.ask("x")

    await asyncio.to_thread(session)
    assert "listener" in told[0]


async def test_a_listener_that_ends_its_thread_does_not_end_the_clients(stub: TryllStub) -> None:
    def turn(_: Any, asked: m.SendMessageRequest) -> list[m.Message]:
        return [m.NodeEvent(asked.agent_id, "n", "e"), m.TurnComplete(asked.request_id, asked.agent_id)]

    stub.answers[m.SendMessageRequest] = turn

    def session() -> None:
        with SyncTryll(port=stub.port) as tryll:
            agent = tryll.create_agent(GRAPH)
            agent.on_node_event(lambda _: sys.exit(3))
            agent.ask("x")
            assert tryll.health().status == "ready"

    await asyncio.to_thread(session)


async def test_whoever_waits_hears_that_another_thread_has_closed_the_client(stub: TryllStub) -> None:
    slow = Reconnect(attempts=9, first_seconds=60.0, longest_seconds=60.0)
    tryll = await asyncio.to_thread(SyncTryll, port=stub.port, reconnect=slow)
    await stub.stop()
    await until(lambda: not tryll.session_id)
    waiting = asyncio.create_task(asyncio.to_thread(tryll.health))
    await until(lambda: tryll._tryll._connecting.locked())
    await asyncio.wait_for(asyncio.to_thread(tryll.close), PATIENCE_SECONDS)
    with pytest.raises(TryllError, match="1002"):
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    await stub.start()


async def test_nobody_waits_for_a_thread_that_has_died(stub: TryllStub) -> None:
    stub.answers[m.ListModelsRequest] = lambda *_: SILENCE
    tryll = await asyncio.to_thread(SyncTryll, port=stub.port)
    waiting = asyncio.create_task(asyncio.to_thread(tryll.list_models))
    await stub.until_asked(m.ListModelsRequest)
    tryll._thread.call(sys.exit)
    with pytest.raises(TryllError, match="1002"):
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    with pytest.raises(TryllError, match="1002"):
        await asyncio.to_thread(tryll.health)
    await asyncio.to_thread(tryll.close)


async def test_nobody_waits_for_a_thread_whose_end_fails(caplog: pytest.LogCaptureFixture) -> None:
    thread = LoopThread()
    began = [asyncio.Event(), asyncio.Event()]

    async def breaks() -> None:
        raise RuntimeError("the end")

    async def work(begun: asyncio.Event, stubborn: bool) -> None:
        loop.call_soon_threadsafe(begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            if stubborn:
                sys.exit(3)

    def wait(begun: asyncio.Event, stubborn: bool) -> None:
        try:
            thread.run(work(begun, stubborn))
        except BaseException as error:
            woken[stubborn] = type(error)

    loop = asyncio.get_running_loop()
    thread.at_end = breaks
    woken: dict[bool, type[BaseException]] = {}
    for begun, stubborn in zip(began, (True, False), strict=True):
        # Not of a pool, which would wait for them in its turn.
        threading.Thread(target=wait, args=(begun, stubborn), daemon=True).start()
        await begun.wait()
    await asyncio.wait_for(asyncio.to_thread(thread.stop), PATIENCE_SECONDS)
    await until(lambda: woken == {True: SystemExit, False: TryllError})
    assert "the end" in caplog.text


async def test_what_a_client_had_ends_with_it(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = held
    stub.answers[m.CreateVoiceInputRequest] = lambda _, asked: [m.CreateVoiceInputResponse(asked.request_id, 7)]

    def session() -> None:
        tryll = SyncTryll(port=stub.port)
        with tryll.create_agent(GRAPH) as agent, tryll.voice_input():
            pieces = iter(agent.stream("x"))
            assert next(pieces) == "Well "
            tryll.close()
            with pytest.raises(TryllError, match="1002"):
                next(pieces)

    await asyncio.to_thread(session)
    assert not stub.asked(m.DestroyAgentRequest)


async def test_an_end_that_the_server_refuses_is_told(stub: TryllStub) -> None:
    stub.answers[m.DestroyAgentRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 3001)]

    def session() -> None:
        with SyncTryll(port=stub.port) as tryll:
            agent = tryll.create_agent(GRAPH)
            with pytest.raises(TryllError, match="3001"):
                agent.destroy()

    await asyncio.to_thread(session)


async def test_a_failed_connection_leaves_no_thread(stub: TryllStub) -> None:
    stub.greeted = (m.SessionReady(9, 1),)

    def session() -> None:
        with pytest.raises(TryllError, match="5004"):
            SyncTryll(port=stub.port)

    await asyncio.to_thread(session)
    assert not [thread for thread in threading.enumerate() if thread.name == "tryll client"]
