"""Speak and GenerateAndSpeak, with a voice that is none."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.agents.graph.helpers import Heard, Recorder, Told, agent, debug, end, graph, hear, said, take
from tests.support.fake_voice import FakeVoice
from tests.support.faults import number
from tests.support.loop import until
from trunkline.agents.graph import yaml_graph
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.speaking import MAX_WAITING
from trunkline.agents.graph.turn import AnswerSound, AnswerTiming, Delta
from trunkline.core.faults import (
    AgentTimeout,
    BadParameter,
    ConfigError,
    Fault,
    ProviderError,
    StorageMissing,
    WrongStorage,
)
from trunkline.core.graph.hosting import StringStorageDescription
from trunkline.core.graph.ordinals import StringStorageKind as Kind
from trunkline.core.graph.turns import Ending
from trunkline.models.engines import Piece
from trunkline.models.mock_language import MockLanguage
from trunkline.models.voice.engines import SpeechError
from trunkline.models.voice.marks import IPA_BEGIN, PHONEMES_END
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    GenerateAndSpeakParams,
    GenerateParams,
    NodeParams,
    Placement,
    SpeakParams,
    TtsMark,
    TtsMarkKind,
    TurnStatus,
)

LINE = "The gate is shut. It stays shut tonight. Go away."
SENTENCES = ["The gate is shut.", "It stays shut tonight.", "Go away."]
CANNED = CannedResponseParams(inline_strings=(LINE,), default_exit="say")


def host(voice: FakeVoice | None, language: Any = None) -> LocalHost:
    return LocalHost(voice=lambda _: voice, language=MockLanguage if language is None else lambda _: language)


def sound(events: Sequence[Told]) -> bytes:
    return b"".join(event.pcm for event in events if isinstance(event, AnswerSound))


def begun(made: GraphAgent, text: str) -> tuple[asyncio.Task[None], list[Told]]:
    """A turn, and what has been told of it so far."""
    heard = Heard()
    return asyncio.create_task(hear(made, text, heard)), heard.events


def all_of(voice: FakeVoice) -> bytes:
    return b"".join(voice.sound(number) for number in range(len(voice.asked)))


class Slow(Recorder):
    """Answers with some pieces, and waits before the last one until it is let go on."""

    def __init__(self, *pieces: str) -> None:
        super().__init__()
        self.pieces = pieces
        self.gate = asyncio.Event()
        self.ended = False

    async def generate(self, *_: Any, **__: Any) -> AsyncGenerator[str, None]:
        try:
            for piece in self.pieces[:-1]:
                await asyncio.sleep(0)
                yield Piece(piece)
            await self.gate.wait()
            yield Piece(self.pieces[-1])
        finally:
            self.ended = True


# Speak.


async def test_speak_says_the_answer_before_it_and_adds_no_text() -> None:
    voice = FakeVoice(piece=6)
    made = await agent(graph(line=CANNED, say=SpeakParams(speaker_id=2, speed=1.5)), host(voice))
    events = await take(made, "open")
    assert voice.asked == [(sentence, 2, 1.5) for sentence in SENTENCES]
    assert sound(events) == all_of(voice)
    assert {event.sample_rate for event in events if isinstance(event, AnswerSound)} == {16_000}
    assert said(events) == LINE
    assert end(events).status == TurnStatus.SUCCESS
    assert made.history() == [("open", LINE)]


async def test_speak_takes_the_last_answer_that_is_not_empty() -> None:
    voice = FakeVoice()
    described = graph(
        one=CannedResponseParams(inline_strings=("First.",), default_exit="two"),
        two=CannedResponseParams(inline_strings=("Second.",), default_exit="three"),
        three=CannedResponseParams(inline_strings=(" ",), default_exit="say"),
        say=SpeakParams(),
    )
    await take(await agent(described, host(voice)), "x")
    assert voice.said == ["Second."]


async def test_speak_with_nothing_to_say_says_nothing() -> None:
    voice = FakeVoice()
    made = await agent(graph(say=SpeakParams()), host(voice))
    events = await take(made, "x")
    assert voice.asked == []
    assert end(events).status == TurnStatus.SUCCESS
    assert len(events) == 1


async def test_speak_goes_on_at_its_exit() -> None:
    described = graph(
        line=CANNED, say=SpeakParams(default_exit="more"), more=CannedResponseParams(inline_strings=("!",))
    )
    assert said(await take(await agent(described, host(FakeVoice())), "x")) == f"{LINE}\n!"


# GenerateAndSpeak.


async def test_a_sentence_is_heard_while_the_next_one_is_generated() -> None:
    voice, model = FakeVoice(), Slow("It is ", "a fine day. ", "Is it ", "not?")
    made = await agent(graph(talk=GenerateAndSpeakParams("m", min_sentence_chars=1)), host(voice, model))
    reading, found = begun(made, "hello")
    # The model waits before its last word.
    await until(lambda: any(isinstance(event, AnswerSound) for event in found) and said(found).endswith("Is it "))
    assert said(found) == "It is a fine day. Is it "
    assert voice.said == ["It is a fine day."]
    model.gate.set()
    await reading
    assert said(found) == "It is a fine day. Is it not?"
    assert sound(found) == all_of(voice)
    assert voice.said == ["It is a fine day.", "Is it not?"]
    assert end(found).tokens_generated == 4
    assert made.history() == [("hello", "It is a fine day. Is it not?")]


async def test_text_goes_on_while_a_slow_voice_speaks() -> None:
    voice, model = FakeVoice(hold_at=0), Recorder("One is one. Two is two. Three.")
    made = await agent(graph(talk=GenerateAndSpeakParams("m", min_sentence_chars=1)), host(voice, model))
    reading, found = begun(made, "count")
    await voice.waiting.wait()
    await until(lambda: said(found).endswith("Three."))
    assert sound(found) == b""
    voice.gate.set()
    await reading
    assert voice.said == ["One is one.", "Two is two.", "Three."]
    assert sound(found) == all_of(voice)


async def test_a_model_that_is_far_ahead_of_the_voice_waits_for_it() -> None:
    class Endless(Recorder):
        given = 0

        async def generate(self, *_: Any, **__: Any) -> AsyncGenerator[str, None]:
            while True:
                self.given += 1
                yield "This is one. "

    voice, model = FakeVoice(hold_at=0), Endless()
    made = await agent(graph(talk=GenerateAndSpeakParams("m", min_sentence_chars=1)), host(voice, model))
    reading, _ = begun(made, "go")
    await until(lambda: model.given > MAX_WAITING)
    for _ in range(100):
        await asyncio.sleep(0)
    assert model.given < MAX_WAITING + 8
    made.cancel()
    await reading


@pytest.mark.parametrize("kind", ["Speak", "GenerateAndSpeak"])
async def test_an_agent_that_is_closed_lets_go_of_its_voice(kind: str) -> None:
    lent: list[weakref.ref[FakeVoice]] = []

    def lend(_: str) -> FakeVoice:
        voice = FakeVoice()
        lent.append(weakref.ref(voice))
        return voice

    described, model = speaking(kind)
    made = await agent(described, LocalHost(voice=lend, language=lambda _: model))
    assert sound(await take(made, "open"))
    made.close()
    gc.collect()
    assert [voice() for voice in lent] == [None]


async def test_an_answer_aloud_is_prompted_like_any_other() -> None:
    model = Recorder("Yes.")
    params = GenerateAndSpeakParams(
        "m", system_prompt="Be brief.", template="({{user_message}})", placement=Placement.IN_PLACE_OF_USER
    )
    made = await agent(graph(talk=params), host(FakeVoice(), model))
    await take(made, "hello")
    assert model.shown() == [("system", "Be brief."), ("user", "(hello)")]
    await made.change("talk", params.replace(template=None, speed=2.0))
    await take(made, "again")
    assert model.shown()[-1] == ("user", "again")
    made.close()
    assert model.released == [slot for slot in model.slots[:1] if slot is not None]


@pytest.mark.parametrize("params", [GenerateAndSpeakParams("m", "any"), SpeakParams("any")])
async def test_without_a_voice_there_is_text_and_no_sound(params: NodeParams) -> None:
    speaks = isinstance(params, SpeakParams)
    described = graph(line=CANNED, say=params) if speaks else graph(talk=params)
    events = await take(await agent(described, host(None)), "hello")
    assert said(events) == (LINE if speaks else "You said: hello")
    assert sound(events) == b""
    assert end(events).status == TurnStatus.SUCCESS


# When it is cut off.


def speaking(kind: str) -> Any:
    """A graph that says `LINE` aloud, and the model for it."""
    if kind == "Speak":
        return graph(line=CANNED, say=SpeakParams(min_sentence_chars=1)), None
    return graph(talk=GenerateAndSpeakParams("m", min_sentence_chars=1)), Recorder(LINE)


async def stopped_by(how: str, made: GraphAgent, reading: asyncio.Task[None]) -> None:
    if how == "cancel":
        made.cancel()
        await reading
    else:
        reading.cancel()
        await asyncio.wait([reading])


@pytest.mark.parametrize("how", ["cancel", "leave"])
@pytest.mark.parametrize("kind", ["Speak", "GenerateAndSpeak"])
@pytest.mark.parametrize("sentence", [0, 1, 2])
async def test_of_an_answer_that_is_cut_off_the_history_keeps_what_was_said(kind: str, how: str, sentence: int) -> None:
    voice = FakeVoice(hold_at=sentence)
    described, model = speaking(kind)
    made = await agent(described, host(voice, model))
    reading, found = begun(made, "open")
    await voice.waiting.wait()
    await until(lambda: len(sound(found)) == sum(len(voice.sound(number)) for number in range(sentence)))
    await stopped_by(how, made, reading)
    assert voice.speaking == 0
    heard = " ".join(SENTENCES[:sentence])
    assert made.history() == ([("open", heard)] if heard else [])
    assert said(found) == LINE
    if how == "cancel":
        assert end(found).status == TurnStatus.CANCELLED
    assert not made.busy


async def test_an_answer_that_is_cut_off_without_a_voice_keeps_what_was_sent() -> None:
    model = Slow("One is one. ", "Two ", "is two.")
    made = await agent(graph(talk=GenerateAndSpeakParams("m")), host(None, model))
    reading, found = begun(made, "count")
    await until(lambda: len(found) == 2)
    made.cancel()
    await reading
    assert made.history() == [("count", "One is one. Two ")]


async def test_a_cancelled_turn_ends_at_once_model_and_voice_included() -> None:
    voice, model = FakeVoice(hold_at=0), Slow("One is one. ", "Two is two. ", "Three.")
    made = await agent(graph(talk=GenerateAndSpeakParams("m", min_sentence_chars=1)), host(voice, model))
    reading, found = begun(made, "count")
    await voice.waiting.wait()
    before = asyncio.get_running_loop().time()
    made.cancel()
    await reading
    assert asyncio.get_running_loop().time() - before < 0.1
    assert model.ended
    assert voice.speaking == 0
    assert end(found).status == TurnStatus.CANCELLED


# Failures.


async def test_a_voice_that_fails_fails_the_turn_and_the_text_stays() -> None:
    for described, model in map(speaking, ("Speak", "GenerateAndSpeak")):
        voice = FakeVoice(fails=(1, SpeechError("The voice `fake` ended: no breath.")))
        made = await agent(described, host(voice, model), diagnostics=True)
        events = await take(made, "open")
        assert end(events).status == TurnStatus.ERROR
        assert number(end(events).error) == 4001
        assert "no breath" in debug(events)["error"]["message"]
        assert said(events) == LINE
        assert made.history() == [("open", LINE)]


async def test_a_model_that_fails_silences_the_voice() -> None:
    class Breaks(Recorder):
        async def generate(self, *_: Any, **__: Any) -> AsyncGenerator[str, None]:
            yield "One is one. Two"
            await voice.waiting.wait()
            raise ProviderError("it broke.")

    voice = FakeVoice(hold_at=0)
    made = await agent(graph(talk=GenerateAndSpeakParams("m", min_sentence_chars=1)), host(voice, Breaks()))
    events = await take(made, "x")
    assert number(end(events).error) == 4001
    assert voice.speaking == 0


async def test_a_voice_that_is_not_there_is_the_hosts_to_refuse_after_the_storages() -> None:
    asked: list[str] = []

    def nobody(name: str) -> FakeVoice:
        asked.append(name)
        raise AgentTimeout(f"There is no model `{name}`.")

    for params in (SpeakParams("gone"), GenerateAndSpeakParams("m", "gone")):
        with pytest.raises(Fault, match="`gone`"):
            await agent(graph(say=params), LocalHost(voice=nobody))
    assert asked == ["gone", "gone"]
    with pytest.raises(StorageMissing):
        await agent(graph(say=SpeakParams(), line=CannedResponseParams("gone.txt")), LocalHost(voice=nobody))
    assert len(asked) == 2


async def test_a_long_text_without_a_word_in_it_holds_nobody_up() -> None:
    voice = FakeVoice()
    described = graph(
        line=CannedResponseParams(inline_strings=("*" + "\n*" * 20_000,), default_exit="say"),
        say=SpeakParams(min_sentence_chars=1),
    )
    made = await agent(described, host(voice))
    turn = asyncio.create_task(take(made, "x"))
    rounds = 0
    while not turn.done():
        await asyncio.sleep(0)
        rounds += 1
    assert end(turn.result()).status == TurnStatus.SUCCESS
    assert voice.asked == []
    assert rounds > 1000


# Files.


def test_a_file_can_describe_a_graph_that_speaks() -> None:
    text = """
