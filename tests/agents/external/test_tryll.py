"""A Tryll server as an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.agents.helpers import MemoryJournal, play, request, text_of
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_stub import HANG_UP, Peer, TryllStub, echo, held
from trunkline.agents.external.tryll import TryllAgent, TryllConversation
from trunkline.agents.graph import yaml_graph
from trunkline.core.agent import AddHistory, SetOptions
from trunkline.core.events import Extension, Failed, Notice, Progress, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError, ModelError, Unsupported
from trunkline.core.usage import Usage
from trunkline.wires.tryll import messages as m


@pytest.fixture
async def stub() -> AsyncIterator[TryllStub]:
    async with TryllStub() as server:
        server.models["e"] = m.ModelInfo("e", m.ModelStatus.LOADED, model_type="embedding")
        server.models["far"] = m.ModelInfo("far", model_type="language")
        server.models["near"] = m.ModelInfo("near", m.ModelStatus.LOCAL, model_type="language")
        yield server


async def opened(stub: TryllStub, model: str = "", **changes: Any) -> TryllConversation:
    return await TryllAgent("127.0.0.1", stub.port, model=model).open(request(**changes))


async def test_the_most_ready_language_model_answers(stub: TryllStub) -> None:
    conversation = await opened(stub, instructions="Be brief.")
    events = await play(conversation, "one two")
    assert text_of(events) == "one two "
    assert events[-1] == TurnEnded("success", Usage(output_tokens=2))
    await play(conversation, "three")
    await conversation.close()
    created = stub.asked(m.CreateAgentRequest)
    assert [asked.default_model_name for asked in created] == ["near"]
    assert created[0].graph is not None
    assert created[0].graph.nodes[0].params == m.GenerateParams(system_prompt="Be brief.", stream=True)
    assert stub.asked(m.ConfigureSessionRequest)[0].inference_engine == m.InferenceEngine.LLAMA_CPP
    assert not stub.asked(m.DownloadModelRequest)


async def test_an_agent_of_the_server_answers_only_whoever_asks_for_it(stub: TryllStub) -> None:
    stub.models.clear()
    stub.models["agent:echo"] = m.ModelInfo("agent:echo", m.ModelStatus.LOCAL, model_type="language", engine="agent")
    stub.models["far"] = m.ModelInfo("far", model_type="language")
    for wanted in ("", "agent:echo"):
        conversation = await opened(stub, wanted)
        await play(conversation)
        await conversation.close()
    assert [asked.default_model_name for asked in stub.asked(m.CreateAgentRequest)] == ["far", "agent:echo"]


async def test_a_server_without_a_language_model_is_told_of_by_its_kind_of_fault(stub: TryllStub) -> None:
    del stub.models["far"], stub.models["near"]
    conversation = await opened(stub)
    with pytest.raises(ModelError, match="no language model"):
        await play(conversation)
    await conversation.close()


async def test_a_model_that_is_not_there_is_fetched_with_progress(stub: TryllStub) -> None:
    conversation = await opened(stub, "far")
    events = await play(conversation)
    await conversation.close()
    assert Progress("far: 50 % fetched") in events
    assert stub.asked(m.CreateAgentRequest)[0].default_model_name == "far"


async def test_a_mock_model_runs_on_the_mock_engine_and_needs_no_catalog(stub: TryllStub) -> None:
    conversation = await opened(stub, "mock-slow")
    assert text_of(await play(conversation, "hi")) == "hi "
    await conversation.close()
    assert stub.asked(m.ConfigureSessionRequest)[0].inference_engine == m.InferenceEngine.MOCK


async def test_what_nodes_tell_and_what_replaces_an_answer_comes_through(stub: TryllStub) -> None:
    def turn(_: Any, asked: m.SendMessageRequest) -> list[m.Message]:
        pairs = (m.NodeEventKeyValue("tool_name", "open"), m.NodeEventKeyValue("arguments_json", '{"a":"b"}'))
        known = (m.NodeEventKeyValue("intent", "buy"), m.NodeEventKeyValue("distance", "0.25"))
        return [
            m.NodeEvent(asked.agent_id, "tools", "tool_call", pairs),
            m.NodeEvent(asked.agent_id, "wants", "intent_classified", known),
            m.NodeEvent(asked.agent_id, "odd", "mine", (m.NodeEventKeyValue("k", "v"),)),
            m.AnswerText(asked.request_id, asked.agent_id, "Hm", True),
            m.AnswerText(asked.request_id, asked.agent_id, "No.", False, True),
            m.TurnComplete(asked.request_id, asked.agent_id),
        ]

    stub.answers[m.SendMessageRequest] = turn
    conversation = await opened(stub)
    events = await play(conversation)
    await conversation.close()
    assert [event for event in events if isinstance(event, Extension)] == [
        Extension(
            "node_event",
            {"node": "tools", "type": "tool_call", "pairs": {"tool_name": "open", "arguments_json": '{"a":"b"}'}},
        ),
        Extension(
            "node_event",
            {"node": "wants", "type": "intent_classified", "pairs": {"intent": "buy", "distance": "0.25"}},
        ),
        Extension("node_event", {"node": "odd", "type": "mine", "pairs": {"k": "v"}}),
    ]
    assert text_of(events) == "Hm\nNo."


async def test_cancel_stops_the_turn_on_the_server(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = held
    conversation = await opened(stub)
    turn = conversation.turn(UserMessage("x"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await anext(turn)
        await conversation.cancel()
        events = [event async for event in turn]
    assert events[-1] == TurnEnded("cancelled")
    await stub.until_asked(m.CancelTurnRequest)
    del stub.answers[m.SendMessageRequest]
    assert text_of(await play(conversation, "next")) == "next "
    await conversation.close()


async def test_a_failed_turn_and_a_lost_server_are_told_and_the_conversation_lives_on(stub: TryllStub) -> None:
    conversation = await opened(stub)
    stub.answers[m.SendMessageRequest] = lambda _, asked: [
        m.TurnComplete(asked.request_id, asked.agent_id, m.TurnStatus.ERROR)
    ]
    assert [type(event) for event in await play(conversation)] == [Failed, TurnEnded]
    # What the server says of it is in its diagnostics.
    assert stub.asked(m.CreateAgentRequest)[0].enable_diagnostics
    stub.answers[m.SendMessageRequest] = lambda *_: [HANG_UP]
    failed, ended = await play(conversation)
    assert isinstance(failed, Failed)
    assert (failed.kind, ended) == ("agent", TurnEnded("error"))
    del stub.answers[m.SendMessageRequest]
    assert text_of(await play(conversation, "still there?")) == "still there? "
    await conversation.close()


async def test_a_resumed_conversation_is_given_back_to_the_server(stub: TryllStub) -> None:
    journal = MemoryJournal()
    first = await opened(stub, journal=journal)
    await play(first, "one")
    await first.close()
    again = await opened(stub, journal=journal, resumed=True)
    await play(again, "two")
    await again.close()
    entries = stub.asked(m.RestoreHistoryRequest)[0].entries
    assert [(entry.role, entry.text) for entry in entries] == [("user", "one"), ("assistant", "one ")]
    stub.extensions = ()
    forgetful = await opened(stub, journal=journal, resumed=True)
    assert any(isinstance(event, Notice) for event in await play(forgetful, "three"))
    await forgetful.close()


async def test_the_journal_has_what_the_server_keeps_of_an_answer_that_was_stopped(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = held
    kept = (m.HistoryEntry("user", "x"), m.HistoryEntry("assistant", "We"))
    stub.answers[m.SaveHistoryRequest] = lambda _, asked: [
        m.SaveHistoryResponse(asked.request_id, asked.agent_id, kept)
    ]
    journal = MemoryJournal()
    conversation = await opened(stub, journal=journal)
    turn = conversation.turn(UserMessage("x"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await anext(turn)
        await conversation.cancel()
        assert [event async for event in turn][-1] == TurnEnded("cancelled")
    await conversation.close()
    assert list(journal.records) == [{"tryll_exchange": ["x", "We"]}]


async def test_a_server_that_does_not_take_a_conversation_back_is_told_of(stub: TryllStub) -> None:
    conversation = await opened(stub)
    await play(conversation, "one")
    stub.answers[m.RestoreHistoryRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 3007, "Not that.")]
    stub.answers[m.SendMessageRequest] = lambda *_: [HANG_UP]
    await play(conversation, "two")
    del stub.answers[m.SendMessageRequest]
    events = await play(conversation, "three")
    await conversation.close()
    assert any(isinstance(event, Notice) and "Not that." in event.message for event in events)
    assert text_of(events) == "three "


async def test_history_goes_in_front_of_the_next_message_and_files_are_not_sent(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = lambda _, asked: echo(asked)
    conversation = await opened(stub)
    await conversation.configure(AddHistory("We met before."))
    events = [event async for event in conversation.turn(UserMessage("hi", ("photo.png",)))]
    assert any(isinstance(event, Notice) and "photo.png" in event.message for event in events)
    with pytest.raises(Unsupported):
        await conversation.configure(SetOptions({}))
    await play(conversation, "bye")
    await conversation.close()
    assert [asked.text for asked in stub.asked(m.SendMessageRequest)] == ["We met before.\n\nhi", "bye"]


async def test_without_a_server_there_is_no_conversation(stub: TryllStub) -> None:
    await stub.stop()
    with pytest.raises(ConfigError, match="trunkline tryll serve"):
        await opened(stub)
    await stub.start()
    stub.greeted = (m.ErrorResponse(0, 5004, "Another version."),)
    with pytest.raises(ConfigError, match=r"Another version\."):
        await opened(stub)


def test_an_address_may_name_a_model() -> None:
    agent = TryllAgent.parse("[::1]:9100/smollm2-135m")
    assert (agent.host, agent.port, agent.model) == ("::1", 9100, "smollm2-135m")
    for wrong in ("", "host", "host:", ":9100", "host:0", "host:99999", "host:x/model"):
        with pytest.raises(ConfigError):
            TryllAgent.parse(wrong)


async def test_a_model_that_the_server_does_not_have_is_refused_at_once_and_the_one_before_stays(
    stub: TryllStub,
) -> None:
    conversation = await opened(stub, "near")
    for wrong in ("fair", "e"):
        with pytest.raises(ModelError, match=f"no language model `{wrong}`.* It has far, near"):
            await conversation.configure(SetOptions({"model": wrong}))
    await play(conversation, "one")
    assert [asked.default_model_name for asked in stub.asked(m.CreateAgentRequest)] == ["near"]
    await conversation.close()


async def test_the_language_models_of_a_server_are_offered(stub: TryllStub) -> None:
    agent = TryllAgent("127.0.0.1", stub.port)
    assert await agent.offered_models() == ["far", "near"]
    stub.answers[m.ListModelsRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 6001, "No list.")]
    with pytest.raises(ConfigError, match="No list"):
        await agent.offered_models()


async def test_another_model_answers_from_the_next_turn_on_and_is_told_what_was_said(stub: TryllStub) -> None:
    conversation = await opened(stub, "near", journal=MemoryJournal())
    await play(conversation, "one")
    await conversation.configure(SetOptions({"model": "far"}))
    assert text_of(await play(conversation, "two")) == "two "
    assert [asked.default_model_name for asked in stub.asked(m.CreateAgentRequest)] == ["near", "far"]
    assert len(stub.asked(m.DestroyAgentRequest)) == len(stub.asked(m.RestoreHistoryRequest)) == 1
    with pytest.raises(Unsupported, match="another engine"):
        await conversation.configure(SetOptions({"model": "mock"}))
    await conversation.close()


CHARACTER = """\
start: lore
default_model: near
storages: {moods: [calm]}
knowledge: {village: {embedding_model: e, strings: [The mill burned.]}}
nodes:
  lore: {type: Retrieve, embedded_string_storage: village, found: answer, not_found: answer}
  answer: {type: Generate}
