"""The voice inputs of a Tryll server, on the Mock engine: it hears the k-th loud tenth of a second as the word `wk`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.tryll_served import Peer, Served
from tests.support.tryll_voice import FINAL, kinds, microphone, silence, tone, words
from trunkline.agents.graph.hearing.mock import MockUtterance
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind
from trunkline.wires.tryll.serve.voice import MAX_VOICES

# Voice inputs.


async def test_a_voice_input_needs_a_configured_session(server: Served) -> None:
    async with server.peer(configured=False) as peer:
        assert await peer.refused(m.CreateVoiceInputRequest(3, "any")) == 2002
        # In one go, too.
        peer.say(m.CreateVoiceInputRequest(4, "any", sample_rate=1), m.ConfigureSessionRequest(5))
        assert (await peer.get(m.ErrorResponse)).code == 2002
        await peer.get(m.ConfigureSessionResponse)
        assert (await microphone(peer)).id


async def test_only_sound_of_known_formats_is_taken(peer: Peer) -> None:
    for wrong in ((7999, 1, 16), (48001, 1, 16), (0, 1, 16), (16000, 0, 16), (16000, 3, 16), (16000, 1, 8),
                  (16000, 1, 24), (16000, 1, 0)):  # fmt: skip
        assert await peer.refused(m.CreateVoiceInputRequest(3, "any", *wrong)) == 4101
    for right in ({}, {"sample_rate": 8000}, {"sample_rate": 48000, "channels": 2}, {"sample_rate": 44100}):
        await microphone(peer, **right)


async def test_hotwords_come_from_the_storage_folder(tmp_path: Path, peer: Peer) -> None:
    (tmp_path / "root/words.txt").write_text("Trunkline\n")
    (tmp_path / "secret.txt").write_text("x\n")
    (tmp_path / "root/out").symlink_to(tmp_path)
    await microphone(peer, hotwords_storage_path="words.txt")
    for path, code in (("nowhere.txt", 3010), ("x" * 300 + ".txt", 3010), ("words.txt/more.txt", 3010),
                       ("../secret.txt", 3009), ("/etc/hostname", 3009), ("C:\\x.txt", 3009),
                       ("out/secret.txt", 3009)):  # fmt: skip
        assert await peer.refused(m.CreateVoiceInputRequest(3, "any", hotwords_storage_path=path)) == code


async def test_on_the_real_engine_an_unknown_model_is_named(peer: Peer) -> None:
    for auto in (False, True):
        await peer.configure(stt_engine=m.InferenceEngine.SHERPA_ONNX, allow_auto_model_downloading=auto)
        for name in ("no-such-model", "minilm-l6"):
            error = await peer.ask(m.CreateVoiceInputRequest(3, name), m.ErrorResponse)
            assert error.code == 4100
            assert name in error.message
        assert await peer.refused(m.CreateVoiceInputRequest(3, "x", channels=9)) == 4101
        assert await peer.refused(m.CreateVoiceInputRequest(3, "x", hotwords_storage_path="nowhere.txt")) == 3010


async def test_voice_inputs_that_are_not_there_are_refused(server: Served, peer: Peer) -> None:
    theirs, ours = await microphone(peer), await microphone(peer)
    await peer.ask(ours.destroy(), m.Ack)
    async with server.peer() as other:
        other_mic = await microphone(other)
        assert other_mic.id != theirs.id
        for asker, wrong in ((peer, ours.id), (peer, ours.id + 1), (peer, 0), (peer, other_mic.id), (other, theirs.id)):
            for kind in (m.BeginUtteranceRequest, m.EndUtteranceRequest, m.CancelUtteranceRequest,
                         m.DestroyVoiceInputRequest):  # fmt: skip
                assert await asker.refused(kind(7, wrong)) == 4102
            # Sound for nobody is dropped.
            asker.say(m.AudioBufferFrame(wrong, tone(100)))
    assert (await theirs.utter(tone(100)))[-1].text == "w1"


async def test_there_are_only_so_many_voice_inputs_in_a_session(peer: Peer) -> None:
    made = [await microphone(peer) for _ in range(MAX_VOICES)]
    assert await peer.refused(m.CreateVoiceInputRequest(3, "any")) == 4100
    await peer.ask(made[0].destroy(), m.Ack)
    await microphone(peer)


# Utterances.


async def test_loud_tenths_of_a_second_are_words_and_a_pause_ends_a_segment(peer: Peer) -> None:
    mic = await microphone(peer, vad_min_silence_ms=300)
    pcm = silence(200) + tone(500) + silence(200) + tone(100) + silence(300) + tone(200) + silence(100)
    found = await mic.utter(pcm)
    assert [(each.kind, each.text, each.audio_ms_consumed) for each in found] == [
        (Kind.SPEECH_START, "", 300),
        (Kind.PARTIAL, "w1 w2 w3", 500),
        (Kind.PARTIAL, "w1 w2 w3 w4", 600),
        (Kind.PARTIAL, "w1 w2 w3 w4 w5 w6", 1000),
        (Kind.SEGMENT_FINAL, "w1 w2 w3 w4 w5 w6", 1300),
        (Kind.SPEECH_START, "", 1400),
        (FINAL, "w1 w2 w3 w4 w5 w6 w7 w8", 1600),
    ]


@pytest.mark.parametrize(("height", "heard"), [(1500, "w1"), (1400, "")])
async def test_loud_is_what_has_a_root_mean_square_of_a_thousand(peer: Peer, height: int, heard: str) -> None:
    # That of a tone is its height, divided by the root of two.
    mic = await microphone(peer)
    assert (await mic.utter(tone(100, height=height)))[-1].text == heard


@pytest.mark.parametrize(("ms", "heard"), [(149, "w1"), (150, "w1 w2"), (40, ""), (50, "w1")])
async def test_a_last_piece_counts_from_half_its_length_on(peer: Peer, ms: int, heard: str) -> None:
    mic = await microphone(peer)
    found = (await mic.utter(tone(ms)))[-1]
    assert (found.text, found.audio_ms_consumed) == (heard, ms)


async def test_threshold_padding_and_hotwords_make_no_difference(tmp_path: Path, peer: Peer) -> None:
    (tmp_path / "root/words.txt").write_text("Trunkline\n")
    for options in ({"vad_threshold": 0.99}, {"vad_threshold": float("nan")}, {"vad_speech_pad_ms": 2**32 - 1},
                    {"hotwords_storage_path": "words.txt", "hotwords_score": 9.0}):  # fmt: skip
        mic = await microphone(peer, **options)
        assert (await mic.utter(tone(300)))[-1].text == "w1 w2 w3"


@pytest.mark.parametrize(
    ("rate", "channels"), [(8000, 1), (11025, 2), (16000, 2), (22050, 1), (44100, 2), (47999, 1), (48000, 2)]
)
async def test_frame_boundaries_change_nothing(peer: Peer, rate: int, channels: int) -> None:
    mic = await microphone(peer, sample_rate=rate, channels=channels, vad_min_silence_ms=200)
    parts = [make(ms, rate=rate, channels=channels) for make, ms in
             ((tone, 430), (silence, 250), (tone, 310), (silence, 90), (tone, 170))]  # fmt: skip
    pcm = b"".join(parts)
    whole = await mic.utter(pcm)
    assert len(whole[-1].text.split()) >= 9
    assert whole[-1].audio_ms_consumed == len(pcm) // (2 * channels) * 1000 // rate
    # Also in the middle of a moment that has two channels.
    for step in (2, 6, 1001 * 2, 3200):
        if step > 6 or rate < 12000:
            assert await mic.utter(pcm, step) == whole
    random = Random(1)
    frames, at = [], 0
    while at < len(pcm):
        frames.append(m.AudioBufferFrame(mic.id, pcm[at : (at := at + 2 * random.choice((0, 1, 7, 160, 999)))]))
    peer.say(mic.begin(), *frames, mic.end())
    assert await mic.updates() == whole


async def test_one_utterance_at_a_time(peer: Peer) -> None:
    mic = await microphone(peer)
    for request in (mic.end(), mic.cancel()):
        assert await peer.refused(request) == 4104
    await peer.ask(mic.begin(), m.Ack)
    assert await peer.refused(mic.begin()) == 4103
    # What was begun goes on.
    peer.say(*mic.sound(tone(100)), mic.end())
    assert (await mic.updates())[-1].text == "w1"
    await peer.get(m.Ack)
    await mic.quiet()


async def test_two_voice_inputs_of_a_session_hear_for_themselves(peer: Peer) -> None:
    first, second = await microphone(peer), await microphone(peer)
    peer.say(first.begin(), second.begin(), *first.sound(tone(200)), *second.sound(tone(100)))
    assert [await peer.get(m.Ack), await peer.get(m.Ack)] == [m.Ack(20), m.Ack(20)]
    assert {(await peer.get(m.WireTranscriptUpdate)).voice_input_id for _ in range(2)} == {first.id, second.id}
    peer.say(second.end())
    assert (await second.updates())[-1].text == "w1"
    await peer.get(m.Ack)
    peer.say(first.end())
    assert (await first.updates())[-1].text == "w1 w2"


async def test_whatever_is_sent_in_one_go_is_done_in_its_order(peer: Peer) -> None:
    mic = await microphone(peer)
    peer.say(
        mic.begin(), *mic.sound(tone(300), 640), mic.end(),
        *mic.sound(tone(900)),  # between utterances: nobody listens
        mic.begin(), *mic.sound(tone(200)), mic.cancel(), *mic.sound(tone(900)),
        mic.begin(), *mic.sound(tone(100)), mic.end(), mic.end(), mic.destroy(), mic.begin(),
    )  # fmt: skip
    heard = [await peer.hear() for _ in range(15)]
    texts = [each.text for each in heard if isinstance(each, m.WireTranscriptUpdate) and each.kind == FINAL]
    assert texts == ["w1 w2 w3", "w1"]
    errors = [each for each in heard if isinstance(each, m.ErrorResponse)]
    assert [(error.request_id, error.code) for error in errors] == [(21, 4104), (20, 4102)]
    acks = [each.request_id for each in heard if isinstance(each, m.Ack)]
    assert acks == [20, 21, 20, 22, 20, 21, 23]


async def test_sound_between_utterances_and_empty_frames_are_harmless(peer: Peer) -> None:
    mic = await microphone(peer)
    peer.say(*mic.sound(tone(500)), m.AudioBufferFrame(mic.id))
    await mic.quiet()
    peer.say(mic.begin(), m.AudioBufferFrame(mic.id), *mic.sound(tone(100)), m.AudioBufferFrame(mic.id), mic.end())
    assert (await mic.updates())[-1].text == "w1"
    assert await peer.get(m.Ack) == m.Ack(21)
    peer.say(*mic.sound(tone(500)))
    await mic.quiet()


async def test_the_end_always_gives_one_transcript(peer: Peer) -> None:
    mic = await microphone(peer)
    for pcm, text in ((b"", ""), (silence(1000), ""), (tone(10), ""), (tone(1000), words(1, 10))):
        for hands_free in (False, True):
            peer.say(mic.begin(hands_free=hands_free), *mic.sound(pcm), mic.end())
            found = await mic.updates()
            assert found[-1].text == text
            assert await peer.get(m.Ack) == m.Ack(21)
            await mic.quiet()


async def test_what_is_cancelled_is_never_told(peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    await peer.ask(mic.begin(agent), m.Ack)
    peer.say(*mic.sound(tone(200)))
    assert (await peer.get(m.WireTranscriptUpdate)).kind == Kind.SPEECH_START
    assert await peer.ask(mic.cancel(), m.Ack) == m.Ack(22)
    await mic.quiet()
    # Destroyed, it is as silent.
    await peer.ask(mic.begin(agent), m.Ack)
    peer.say(*mic.sound(tone(200)))
    assert (await peer.get(m.WireTranscriptUpdate)).kind == Kind.SPEECH_START
    assert await peer.ask(mic.destroy(), m.Ack) == m.Ack(23)
    assert await peer.refused(mic.end()) == 4102


async def test_an_engine_that_breaks_ends_the_utterance_and_nothing_else(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    async with server.peer() as peer:
        mic = await microphone(peer)
        await peer.ask(mic.begin(), m.Ack)
        with monkeypatch.context() as patch:
            patch.setattr(MockUtterance, "_take", breaks)
            peer.say(*mic.sound(tone(200)))
            error = await peer.get(m.ErrorResponse)
        assert (error.request_id, error.code, error.voice_input_id) == (0, 4100, mic.id)
        # Whoever waits for its end hears it.
        assert (await mic.updates())[-1].text == ""
        assert "an utterance failed" in caplog.text
        await mic.quiet()
        assert (await mic.utter(tone(100)))[-1].text == "w1"


# Hands-free.


async def test_silence_alone_never_ends_an_utterance(peer: Peer) -> None:
    mic = await microphone(peer, vad_min_silence_ms=200)
    peer.say(mic.begin(hands_free=True), *mic.sound(silence(5000)))
    assert await peer.get(m.Ack) == m.Ack(20)
    assert await peer.refused(mic.begin(hands_free=True)) == 4103
    peer.say(*mic.sound(tone(300)), mic.end())
    assert (await mic.updates())[-1].text == "w1 w2 w3"


async def test_a_pause_after_speech_ends_it_and_the_rest_is_nobodys(peer: Peer) -> None:
    mic = await microphone(peer, vad_min_silence_ms=400)
    pcm = silence(300) + tone(300) + silence(300) + tone(100) + silence(400)
    for step in (0, 320):
        peer.say(mic.begin(hands_free=True), *mic.sound(pcm + tone(500), step))
        found = await mic.updates()
        assert (found[-1].text, found[-1].audio_ms_consumed) == ("w1 w2 w3 w4", 1400)
        assert Kind.SEGMENT_FINAL not in kinds(found)
        await mic.quiet()


async def test_a_pause_of_no_length_is_still_a_pause(peer: Peer) -> None:
    mic = await microphone(peer, vad_min_silence_ms=0)
    found = await mic.utter(tone(200) + silence(100) + tone(100))
    assert [each.text for each in found if each.kind == Kind.SEGMENT_FINAL] == ["w1 w2"]
    mic = await microphone(peer, vad_min_silence_ms=2**32 - 1)
    found = await mic.utter(tone(200) + silence(9000) + tone(100))
    assert [each.text for each in found if each.kind >= Kind.SEGMENT_FINAL] == ["w1 w2 w3"]


# Too long.


@pytest.mark.parametrize("hands_free", [False, True])
async def test_the_limit_counts_sound_and_ends_the_utterance(peer: Peer, hands_free: bool) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    begin = mic.begin(agent, hands_free=hands_free, max_utterance_ms=1000)
    peer.say(begin, *mic.sound(tone(1001)), *mic.sound(tone(5000)), *mic.sound(tone(100)))
    heard = [await peer.hear()]
    while not isinstance(heard[-1], m.ErrorResponse):
        heard.append(await peer.hear())
    error = heard[-1]
    assert (error.request_id, error.code, error.voice_input_id) == (0, 4105, mic.id)
    assert FINAL not in [each.kind for each in heard if isinstance(each, m.WireTranscriptUpdate)]
    await mic.quiet()
    # Just as long as it may be; and no agent was told of the other one.
    assert (await mic.utter(tone(1000), max_utterance_ms=1000))[-1].text == words(1, 10)
    assert not (await peer.ask(m.SaveHistoryRequest(9, agent), m.SaveHistoryResponse)).entries


async def test_what_ended_in_time_is_not_too_long_whatever_came_with_it(peer: Peer) -> None:
    mic = await microphone(peer, vad_min_silence_ms=200)
    peer.say(mic.begin(hands_free=True, max_utterance_ms=600), *mic.sound(tone(300) + silence(300) + tone(900)))
    assert (await mic.updates())[-1].text == "w1 w2 w3"
    await mic.quiet()


@pytest.mark.parametrize("limit", [0, 600_001, 2**32 - 1])
async def test_no_utterance_is_longer_than_ten_minutes(peer: Peer, limit: int) -> None:
    mic = await microphone(peer, sample_rate=8000)
    minute = m.AudioBufferFrame(mic.id, silence(60_000, rate=8000))
    peer.say(mic.begin(max_utterance_ms=limit), *[minute] * 10, mic.end())
    assert (await mic.updates())[-1].audio_ms_consumed == 600_000
    await peer.get(m.Ack)
    peer.say(mic.begin(max_utterance_ms=limit), *[minute] * 10, m.AudioBufferFrame(mic.id, b"\0\0"))
    assert await peer.get(m.Ack) == m.Ack(20)
    assert (await peer.get(m.ErrorResponse)).code == 4105
    await mic.quiet()
