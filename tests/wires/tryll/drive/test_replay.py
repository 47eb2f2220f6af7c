"""What the Tryll client makes again after a lost connection, and when it does not try; models; what it listens to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_stub import HANG_UP, LEAVE, TryllStub, echo
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import IntentClassified, Reconnect, ToolCall, Tryll, client
from trunkline.wires.tryll.errors import TryllError

GRAPH = m.GraphDescription((m.NodeDescription("answer", m.GenerateParams()),), "answer")
QUICK = Reconnect(attempts=4, first_seconds=0.01, longest_seconds=0.02)


@pytest.fixture
async def stub() -> AsyncIterator[TryllStub]:
    async with TryllStub() as server:
        yield server


async def test_everything_is_made_again_in_order_with_what_was_said(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        await tryll.create_storage("list", ["a"])
        await tryll.create_embedded_storage("lore", ["b"], embedding_model="e")
        agent = await tryll.create_agent(GRAPH, default_model="x")
        gone = await tryll.create_agent(GRAPH)
        await gone.destroy()
        await agent.change_some("answer", system_prompt="Be brief.")
        await agent.ask("one")
        before = agent.id
        await stub.stop()
        await until(lambda: not tryll.session_id)
        stub.log.clear()
        await stub.start()
        assert (await agent.ask("two")).text == "two "
        assert agent.id != before
    kinds = [type(message) for _, message in stub.log]
    assert kinds == [
        m.ConfigureSessionRequest, m.CreateStringStorageRequest, m.CreateEmbeddedStringStorageRequest,
        m.CreateAgentRequest, m.RestoreHistoryRequest, m.ChangeAgentParamRequest, m.SendMessageRequest,
    ]  # fmt: skip
    assert stub.asked(m.CreateAgentRequest)[0].graph == GRAPH
    assert stub.asked(m.ChangeAgentParamRequest)[0].params == m.GenerateParams(system_prompt="Be brief.")
    assert stub.asked(m.RestoreHistoryRequest)[0].entries == (
        m.HistoryEntry("user", "one"), m.HistoryEntry("assistant", "one "),
    )  # fmt: skip
    assert stub.asked(m.SendMessageRequest)[0].agent_id == agent.id


async def test_an_interrupted_message_is_not_sent_again(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(GRAPH)
        stub.answers[m.SendMessageRequest] = lambda *_: [HANG_UP]
        with pytest.raises(TryllError, match="1002"):
            await agent.ask("once")
        del stub.answers[m.SendMessageRequest]
        await agent.ask("again")
    assert [asked.text for asked in stub.asked(m.SendMessageRequest)] == ["once", "again"]


async def test_without_a_policy_a_lost_connection_stays_lost(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=None) as tryll:
        stub.answers[m.ListModelsRequest] = lambda *_: [HANG_UP]
        for _ in range(2):
            with pytest.raises(TryllError, match="1002"):
                await tryll.list_models()
    assert len(stub.asked(m.ConfigureSessionRequest)) == 1


async def test_a_server_that_is_gone_is_tried_as_often_as_the_policy_says(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        await stub.stop()
        await until(lambda: not tryll.session_id)
        with pytest.raises(TryllError) as gone:
            await tryll.list_models()
        assert gone.value.code == 1001
        await stub.start()
        assert await tryll.list_models() == ()


@pytest.mark.parametrize(
    "greeting",
    [
        (m.SessionReady(3, 1),),
        (m.ErrorResponse(0, 5004, "Update your client."),),
        (m.SessionReady(0, 1),),
    ],
)
async def test_another_version_is_never_tried_again(stub: TryllStub, greeting: tuple[m.Message, ...]) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        stub.greeted = greeting
        stub.hang_up()
        await until(lambda: not tryll.session_id)
        with pytest.raises(TryllError, match="5004") as refused:
            await tryll.list_models()
        stub.greeted = None
        with pytest.raises(TryllError, match="5004"):
            await tryll.list_models()
    assert stub.connections == 2
    assert len(stub.asked(m.ConfigureSessionRequest)) == 1
    assert isinstance(greeting[0], m.SessionReady) or refused.value.message == "Update your client."


async def test_the_servers_refusal_of_our_version_is_final_too(stub: TryllStub) -> None:
    stub.answers[m.ConfigureSessionRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 5004, "No."), HANG_UP]
    tryll = Tryll(port=stub.port, reconnect=QUICK)
    for _ in range(2):
        with pytest.raises(TryllError, match=r"\[5004\] No\."):
            await tryll.connect()
    assert len(stub.asked(m.ConfigureSessionRequest)) == 1


async def test_another_version_is_final_whatever_it_is_the_answer_to(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        stub.answers[m.ListModelsRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 5004, "No."), LEAVE]
        for _ in range(3):
            with pytest.raises(TryllError, match=r"\[5004\] No\."):
                await tryll.list_models()
    assert stub.connections == 1


async def test_a_storage_or_an_old_configuration_that_is_refused_by_now_stops_nobody_else(stub: TryllStub) -> None:
    first = m.ConfigureSessionRequest(storage_data_folder="gone", token="old")
    async with Tryll(port=stub.port, reconnect=QUICK, config=first) as tryll:
        await tryll.create_storage("list", ["a"])
        lost = await tryll.create_agent(GRAPH)
        await tryll.configure(m.ConfigureSessionRequest(token="new"))
        await tryll.create_storage("other", ["b"])
        agent = await tryll.create_agent(GRAPH)

        def configure(_: Any, asked: m.ConfigureSessionRequest) -> list[m.Message]:
            if asked.storage_data_folder:
                return [m.ErrorResponse(asked.request_id, 3010, "No such folder.")]
            return [m.ConfigureSessionResponse(asked.request_id)]

        stub.answers[m.ConfigureSessionRequest] = configure
        stub.answers[m.CreateStringStorageRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 7003, "No.")]
        stub.hang_up()
        await until(lambda: not tryll.session_id)
        stub.log.clear()
        assert (await agent.ask("x")).text == "x "
        with pytest.raises(TryllError, match="No such folder"):
            await lost.ask("x")
    assert [asked.token for asked in stub.asked(m.ConfigureSessionRequest)] == ["new", "new"]
    assert [asked.name for asked in stub.asked(m.CreateStringStorageRequest)] == ["other"]


async def test_what_nobody_needs_any_longer_is_not_made_again(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(GRAPH)
        for number in range(200):
            await tryll.create_storage(f"list{number}", ["a"])
            other = await tryll.create_agent(GRAPH)
            await tryll.destroy_storage(f"list{number}")
            await other.destroy()
            await agent.change_some("answer", system_prompt=str(number))
            await tryll.configure(m.ConfigureSessionRequest(token=str(number)))
        assert len(tryll._ledger._steps) < 300
        stub.hang_up()
        await until(lambda: not tryll.session_id)
        stub.log.clear()
        await tryll.list_models()
    kinds = [type(message) for _, message in stub.log]
    assert kinds == [
        m.ConfigureSessionRequest, m.CreateAgentRequest, m.ConfigureSessionRequest, m.ChangeAgentParamRequest,
        m.ConfigureSessionRequest, m.ListModelsRequest,
    ]  # fmt: skip


async def test_whoever_waits_for_a_connection_hears_that_the_client_is_closed(stub: TryllStub) -> None:
    slow = Reconnect(attempts=9, first_seconds=60.0, longest_seconds=60.0)
    tryll = await Tryll(port=stub.port, reconnect=slow).connect()
    await stub.stop()
    await until(lambda: not tryll.session_id)
    waiting = [asyncio.create_task(tryll.list_models()) for _ in range(2)]
    await asyncio.sleep(0)
    await tryll.close()
    await tryll.close()
    for each in waiting:
        with pytest.raises(TryllError, match="closed"):
            await asyncio.wait_for(each, PATIENCE_SECONDS)
    await stub.start()


async def test_the_reason_that_a_server_gives_before_it_hangs_up_is_told(stub: TryllStub) -> None:
    async with Tryll(port=stub.port, reconnect=None) as tryll:
        stub.answers[m.ListModelsRequest] = lambda *_: [m.ErrorResponse(0, 2001, "Closing time."), LEAVE]
        with pytest.raises(TryllError, match="Closing time"):
            await tryll.list_models()


async def test_there_is_no_server(stub: TryllStub) -> None:
    await stub.stop()
    with pytest.raises(TryllError) as refused:
        await Tryll(port=stub.port, reconnect=QUICK).connect()
    assert refused.value.code == 1001
    await stub.start()


async def test_a_server_that_says_nothing_is_not_waited_for(stub: TryllStub) -> None:
    stub.greeted = ()
    with pytest.raises(TryllError) as silent:
        await Tryll(port=stub.port, timeout=0.05).connect()
    assert silent.value.code == 1003


async def test_a_closed_client_stays_closed(stub: TryllStub) -> None:
    async with Tryll(port=stub.port) as tryll:
        pass
    with pytest.raises(TryllError, match="closed"):
        await tryll.list_models()


# Models.


async def test_a_model_is_fetched_and_loaded_with_progress(stub: TryllStub) -> None:
    stub.models["small"] = m.ModelInfo("small", size_bytes=10)
    heard: list[float] = []
    async with Tryll(port=stub.port) as tryll:
        model = await tryll.ensure_model("small", lambda progress: heard.append(progress.percent))
        assert (model.status, heard) == (m.ModelStatus.LOADED, [50.0])
        await tryll.ensure_model("small")
        with pytest.raises(TryllError, match="6002"):
            await tryll.ensure_model("large")
    assert len(stub.asked(m.DownloadModelRequest)) == len(stub.asked(m.LoadModelRequest)) == 1


async def test_a_download_of_somebody_elses_is_waited_for(stub: TryllStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.01)
    stub.models["small"] = m.ModelInfo("small", m.ModelStatus.DOWNLOADING)
    refusals = 0

    def refuse(_: Any, asked: m.DownloadModelRequest) -> list[m.Message]:
        nonlocal refusals
        refusals += 1
        if refusals == 2:
            stub.models["small"] = m.ModelInfo("small", m.ModelStatus.LOCAL)
        return [m.ErrorResponse(asked.request_id, 6004, "busy")]

    stub.answers[m.DownloadModelRequest] = refuse
    async with Tryll(port=stub.port) as tryll:
        assert (await tryll.ensure_model("small", load=False)).status == m.ModelStatus.LOCAL
    assert refusals == 2


async def test_a_download_that_fails_in_its_last_frame_raises(stub: TryllStub) -> None:
    stub.models["small"] = m.ModelInfo("small")
    stub.answers[m.DownloadModelRequest] = lambda _, asked: [
        m.DownloadComplete(asked.request_id, "small", False, "no network")
    ]
    async with Tryll(port=stub.port) as tryll:
        with pytest.raises(TryllError, match=r"\[6001\] no network"):
            await tryll.ensure_model("small")


async def test_a_long_catalog_comes_in_parts(stub: TryllStub) -> None:
    stub.answers[m.ListModelsRequest] = lambda _, asked: [
        m.ListModelsResponse(asked.request_id, (m.ModelInfo("a"),), True),
        m.ListModelsResponse(asked.request_id, (m.ModelInfo("b"),)),
    ]
    async with Tryll(port=stub.port) as tryll:
        assert [model.name for model in await tryll.list_models()] == ["a", "b"]


# Listeners.


def _telling(*events: tuple[str, dict[str, str]]) -> Any:
    def turn(_: Any, asked: m.SendMessageRequest) -> list[m.Message]:
        told = [
            m.NodeEvent(asked.agent_id, "node", kind, tuple(m.NodeEventKeyValue(*pair) for pair in pairs.items()))
            for kind, pairs in events
        ]
        return [*told, *echo(asked)]

    return turn


async def test_a_listener_to_the_type_hears_an_event_or_else_the_general_one_but_never_both(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = _telling(
        ("tool_call", {"tool_name": "open", "arguments_json": '{"door":"red"}'}),
        (
            "intent_classified",
            {"intent": "greet", "record_id": "r", "record_index": "3", "distance": "0.25", "top_prob": "0.75"},
        ),
        ("mine", {"k": "v"}),
    )
    calls: list[ToolCall] = []
    others: list[m.NodeEvent] = []
    intents: list[IntentClassified] = []
    async with Tryll(port=stub.port) as tryll:
        agent = await tryll.create_agent(GRAPH)
        agent.on_node_event(others.append)
        agent.on_tool_call(calls.append)
        turn = await agent.ask("hi")
        assert calls == [ToolCall("node", "open", {"door": "red"}, '{"door":"red"}')]
        assert [event.event_type for event in others] == ["intent_classified", "mine"]
        assert turn.events[1] == IntentClassified("node", "greet", "r", 3, 0.25, 0.75, None)
        assert "status=SUCCESS" in repr(turn)
        agent.on_intent_classified(intents.append)
        agent.on_tool_call(None)
        await agent.ask("hi")
        assert [intent.intent for intent in intents] == ["greet"]
        assert [event.event_type for event in others[2:]] == ["tool_call", "mine"]
        number = agent.id
        await agent.destroy()
        stub.peers[0].say([m.NodeEvent(number, "node", "late")])
        await tryll.list_models()
    assert others[-1].event_type == "mine"


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
async def test_badly_formed_events_and_listeners_that_fail_harm_nobody(stub: TryllStub, error: BaseException) -> None:
    stub.answers[m.SendMessageRequest] = _telling(
        ("tool_call", {"tool_name": "open", "arguments_json": "[1"}),
        ("tool_call", {}),
        ("intent_classified", {"intent": "x", "record_index": "9" * 30, "distance": "nan"}),
    )
    calls: list[Any] = []

    def fail(event: Any) -> None:
        calls.append(event)
        raise error

    async with Tryll(port=stub.port) as tryll:
        agent = await tryll.create_agent(GRAPH)
        agent.on("tool_call", fail)
        turn = await agent.ask("hi")
    assert turn.text == "hi "
    assert calls[0] == ToolCall("node", "open", None, "[1")
    assert isinstance(calls[1], m.NodeEvent)
    assert turn.events[2] == IntentClassified("node", "x")