"""


async def character(stub: TryllStub) -> TryllConversation:
    """A conversation with a graph that brings storages along, which the server makes once each in a session."""
    there: set[tuple[Peer, type[m.Message], str]] = set()

    def make(peer: Peer, asked: Any) -> Sequence[Any]:
        if (key := (peer, type(asked), asked.name)) in there:
            code = 7002 if isinstance(asked, m.CreateStringStorageRequest) else 8002
            return [m.ErrorResponse(asked.request_id, code, f"There is a storage `{asked.name}` already.")]
        there.add(key)
        return stub.usual(peer, asked)

    def destroy(peer: Peer, asked: Any) -> Sequence[Any]:
        made = m.CreateStringStorageRequest, m.CreateEmbeddedStringStorageRequest
        there.discard((peer, made[isinstance(asked, m.DestroyEmbeddedStringStorageRequest)], asked.name))
        return stub.usual(peer, asked)

    stub.answers |= {m.CreateStringStorageRequest: make, m.CreateEmbeddedStringStorageRequest: make}
    stub.answers |= {m.DestroyStringStorageRequest: destroy, m.DestroyEmbeddedStringStorageRequest: destroy}
    file = yaml_graph.parse(CHARACTER.encode(), "berta.yaml")
    return await TryllAgent("127.0.0.1", stub.port, model="near", graph=file).open(request())


async def test_a_graphs_storages_are_made_once_also_for_another_model(stub: TryllStub) -> None:
    conversation = await character(stub)
    await play(conversation, "one")
    await conversation.configure(SetOptions({"model": "far"}))
    assert text_of(await play(conversation, "two")) == "two "
    assert [asked.default_model_name for asked in stub.asked(m.CreateAgentRequest)] == ["near", "far"]
    assert len(stub.asked(m.CreateEmbeddedStringStorageRequest)) == len(stub.asked(m.CreateStringStorageRequest)) == 1
    await conversation.close()


async def test_a_graphs_storages_are_made_once_also_if_its_model_cannot_be_had_at_first(stub: TryllStub) -> None:
    conversation = await character(stub)
    stub.answers[m.CreateAgentRequest] = lambda peer, asked: [m.ErrorResponse(asked.request_id, 6006, "No model.")]
    assert (await play(conversation, "one"))[-1] == TurnEnded("error")
    del stub.answers[m.CreateAgentRequest]
    assert text_of(await play(conversation, "two")) == "two "
    await conversation.close()


@pytest.mark.parametrize("kind", [m.CreateStringStorageRequest, m.CreateEmbeddedStringStorageRequest])
async def test_a_stop_while_a_graphs_storage_is_made_does_not_end_the_conversation(
    stub: TryllStub, kind: type[m.Message]
) -> None:
    conversation = await character(stub)
    make = stub.answers[kind]

    def unheard(peer: Peer, asked: Any) -> Sequence[Any]:
        make(peer, asked)
        return ()

    stub.answers[kind] = unheard
    turn = asyncio.create_task(play(conversation, "one"))
    await stub.until_asked(kind)
    await conversation.cancel()
    assert (await turn)[-1] == TurnEnded("cancelled")
    stub.answers[kind] = make
    assert text_of(await play(conversation, "two")) == "two "
    # All of them are there again after the connection was lost, which a turn may be the first to notice.
    stub.log.clear()
    stub.hang_up()
    await play(conversation, "three")
    assert text_of(await play(conversation, "four")) == "four "
    assert len(stub.asked(m.CreateEmbeddedStringStorageRequest)) == len(stub.asked(m.CreateStringStorageRequest)) == 1
    await conversation.close()
