"""An answer aloud, through a server, to clients that listen, that interrupt, that do not listen, and that vanish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents.helpers import play, request
from tests.support.fake_voice import FakeVoice, FakeVoices
from tests.support.loop import until
from tests.support.tryll_served import Peer, Served, served
from tests.support.tryll_voice import microphone, tone
from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.graph.pool import ModelPool
from trunkline.core import events as core
from trunkline.core.graph.hosting import Progress
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Sound, Tryll
from trunkline.wires.tryll.drive.sync import SyncTryll
from trunkline.wires.tryll.serve.turns import AUDIO_BYTES

REAL = m.InferenceEngine.SHERPA_ONNX
TALK = m.GraphDescription((m.NodeDescription("talk", m.GenerateAndSpeakParams(min_sentence_chars=1)),), "talk")
LINE = "The gate is shut. It stays shut tonight. Go away."
CANNED = m.GraphDescription(
    (
        m.NodeDescription("line", m.CannedResponseParams(inline_strings=(LINE,), default_exit="say")),
        m.NodeDescription("say", m.SpeakParams()),
    ),
    "line",
)


@asynccontextmanager
async def speaking(folder: Path, voice: FakeVoice, **settings: Any) -> AsyncIterator[Served]:
    pool = ModelPool()
    async with served(folder, pool, FakeVoices([voice], pool), **settings) as server:
        yield server


class OneVoice(ModelPool):
    """Every model that speaks is the same voice."""

    def __init__(self, voice: FakeVoice) -> None:
        super().__init__()
        self._only = voice

    async def speech(self, name: str, kind: str, missing: object) -> tuple[Any, Any]:
        return self._only, lambda: None


@pytest.mark.slow
async def test_of_a_thousand_agents_of_a_client_that_does_not_read_one_is_spoken_for(tmp_path: Path) -> None:
    # Each answer is some MiB of sound, and there is another client.
    voice = FakeVoice(repeat=20_000)
    async with served(tmp_path, OneVoice(voice)) as server, talker(server) as (deaf, first):
        agents = [first]
        for _ in range(999):
            made = await deaf.ask(m.CreateAgentRequest(2, TALK, "any"), m.CreateAgentResponse)
            agents.append(made.agent_id)
        (connection,) = server.server.connections
        deaf.say(*(m.SendMessageRequest(number, agent, "a b c d e f g h") for number, agent in enumerate(agents, 10)))
        await until(lambda: connection.behind)
        async with talker(server) as (peer, agent):
            peer.say(m.SendMessageRequest(3, agent, "Hello."))
            assert await whole_turn(peer)
        assert connection.behind
        assert voice.most == 2
        assert voice.said.count("You said: a b c d e f g h") < 100


@asynccontextmanager
async def talker(
    server: Served, graph: m.GraphDescription = TALK, engine: int = REAL, **options: Any
) -> AsyncIterator[tuple[Peer, int]]:
    async with server.peer(configured=False) as peer:
        await peer.configure(tts_engine=engine)
        made = await peer.ask(m.CreateAgentRequest(2, graph, "any", **options), m.CreateAgentResponse)
        yield peer, made.agent_id


async def whole_turn(peer: Peer) -> list[m.Message]:
    """All frames of a turn, of which every rule about sound holds."""
    frames: list[m.Message] = []
    while not frames or not isinstance(frames[-1], m.TurnComplete):
        heard = await peer.hear()
        assert heard is not None
        frames.append(heard)
    check(frames)
    return frames


def check(frames: Sequence[m.Message]) -> None:
    kinds = [type(frame) for frame in frames]
    sounds = [frame for frame in frames if isinstance(frame, m.TtsAudioFrame)]
    assert kinds.count(m.TtsAudioFormatFrame) == bool(sounds)
    if sounds:
        assert kinds.index(m.TtsAudioFormatFrame) < kinds.index(m.TtsAudioFrame)
    assert all(0 < len(frame.pcm) <= AUDIO_BYTES for frame in sounds)
    assert sum(frame.is_final for frame in frames if isinstance(frame, m.AnswerText)) == 1


def sound(frames: Sequence[m.Message]) -> bytes:
    return b"".join(frame.pcm for frame in frames if isinstance(frame, m.TtsAudioFrame))


def text(frames: Sequence[m.Message]) -> str:
    return "".join(frame.text for frame in frames if isinstance(frame, m.AnswerText))


def all_of(voice: FakeVoice) -> bytes:
    return b"".join(voice.sound(number) for number in range(len(voice.asked)))


async def history(peer: Peer, agent: int) -> list[str]:
    found = await peer.ask(m.SaveHistoryRequest(9, agent), m.SaveHistoryResponse)
    return [entry.text for entry in found.entries]


@pytest.mark.parametrize("graph", [TALK, CANNED])
async def test_every_turn_that_speaks_has_a_format_then_its_sound_then_its_end(
    tmp_path: Path, graph: m.GraphDescription
) -> None:
    # Two sentences of it do not fit into one frame of the wire.
    voice = FakeVoice(repeat=4000)
    async with speaking(tmp_path, voice) as server, talker(server, graph) as (peer, agent):
        for number in (3, 4):
            voice.asked.clear()
            peer.say(m.SendMessageRequest(number, agent, LINE))
            frames = await whole_turn(peer)
            form = next(frame for frame in frames if isinstance(frame, m.TtsAudioFormatFrame))
            assert form == m.TtsAudioFormatFrame(agent, 16_000, 1, 16)
            assert {frame.agent_id for frame in frames if isinstance(frame, m.TtsAudioFrame)} == {agent}
            assert sound(frames) == all_of(voice)
            assert text(frames).endswith(LINE)
            assert len(voice.asked) == 3


async def test_the_mock_voice_takes_any_name_and_gives_text_alone(tmp_path: Path) -> None:
    graph = m.GraphDescription((m.NodeDescription("talk", m.GenerateAndSpeakParams(None, "gone")),), "talk")
    async with served(tmp_path) as server, talker(server, graph, m.InferenceEngine.MOCK) as (peer, agent):
        peer.say(m.SendMessageRequest(3, agent, "hello"))
        frames = await whole_turn(peer)
        assert text(frames) == "You said: hello"
        assert sound(frames) == b""
        assert not any(isinstance(frame, m.TtsAudioFormatFrame) for frame in frames)


@pytest.mark.parametrize("download", [False, True])
@pytest.mark.parametrize("name", ["gone", "smollm2-135m"])
async def test_a_voice_that_there_is_not_is_refused_by_its_name(tmp_path: Path, name: str, download: bool) -> None:
    async with served(tmp_path) as server, server.peer(configured=False) as peer:
        await peer.configure(tts_engine=REAL, allow_auto_model_downloading=download)
        for params in (m.SpeakParams(name), m.GenerateAndSpeakParams(None, name)):
            graph = m.GraphDescription((m.NodeDescription("say", params),), "say")
            error = await peer.ask(m.CreateAgentRequest(2, graph, "any"), m.ErrorResponse)
            assert error.code == 4002
            assert name in error.message


async def test_no_name_means_the_first_voice(tmp_path: Path) -> None:
    voice = FakeVoice("the-first")
    async with speaking(tmp_path, voice) as server, talker(server, enable_diagnostics=True) as (peer, agent):
        peer.say(m.SendMessageRequest(3, agent, "hello"))
        complete = (await whole_turn(peer))[-1]
        assert isinstance(complete, m.TurnComplete)
        assert '"talk.tts_model":"the-first"' in complete.debug_info
        assert '"talk.time_to_first_audio_ms":"' in complete.debug_info


async def test_a_voice_is_fetched_with_the_agent_if_models_may_be(tmp_path: Path) -> None:
    fetched: list[str] = []

    class Recording(ModelPool):
        async def ensure(self, name: str, engine: int, progress: Progress | None = None) -> None:
            fetched.append(name)

        def list(self) -> tuple[m.ModelInfo, ...]:
            raise AssertionError("That looks at all files, in the event loop.")

    pool = Recording()
    async with served(tmp_path, pool, FakeVoices([FakeVoice("piper-joe")], pool)) as server:
        for download, engine in ((False, REAL), (True, m.InferenceEngine.MOCK), (True, REAL)):
            async with server.peer(configured=False) as peer:
                await peer.configure(tts_engine=engine, allow_auto_model_downloading=download)
                assert fetched == []
                await peer.ask(m.CreateAgentRequest(2, CANNED), m.CreateAgentResponse)
        assert fetched == ["piper-joe"]


# Interrupted.


@pytest.mark.parametrize("how", ["cancel", "destroy"])
async def test_after_the_end_of_a_cancelled_turn_there_is_no_sound_of_it(tmp_path: Path, how: str) -> None:
    voice = FakeVoice(hold_at=1)
    async with speaking(tmp_path, voice) as server, talker(server) as (peer, agent):
        peer.say(m.SendMessageRequest(3, agent, LINE))
        await voice.waiting.wait()
        before = asyncio.get_running_loop().time()
        peer.say(m.CancelTurnRequest(4, agent) if how == "cancel" else m.DestroyAgentRequest(4, agent))
        frames = await whole_turn(peer)
        assert asyncio.get_running_loop().time() - before < 0.2
        complete = frames[-1]
        assert isinstance(complete, m.TurnComplete)
        assert (complete.request_id, complete.agent_id, complete.status) == (3, agent, m.TurnStatus.CANCELLED)
        assert sound(frames) == voice.sound(0)
        await peer.get(m.Ack)
        voice.gate.set()
        await peer.ask(m.HealthRequest(5), m.HealthResponse)
        assert voice.speaking == 0
        if how == "cancel":
            assert await history(peer, agent) == [LINE, "You said: The gate is shut."]


async def test_whoever_speaks_interrupts_the_voice_and_is_answered(tmp_path: Path) -> None:
    voice = FakeVoice(hold_at=1)
    async with speaking(tmp_path, voice) as server, talker(server, CANNED) as (peer, agent):
        ear = await microphone(peer)
        peer.say(m.SendMessageRequest(3, agent, "open"))
        await voice.waiting.wait()
        peer.say(ear.begin(agent, barge_in=True), *ear.sound(tone(300)), ear.end())
        frames: list[m.Message] = []
        while sum(isinstance(frame, m.TurnComplete) for frame in frames) < 2:
            heard = await peer.hear()
            assert heard is not None
            frames.append(heard)
        first, second = (at for at, frame in enumerate(frames) if isinstance(frame, m.TurnComplete))
        check(frames[: first + 1])
        check(frames[first + 1 : second + 1])
        assert sound(frames[:first]) == voice.sound(0)
        ends = [(frame.request_id, frame.status) for frame in frames if isinstance(frame, m.TurnComplete)]
        assert ends == [(3, m.TurnStatus.CANCELLED), (0, m.TurnStatus.SUCCESS)]
        assert voice.said[2:] == ["The gate is shut.", "It stays shut tonight.", "Go away."]
        assert await history(peer, agent) == ["open", "The gate is shut.", "w1 w2 w3", LINE]


# Not listened to.


async def test_a_client_that_vanishes_frees_the_voice(tmp_path: Path) -> None:
    voice = FakeVoice(hold_at=1)
    async with speaking(tmp_path, voice) as server:
        async with talker(server) as (peer, agent):
            peer.say(m.SendMessageRequest(3, agent, LINE))
            await voice.waiting.wait()
            assert voice.speaking == 1
        await until(lambda: voice.speaking == 0)
        await until(lambda: not server.server.agents)


async def test_a_client_that_does_not_read_holds_up_its_own_voice_and_nothing_grows(tmp_path: Path) -> None:
    # 1000 sentences of 320 KB each.
    voice = FakeVoice(piece=32_000, repeat=8000)
    async with speaking(tmp_path, voice) as server, talker(server) as (peer, agent):
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is that of a socket
        peer.say(m.SendMessageRequest(3, agent, "This is one sentence. " * 1000))
        (connection,) = server.server.connections
        await until(lambda: connection.behind)
        asked = -1
        while asked != len(voice.asked):
            asked = len(voice.asked)
            for _ in range(100):
                await asyncio.sleep(0)
        assert asked < 40
        assert connection.transport.get_write_buffer_size() < 1 << 20
        async with talker(server) as (other, second):
            other.say(m.SendMessageRequest(3, second, "Hello."))
            assert sound(await whole_turn(other))
        peer.writer.transport.abort()
        await until(lambda: voice.speaking == 0)


# Our own clients.


async def test_the_client_hears_the_sound_between_the_words(tmp_path: Path) -> None:
    voice = FakeVoice(piece=8)
    async with speaking(tmp_path, voice) as server:
        config = m.ConfigureSessionRequest(tts_engine=REAL)
        async with Tryll(server.host, server.port, config=config) as tryll:
            agent = await tryll.create_agent(TALK, default_model="any")
            events: list[Any] = []
            async with agent.stream(LINE) as reply:
                while (event := await reply.next_event()) is not None:
                    events.append(event)
            heard = [event for event in events if isinstance(event, Sound)]
            assert b"".join(each.pcm for each in heard) == all_of(voice)
            assert {(each.sample_rate, each.channels) for each in heard} == {(16_000, 1)}
            assert "".join(event for event in events if isinstance(event, str)).endswith(LINE)
            turn = reply.turn
            assert turn.sound == Sound(all_of(voice), 16_000)
            assert turn.sound.seconds == len(all_of(voice)) / 32_000
            assert turn.first_sound_seconds is not None
            assert (await tryll.create_agent(CANNED.replace(start_node="say"))).id
        async with Tryll(server.host, server.port) as mute:
            quiet = await (await mute.create_agent(TALK, default_model="any")).ask("hello")
            assert quiet.sound is None
            assert quiet.first_sound_seconds is None


async def test_the_client_that_waits_hears_it_too(tmp_path: Path) -> None:
    voice = FakeVoice()

    def listen() -> tuple[list[Any], Any]:
        with SyncTryll(server.host, server.port, config=m.ConfigureSessionRequest(tts_engine=REAL)) as tryll:
            agent = tryll.create_agent(CANNED)
            events = list(agent.stream("open").events())
            return events, agent.ask("open").sound

    async with speaking(tmp_path, voice) as server:
        events, whole = await asyncio.to_thread(listen)
        assert [type(event) for event in events] == [str, Sound, Sound, Sound]
        assert b"".join(event.pcm for event in events[1:]) == b"".join(map(voice.sound, range(3)))
        assert whole.pcm == b"".join(map(voice.sound, range(3, 6)))


async def test_a_server_that_speaks_is_an_agent_that_speaks(tmp_path: Path) -> None:
    voice = FakeVoice()
    async with speaking(tmp_path, voice) as server:
        conversation = await TryllAgent(server.host, server.port, model="mock", graph=CANNED).open(request())
        events = await play(conversation)
        await conversation.close()
    heard = [event for event in events if isinstance(event, core.Audio)]
    assert b"".join(event.data for event in heard) == all_of(voice)
    assert {(event.rate, event.channels) for event in heard} == {(16_000, 1)}


@pytest.mark.parametrize("engine", [REAL, m.InferenceEngine.MOCK])
async def test_times_are_sent_before_the_sound_that_they_are_about(tmp_path: Path, engine: int) -> None:
    timed = m.GenerateAndSpeakParams(min_sentence_chars=1, timings=True)
    graph = m.GraphDescription((m.NodeDescription("talk", timed),), "talk")
    async with speaking(tmp_path, FakeVoice()) as server, talker(server, graph, engine) as (peer, agent):
        peer.say(m.SendMessageRequest(3, agent, "Hello. And you?"))
        frames = await whole_turn(peer)
        marks = [mark for frame in frames if isinstance(frame, m.TtsTimingFrame) for mark in frame.marks]
        words = [mark.text for mark in marks if mark.kind == m.TtsMarkKind.WORD]
        assert words == ["You", "said", "Hello", "And", "you"]
        assert bool(sound(frames)) == (engine == REAL)
        if engine == REAL:
            kinds = [type(frame) for frame in frames]
            assert kinds.index(m.TtsTimingFrame) < kinds.index(m.TtsAudioFrame)


async def test_a_server_says_that_it_has_both(tmp_path: Path) -> None:
    async with speaking(tmp_path, FakeVoice()) as server:
        async with Tryll(port=server.port) as tryll:
            assert {"generation", "timings"} <= set(tryll.extensions)