start: talk
default_model: any
nodes:
  talk: {type: GenerateAndSpeak, tts_model_name: piper-joe, speed: 1.5, placement: in_place_of_user, default: say}
  say: {type: Speak, speaker_id: 2, min_sentence_chars: 30}
"""
    found = yaml_graph.parse(text.encode(), "talk.yaml").graph
    assert [node.params for node in found.nodes] == [
        GenerateAndSpeakParams(
            tts_model_name="piper-joe", speed=1.5, placement=Placement.IN_PLACE_OF_USER, default_exit="say"
        ),
        SpeakParams(speaker_id=2, min_sentence_chars=30),
    ]
    with pytest.raises(ConfigError, match=r":6:22: `nodes.say.speaker_id`"):
        yaml_graph.parse(text.replace("speaker_id: 2", "speaker_id: -2").encode(), "talk.yaml")


# Diagnostics.


async def test_diagnostics_tell_the_voice_and_when_it_was_first_heard() -> None:
    voice = FakeVoice("joe")
    described = graph(talk=GenerateAndSpeakParams("m", default_exit="say"), say=SpeakParams())
    made = await agent(described, host(voice, Recorder(LINE)), diagnostics=True)
    told = debug(await take(made, "x"))
    talk, say = (node["data"] for node in told["nodes"])
    assert talk["tts_model"] == say["tts_model"] == "joe"
    assert 0 < float(talk["time_to_first_audio_ms"]) <= told["wall_ms"]
    assert told["talk.time_to_first_audio_ms"] == talk["time_to_first_audio_ms"]
    assert "time_to_first_audio_ms" not in say


async def test_a_graph_that_only_writes_has_no_sound() -> None:
    voice = FakeVoice()
    made = await agent(graph(a=GenerateParams(stream=True)), host(voice), diagnostics=True)
    events = await take(made, "x")
    assert [type(event) for event in events] == [Delta, Delta, Delta, Ending]
    assert "time_to_first_audio_ms" not in end(events).debug_info


# When what is said.


def timed(events: Sequence[Told]) -> list[TtsMark]:
    return [mark for event in events if isinstance(event, AnswerTiming) for mark in event.marks]


def words_of(marks: Sequence[TtsMark]) -> list[tuple[str, int, int]]:
    return [(mark.text, mark.start_ms, mark.end_ms) for mark in marks if mark.kind == TtsMarkKind.WORD]


async def test_marks_come_before_their_sound_and_count_from_the_beginning_of_the_turn() -> None:
    # One sample is a millisecond.
    voice = FakeVoice(sample_rate=1000, repeat=10)
    described = graph(line=CANNED, say=SpeakParams(timings=True, default_exit="again"), again=SpeakParams(timings=True))
    events = await take(await agent(described, host(voice)), "open")
    heard = 0
    for event in events:
        if isinstance(event, AnswerTiming):
            assert event.marks[0].start_ms == heard
        elif isinstance(event, AnswerSound):
            heard += len(event.pcm) // 2
    found = words_of(timed(events))
    assert [text for text, _, _ in found] == 2 * LINE.replace(".", "").split()
    assert found[:3] == [("The", 0, 30), ("gate", 40, 80), ("is", 90, 110)]
    first = 10 * len(SENTENCES[0])
    assert found[4] == ("It", first, first + 20)
    assert found[-1][2] == heard
    assert [mark.kind for mark in timed(events)[:2]] == [TtsMarkKind.WORD, TtsMarkKind.VISEME]


async def test_nobody_who_does_not_ask_hears_of_times() -> None:
    made = await agent(graph(line=CANNED, say=SpeakParams()), host(FakeVoice()))
    assert timed(await take(made, "open")) == []
    await made.change("say", SpeakParams(timings=True))
    assert timed(await take(made, "open"))


@pytest.mark.parametrize("node", [SpeakParams, GenerateAndSpeakParams])
async def test_without_a_voice_times_are_told_and_there_is_no_sound(node: Any) -> None:
    speaks = node(timings=True, min_sentence_chars=1)
    described = graph(talk=speaks) if node is GenerateAndSpeakParams else graph(line=CANNED, say=speaks)
    events = await take(await agent(described, host(None)), "hello. And you?")
    found = words_of(timed(events))
    assert found[-1][0] == ("you" if node is GenerateAndSpeakParams else "away")
    assert all(one[2] < other[1] for one, other in pairwise(found))
    assert sound(events) == b""
    assert end(events).status == TurnStatus.SUCCESS


async def test_words_are_said_as_the_map_has_them_and_told_as_they_are_written() -> None:
    voice = FakeVoice(sample_rate=1000)
    shelf = Shelf(None)
    named = StringStorageDescription("words", ("doe or", "/ɡeɪt/"), "", Kind.MAP, ("door", "Gate"))
    shelf.create_strings(named)
    shelf.create_strings(StringStorageDescription("lines", ("a",)))
    line = CannedResponseParams(inline_strings=("The gate, the Door.",), default_exit="say")
    speaks = SpeakParams(timings=True, pronunciations="words")
    described = graph(line=line, say=speaks)
    made = await agent(described, LocalHost(shelf, voice=lambda _: voice))
    found = words_of(timed(await take(made, "open")))
    assert voice.said == [f"The {IPA_BEGIN}ɡeɪt{PHONEMES_END}, the doe or."]
    assert [text for text, _, _ in found] == ["The", "gate", "the", "Door"]
    assert found[-1][2] - found[-1][1] == len("doe or.")
    await made.change("say", speaks.replace(pronunciations=None))
    await take(made, "open")
    assert voice.said[-1] == "The gate, the Door."
    with pytest.raises(WrongStorage, match="is a List"):
        await made.change("say", speaks.replace(pronunciations="lines"))
    with pytest.raises(Fault, match="nowhere"):
        await agent(graph(line=line, say=SpeakParams(pronunciations="nowhere")), LocalHost(shelf))


@pytest.mark.parametrize("node", [SpeakParams, GenerateAndSpeakParams])
async def test_a_speaker_that_a_voice_does_not_have_is_refused(node: Any) -> None:
    voice = FakeVoice()
    made = await agent(graph(say=node(speaker_id=len(voice.voices) - 1)), host(voice))
    with pytest.raises(BadParameter, match=r"`say\.speaker_id` is 8: the voice `fake` has the speakers 0 to 7"):
        await agent(graph(say=node(speaker_id=8)), host(voice))
    with pytest.raises(BadParameter, match="the speakers 0 to 7"):
        await made.change("say", node(speaker_id=8))
    voice.voices = ("only",)
    with pytest.raises(BadParameter, match="has one speaker, 0"):
        await agent(graph(say=node(speaker_id=1)), host(voice))
    await agent(graph(say=node(speaker_id=99)), host(None))
