"""Talking with an agent: what is heard, asked, answered and interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served, served
from tests.support.tryll_stub import TryllStub
from tests.support.tryll_voice import silence, tone, words
from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_events import (
    MAX_WAITING,
    Answered,
    AnswerPiece,
    Hushed,
    PromptSent,
    Spoken,
    TalkEvent,
    TalkEvents,
    UserTranscript,
)
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.core.faults import NotListening
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Sound
from trunkline.wires.tryll.errors import TryllError

MOCK = TalkOptions("mock", "mock", "mock")
SOUND = Spoken(Sound(b"\0\0", 8000))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


async def opened(server: Served, options: TalkOptions = MOCK) -> TryllTalk:
    return await TryllTalk.open(server.host, server.port, options)


async def told(talk: TryllTalk) -> list[TalkEvent]:
    """All that is told up to the end."""
    found = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (event := await talk.next_event()) is not None:
            found.append(event)
    return found


async def until(talk: TryllTalk, kind: type[Any]) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not isinstance(event := await talk.next_event(), kind):
            assert event is not None
    return event


def over(events: list[TalkEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, UserTranscript) and event.kind == "over"]


async def test_hands_free_a_pause_ends_an_utterance_and_no_sound_behind_it_is_lost(server: Served) -> None:
    async with await opened(server) as talk:
        await talk.listen()
        # All at once: most of it is there before the first pause is found.
        await talk.hear(tone(500) + silence(700) + tone(300) + silence(900) + tone(400))
        await talk.finish()
        events = await told(talk)
    assert over(events)[:3] == [words(1, 5), words(1, 3), words(1, 4)]
    assert [event.text for event in events if isinstance(event, PromptSent)] == [words(1, 5), words(1, 3), words(1, 4)]
    assert isinstance(events[-1], Answered)
    assert events[-1].outcome == "success"
    answer = "".join(
        event.text for event in events[events.index(PromptSent(words(1, 4))) :] if isinstance(event, AnswerPiece)
    )
    assert answer == f"You said: {words(1, 4)}"
    assert events.index(UserTranscript("start")) < events.index(UserTranscript("partial", words(1, 3)))


async def test_sound_at_an_odd_rate_ends_as_any_other(server: Served) -> None:
    async with await opened(server, MOCK.replace(sample_rate=22050)) as talk:
        await talk.listen()
        await talk.hear(tone(500, rate=22050) + silence(777, rate=22050))
        await talk.finish()
        assert over(await told(talk))[0] == words(1, 5)


async def test_a_key_that_is_released_ends_the_utterance_and_can_be_pressed_again(server: Served) -> None:
    async with await opened(server) as talk:
        for count in (3, 2):
            await talk.press()
            await talk.hear(tone(100 * count) + silence(100))
            await talk.release()
            await talk.hear(tone(500))
            assert (await until(talk, PromptSent)).text == words(1, count)
            assert (await until(talk, Answered)).outcome == "success"


async def test_speech_interrupts_the_answer_unless_it_may_not(server: Served) -> None:
    slow = MOCK.replace(model="mock-slow")
    async with await opened(server, slow) as talk:
        await talk.say("word " * 200)
        await until(talk, AnswerPiece)
        await talk.listen()
        await talk.hear(tone(300))
        await until(talk, Hushed)
        assert (await until(talk, Answered)).outcome == "cancelled"
        await talk.hear(silence(600))
        assert (await until(talk, PromptSent)).text == words(1, 3)
    async with await opened(server, slow.replace(barge_in=False)) as talk:
        await talk.say("word " * 200)
        await until(talk, AnswerPiece)
        await talk.listen()
        await talk.hear(tone(300) + silence(600))
        assert (await until(talk, UserTranscript)).kind == "start"
        assert talk.answering
        talk.hush()
        assert (await until(talk, Answered)).outcome == "cancelled"


async def test_whoever_is_deaf_hears_nothing_until_it_listens_again(server: Served) -> None:
    async with await opened(server) as talk:
        await talk.listen()
        await talk.hear(tone(300))
        assert (await until(talk, UserTranscript)).kind == "start"
        await talk.deafen()
        await talk.hear(tone(900) + silence(600))
        await talk.listen()
        await talk.hear(tone(200) + silence(600))
        assert (await until(talk, PromptSent)).text == words(1, 2)


async def test_silence_is_answered_by_nobody(server: Served) -> None:
    async with await opened(server) as talk:
        await talk.listen()
        await talk.hear(silence(2000))
        await talk.finish()
        assert await told(talk) == [UserTranscript("over")]


async def test_without_a_server_there_is_no_conversation() -> None:
    async with TryllStub() as stub:
        port = stub.port
    with pytest.raises(TryllError) as caught:
        await TryllTalk.open("127.0.0.1", port, MOCK)
    assert caught.value.code == 1001


async def test_a_model_that_cannot_be_had_is_replaced_by_the_next_and_told_of() -> None:
    def download(_: Any, asked: m.DownloadModelRequest) -> list[m.Message]:
        return [m.DownloadComplete(asked.request_id, asked.model_name, False, "nobody has it")]

    async with TryllStub() as stub:
        stub.models["ears"] = m.ModelInfo("ears", m.ModelStatus.LOCAL, model_type="stt")
        stub.models["best"] = m.ModelInfo("best", m.ModelStatus.ABSENT, model_type="tts")
        stub.models["good"] = m.ModelInfo("good", m.ModelStatus.LOCAL, model_type="tts")
        stub.answers[m.DownloadModelRequest] = download
        stub.answers[m.CreateVoiceInputRequest] = lambda _, asked: [m.CreateVoiceInputResponse(asked.request_id, 7)]
        notices: list[str] = []
        talk = await TryllTalk.open("127.0.0.1", stub.port, TalkOptions("mock"), notice=notices.append)
        assert (talk.options.stt, talk.options.tts) == ("ears", "good")
        assert notices == ["`best` is not available: nobody has it"]
        await talk.close()
        with pytest.raises(TryllError):
            await TryllTalk.open("127.0.0.1", stub.port, TalkOptions("mock", tts="best"))


async def test_where_nobody_speaks_no_model_is_fetched_that_hears() -> None:
    async with TryllStub() as stub:
        stub.models["ears"] = m.ModelInfo("ears", m.ModelStatus.ABSENT, model_type="stt")
        async with await TryllTalk.open("127.0.0.1", stub.port, TalkOptions("mock", tts="mock", hears=False)) as talk:
            with pytest.raises(NotListening, match="Nobody was to be heard"):
                await talk.listen()
        assert stub.asked(m.DownloadModelRequest) == stub.asked(m.CreateVoiceInputRequest) == []


async def test_silence_takes_sound_that_waits_and_words_stay() -> None:
    out = TalkEvents()
    out.push(AnswerPiece("a"))
    out.push(SOUND)
    late = asyncio.create_task(fill(out))
    await asyncio.sleep(0)
    assert not late.done()
    out.push(Hushed())
    await late
    out.push(UserTranscript("partial", "x"))
    out.push(UserTranscript("partial", "x y"))
    out.end()
    found = []
    while (event := await out.get()) is not None:
        found.append(event)
    assert found == [AnswerPiece("a"), Hushed(), UserTranscript("partial", "x y")]


async def fill(out: TalkEvents) -> None:
    for _ in range(MAX_WAITING + 5):
        await out.put(SOUND, 0)
