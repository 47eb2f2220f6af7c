"""The asyncio client of the Tryll wire, against a small server made of the codec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_stub import HANG_UP, SILENCE, TryllStub, echo, held
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.drive import Replacement, Sound, SpeechTiming, Tryll, TurnFailed
from trunkline.wires.tryll.drive import turn as drive_turn
from trunkline.wires.tryll.errors import TryllError

GRAPH = m.GraphDescription((m.NodeDescription("answer", m.GenerateParams(stream=True)),), "answer")


@pytest.fixture
async def stub() -> AsyncIterator[TryllStub]:
    async with TryllStub() as server:
        yield server


@pytest.fixture
async def tryll(stub: TryllStub) -> AsyncIterator[Tryll]:
    async with Tryll(port=stub.port, timeout=PATIENCE_SECONDS) as client:
        yield client


async def test_a_session_is_configured_before_anything_else(stub: TryllStub) -> None:
    config = m.ConfigureSessionRequest(inference_engine=m.InferenceEngine.LLAMA_CPP, token="secret")
    async with Tryll(port=stub.port, config=config) as tryll:
        assert tryll.session_id == 101
        assert tryll.extensions == stub.extensions
    asked = stub.asked(m.ConfigureSessionRequest)[0]
    assert (asked.inference_engine, asked.token, asked.protocol_version) == (1, "secret", 2)


async def test_request_ids_are_never_zero_and_always_increase(stub: TryllStub, tryll: Tryll) -> None:
    agent = await tryll.create_agent(GRAPH)
    await agent.ask("a")
    stub.hang_up()
    await agent.destroy()
    await until(lambda: not tryll.session_id)
    await tryll.list_models()
    ids = [getattr(message, "request_id", 0) for _, message in stub.log]
    assert ids[0] > 0
    assert ids == sorted(set(ids))


async def test_an_answer_comes_whole_or_in_pieces(tryll: Tryll) -> None:
    agent = await tryll.create_agent(GRAPH, default_model="mock", diagnostics=True)
    turn = await agent.ask("one two")
    assert (turn.text, turn.status, turn.tokens_generated) == ("one two ", m.TurnStatus.SUCCESS, 2)
    assert turn.first_seconds is not None
    reply = agent.stream("three four")
    assert [piece async for piece in reply] == ["three ", "four "]
    assert reply.turn.text == "three four "


async def test_all_of_an_answer_so_far_replaces_what_came_before(stub: TryllStub, tryll: Tryll) -> None:
    def whole(peer: Any, asked: m.SendMessageRequest) -> list[m.Message]:
        texts = [("Hel", True), ("Hello", False), ("Sorry.", False)]
        said = [m.AnswerText(asked.request_id, asked.agent_id, text, delta) for text, delta in texts]
        return [*said, m.TurnComplete(asked.request_id, asked.agent_id)]

    stub.answers[m.SendMessageRequest] = whole
    agent = await tryll.create_agent(GRAPH)
    reply = agent.stream("hi")
    pieces = [piece async for piece in reply]
    assert [(piece, isinstance(piece, Replacement)) for piece in pieces] == [
        ("Hel", False),
        ("lo", False),
        ("Sorry.", True),
    ]
    assert reply.turn.text == "Sorry."


async def test_a_server_that_echoes_no_ids_in_a_turn_is_understood(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.SendMessageRequest] = lambda _, asked: echo(asked.replace(request_id=0))
    assert (await (await tryll.create_agent(GRAPH)).ask("one")).text == "one "


async def test_a_failed_turn_raises_with_its_number_and_what_was_said(stub: TryllStub, tryll: Tryll) -> None:
    debug = '{"error": {"code": 4003, "message": "Too many nodes."}}'
    stub.answers[m.SendMessageRequest] = lambda _, asked: [
        m.AnswerText(asked.request_id, asked.agent_id, "So far", True, True),
        m.TurnComplete(asked.request_id, asked.agent_id, m.TurnStatus.ERROR, debug),
    ]
    agent = await tryll.create_agent(GRAPH)
    with pytest.raises(TurnFailed, match="Too many nodes") as failed:
        await agent.ask("x")
    assert (failed.value.code, failed.value.turn.text) == (4003, "So far")
    assert (await agent.ask("x", check=False)).status == m.TurnStatus.ERROR


async def test_a_refused_message_raises_and_the_agent_is_free_again(stub: TryllStub, tryll: Tryll) -> None:
    agent = await tryll.create_agent(GRAPH)
    stub.answers[m.SendMessageRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 9999, "as it is")]
    with pytest.raises(TryllError) as refused:
        await agent.ask("x")
    assert (refused.value.code, refused.value.message) == (9999, "as it is")
    del stub.answers[m.SendMessageRequest]
    assert (await agent.ask("y")).text == "y "


async def test_turns_of_one_agent_wait_for_each_other_and_those_of_two_do_not(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.SendMessageRequest] = held
    one, other = await tryll.create_agent(GRAPH), await tryll.create_agent(GRAPH)
    first = asyncio.create_task(one.ask("1"))
    second = asyncio.create_task(one.ask("2"))
    third = asyncio.create_task(other.ask("3"))
    await stub.until_asked(m.SendMessageRequest, 2)
    assert {asked.text for asked in stub.asked(m.SendMessageRequest)} == {"1", "3"}
    del stub.answers[m.SendMessageRequest]
    await one.cancel()
    assert (await first).cancelled
    assert (await second).text == "2 "
    await other.cancel()
    assert (await third).text == "Well "


async def test_leaving_a_stream_stops_the_turn_and_the_next_one_begins_after_it(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.SendMessageRequest] = held
    agent = await tryll.create_agent(GRAPH)
    async with agent.stream("tell me a lot") as reply:
        assert await anext(reply) == "Well "
    del stub.answers[m.SendMessageRequest]
    assert (await agent.ask("next")).text == "next "
    kinds = [type(message) for _, message in stub.log if not isinstance(message, m.SaveHistoryRequest)][-3:]
    assert kinds == [m.SendMessageRequest, m.CancelTurnRequest, m.SendMessageRequest]


async def test_a_cancelled_wait_stops_the_turn(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.SendMessageRequest] = held
    agent = await tryll.create_agent(GRAPH)
    asking = asyncio.create_task(agent.ask("x"))
    await stub.until_asked(m.SendMessageRequest)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await stub.until_asked(m.CancelTurnRequest)).agent_id == agent.id


async def test_a_server_without_the_extension_is_not_asked_to_cancel(stub: TryllStub) -> None:
    stub.extensions = ()
    stub.answers[m.SendMessageRequest] = held
    async with Tryll(port=stub.port) as tryll:
        agent = await tryll.create_agent(GRAPH)
        async with agent.stream("x") as reply:
            await anext(reply)
            with pytest.raises(TryllError, match="5002"):
                await agent.cancel()
        with pytest.raises(TryllError) as busy:
            await agent.ask("y", timeout=0.05)
        assert busy.value.code == 3004
        with pytest.raises(TryllError, match="5002"):
            await tryll.health()
    assert not stub.asked(m.CancelTurnRequest)


@pytest.mark.virtual_time
async def test_silence_ends_a_wait_and_progress_prolongs_it(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.ListModelsRequest] = lambda *_: SILENCE
    with pytest.raises(TryllError) as late:
        await tryll.list_models(timeout=0.05)
    assert late.value.code == 1003
    agent = await tryll.create_agent(GRAPH)
    stub.answers[m.SendMessageRequest] = held
    with pytest.raises(TryllError, match="silent"):
        await agent.ask("x", timeout=0.05)

    loop = asyncio.get_running_loop()

    def slowly(peer: Any, asked: m.DownloadModelRequest) -> tuple[Any, ...]:
        for step in range(1, 5):
            progress = m.DownloadProgress(asked.request_id, "big", step, 4, 25.0 * step)
            loop.call_later(0.15 * step, peer.say, [progress])
        loop.call_later(0.75, peer.say, [m.DownloadComplete(asked.request_id, "big", True)])
        return SILENCE

    stub.answers[m.DownloadModelRequest] = slowly
    heard: list[float] = []
    await tryll.download_model("big", lambda progress: heard.append(progress.percent), timeout=0.5)
    assert heard == [25.0, 50.0, 75.0, 100.0]


async def test_an_agent_that_comes_too_late_is_destroyed(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.CreateAgentRequest] = lambda *_: SILENCE
    with pytest.raises(TryllError, match="1003"):
        await tryll.create_agent(GRAPH, timeout=0.02)
    stub.peers[0].say([m.CreateAgentResponse(stub.asked(m.CreateAgentRequest)[0].request_id, 77)])
    assert (await stub.until_asked(m.DestroyAgentRequest)).agent_id == 77


async def test_unsolicited_and_unknown_frames_are_tolerated(stub: TryllStub, tryll: Tryll) -> None:
    newer = bytearray(encode(m.Ack(request_id=78)))
    newer[newer.index(10, int.from_bytes(newer[:4], "little"))] = 250
    strange = [
        frame(bytes(newer)),
        m.NodeEvent(9, "node", "whatever"),
        m.AnswerText(0, 9, "not asked for", True, True),
        m.TurnComplete(4711, 9),
        m.DownloadProgress(0, "some", 1, 2, 50.0),
        m.Ack(12345),
        m.TtsAudioFrame(),
    ]
    usual = stub.usual
    stub.answers[m.ListModelsRequest] = lambda peer, asked: [*strange, *usual(peer, asked)]
    assert await tryll.list_models() == ()


async def test_the_wrong_answer_is_an_error(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.CreateAgentRequest] = lambda _, asked: [m.Ack(asked.request_id)]
    with pytest.raises(TryllError, match="`Ack`"):
        await tryll.create_agent(GRAPH)


async def test_an_oversize_announcement_is_the_end(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.ListModelsRequest] = lambda *_: [(1 << 20 | 1).to_bytes(4, "little")]
    for _ in range(2):
        with pytest.raises(TryllError) as fatal:
            await tryll.list_models()
        assert fatal.value.code == 5003
    assert len(stub.asked(m.ConfigureSessionRequest)) == 1


async def test_a_frame_that_is_no_message_ends_the_connection(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.ListModelsRequest] = lambda *_: [b"\x08\0\0\0garbage!"]
    with pytest.raises(TryllError, match="5001"):
        await tryll.list_models()


async def test_an_answer_without_an_end_is_given_up(
    stub: TryllStub, tryll: Tryll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive_turn, "MAX_ANSWER", 100)
    usual = stub.usual
    stub.answers[m.SendMessageRequest] = lambda peer, asked: [*held(peer, asked) * 30]
    stub.answers[m.CancelTurnRequest] = lambda *_: SILENCE
    agent = await tryll.create_agent(GRAPH)
    reply = agent.stream("x")
    with pytest.raises(TryllError, match="too long"):
        await reply.result()
    stopped = await stub.until_asked(m.CancelTurnRequest)
    # What comes until the server has stopped is not kept, and the next message waits for that.
    stub.answers[m.SendMessageRequest] = usual
    following = asyncio.create_task(agent.ask("y"))
    (peer,) = stub.peers
    peer.say([m.AnswerText(reply.request_id, agent.id, "more " * 1000, True)])
    await tryll.health()
    assert len(reply.text) < 200
    assert not following.done()
    assert len(stub.asked(m.SendMessageRequest)) == 1
    peer.say(usual(peer, stopped))
    assert (await following).text == "y "
    assert reply.turn.cancelled
    with pytest.raises(TryllError, match="too long"):
        await reply.result()


async def test_a_message_that_does_not_fit_is_refused_here(stub: TryllStub, tryll: Tryll) -> None:
    agent = await tryll.create_agent(GRAPH)
    with pytest.raises(TryllError) as refused:
        await agent.ask("x" * (1 << 20))
    assert refused.value.code == 5003
    assert not stub.asked(m.SendMessageRequest)
    assert (await agent.ask("y")).text == "y "


async def test_storages_changes_and_histories_reach_the_server(stub: TryllStub, tryll: Tryll) -> None:
    await tryll.create_storage("list", ["a", "b"])
    await tryll.create_storage("map", {"k": "v"})
    made = await tryll.create_embedded_storage("lore", ["x"], embedding_model="minilm-l6")
    assert (made.record_count, made.embedding_dim) == (1, 384)
    kinds = [(asked.kind, asked.keys, asked.strings) for asked in stub.asked(m.CreateStringStorageRequest)]
    assert kinds == [(0, (), ("a", "b")), (1, ("k",), ("v",))]
    agent = await tryll.create_agent(GRAPH)
    await agent.change_some("answer", system_prompt="Be brief.")
    assert stub.asked(m.ChangeAgentParamRequest)[0].params == m.GenerateParams(stream=True, system_prompt="Be brief.")
    with pytest.raises(TryllError, match="3005"):
        await agent.change_some("nowhere", stream=False)
    assert [entry.text for entry in await agent.history()] == ["a", "b"]
    await agent.restore([m.HistoryEntry("user", "x" * 600_000), m.HistoryEntry("assistant", "y"),
                         m.HistoryEntry("user", "z" * 600_000), m.HistoryEntry("assistant", "!")])  # fmt: skip
    assert [(len(asked.entries), asked.append) for asked in stub.asked(m.RestoreHistoryRequest)] == [
        (2, False), (2, True),
    ]  # fmt: skip
    assert (await tryll.health()).status == "ready"
    await tryll.destroy_storage("list")
    await tryll.destroy_embedded_storage("lore")
    assert stub.asked(m.DestroyStringStorageRequest)[0].name == "list"


async def test_a_destroyed_agent_ends_its_turn_and_takes_no_other(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.SendMessageRequest] = held
    async with await tryll.create_agent(GRAPH) as agent:
        asking = asyncio.create_task(agent.ask("x"))
        await stub.until_asked(m.SendMessageRequest)
    assert (await asking).cancelled
    with pytest.raises(TryllError) as gone:
        await agent.ask("y")
    assert gone.value.code == 3002


async def test_losing_the_connection_fails_all_who_wait(stub: TryllStub, tryll: Tryll) -> None:
    stub.answers[m.SendMessageRequest] = held
    stub.answers[m.ListModelsRequest] = lambda *_: [HANG_UP]
    agent = await tryll.create_agent(GRAPH)
    asking = asyncio.create_task(agent.ask("x"))
    await stub.until_asked(m.SendMessageRequest)
    for waiting in (tryll.list_models(), asking):
        with pytest.raises(TryllError) as lost:
            await waiting
        assert lost.value.code == 1002


def speaks(peer: Any, asked: m.SendMessageRequest) -> list[m.Message]:
    marks = (m.TtsMark(m.TtsMarkKind.WORD, "Hi", 0, 2), m.TtsMark(m.TtsMarkKind.VISEME, "aa", 0, 2))
    return [
        m.AnswerText(asked.request_id, asked.agent_id, "Hi", True),
        m.TtsTimingFrame(asked.agent_id, marks),
        m.TtsAudioFormatFrame(asked.agent_id, 1000),
        m.TtsAudioFrame(asked.agent_id, b"\1\0\2\0"),
        m.TtsTimingFrame(asked.agent_id, marks[:1]),
        m.TurnComplete(asked.request_id, asked.agent_id),
    ]


async def test_what_is_said_when_is_an_event_and_part_of_the_turn(
    stub: TryllStub, tryll: Tryll, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.answers[m.SendMessageRequest] = speaks
    agent = await tryll.create_agent(GRAPH)
    reply = agent.stream("hi")
    events = []
    while (event := await reply.next_event()) is not None:
        events.append(event)
    assert [type(event) for event in events] == [str, SpeechTiming, Sound, SpeechTiming]
    assert isinstance(events[1], SpeechTiming)
    assert reply.turn.marks == (*events[1].marks, events[1].marks[0])
    assert events[1].marks[1] == m.TtsMark(m.TtsMarkKind.VISEME, "aa", 0, 2)
    monkeypatch.setattr(drive_turn, "MAX_MARKS", 2)
    with pytest.raises(TryllError, match="too long"):
        await agent.ask("hi")


ASKS = {
    "sampling.stop": m.GenerateParams(sampling=m.SamplingOverrides(stop=("END",))),
    "sampling.json_schema": m.GenerateParams(sampling=m.SamplingOverrides(json_schema="{}")),
    "sampling.logit_bias": m.ToolCallParams(sampling=m.SamplingOverrides(logit_bias=(m.LogitBias("a", 1.0),))),
    "sampling.lora": m.GenerateAndSpeakParams(sampling=m.SamplingOverrides(lora=(m.LoraAdapter("a"),))),
    "timings": m.SpeakParams(timings=True),
    "pronunciations": m.SpeakParams(pronunciations="words"),
}


@pytest.mark.parametrize("field", ASKS)
async def test_a_server_is_not_asked_for_what_it_would_pass_over(stub: TryllStub, tryll: Tryll, field: str) -> None:
    params = ASKS[field]
    graph = m.GraphDescription((m.NodeDescription("node", params),), "node")
    plain = await tryll.create_agent(m.GraphDescription((m.NodeDescription("node", type(params)()),), "node"))
    with pytest.raises(TryllError, match=f"5002.*does not know `{field}`, which the node `node` has"):
        await tryll.create_agent(graph)
    with pytest.raises(TryllError, match="5002"):
        await plain.change("node", params)
    stub.extensions = (*stub.extensions, "generation", "timings")
    async with Tryll(port=stub.port, timeout=PATIENCE_SECONDS) as other:
        agent = await other.create_agent(graph)
        await agent.change("node", params)
