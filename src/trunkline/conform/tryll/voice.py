"""Checks of voice, on the documented Mock engine: a loud tenth of a second is the next word, `w1 w2 w3`.

A server without voice answers 5002; then none of this is exercised.
"""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, same
from trunkline.conform.kit import Broken
from trunkline.conform.tryll.additions import has
from trunkline.conform.tryll.link import Link, ObservedTurn, shown
from trunkline.conform.tryll.stage import MOCK, SLOW, Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well
from trunkline.conform.tryll.turns import QUIET_SECONDS
from trunkline.wires.tryll import messages as m

#: A tenth of a second at 16 kHz: a square wave far above the Mock's threshold, and silence.
LOUD = (b"\x00\x20" * 8 + b"\x00\xe0" * 8) * 100
SILENT = bytes(2 * 1600)

_KINDS = m.TranscriptUpdateKind


async def _ear(stage: Stage, link: Link | None = None, **options: Any) -> tuple[Link, int]:
    link = link or await stage.session()
    found = await has(link, "voice", m.CreateVoiceInputRequest(0, MOCK).replace(**options))
    if not isinstance(found, m.CreateVoiceInputResponse) or not found.voice_input_id:
        raise Broken(f"`CreateVoiceInputRequest` got {shown(found)}")
    return link, found.voice_input_id


async def _begin(link: Link, ear: int, **options: Any) -> None:
    request = m.BeginUtteranceRequest(0, ear, auto_finish_on_silence=False).replace(**options)
    await link.ask(request, m.Ack)


async def _hear(link: Link, ear: int, *sounds: bytes) -> None:
    await link.send(*(m.AudioBufferFrame(ear, sound) for sound in sounds))


async def _until_final(link: Link, ear: int) -> list[m.WireTranscriptUpdate]:
    """All updates of an utterance, its last included."""
    updates: list[m.WireTranscriptUpdate] = []
    while not updates or updates[-1].kind != _KINDS.UTTERANCE_FINAL:
        found = await link.take(
            lambda message: isinstance(message, m.WireTranscriptUpdate) and message.voice_input_id == ear,
            "UtteranceFinal",
        )
        if isinstance(found, m.WireTranscriptUpdate):
            updates.append(found)
    return updates


@check("tryll.voice.words", "MAY", "Voice input and transcripts", "mock")
async def words(stage: Stage) -> None:
    """Loud sound becomes words: `SpeechStart` before any text, partials contained in the final text, one final."""
    link, ear = await _ear(stage)
    await _begin(link, ear)
    await _hear(link, ear, SILENT, *[LOUD] * 4, SILENT)
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    updates = await _until_final(link, ear)
    same("the text", updates[-1].text, "w1 w2 w3 w4")
    expect(updates[0].kind == _KINDS.SPEECH_START and not updates[0].text, f"first came {shown(updates[0])}")
    partials = [each.text for each in updates if each.kind == _KINDS.PARTIAL]
    expect(bool(partials), "there was no partial text")
    expect(all(text in updates[-1].text for text in partials), f"the partial texts were {partials}")
    consumed = [each.audio_ms_consumed for each in updates]
    same("the sound that was consumed", consumed, sorted(consumed))


@check("tryll.voice.silence", "MAY", "Voice input and transcripts", "mock")
async def silence(stage: Stage) -> None:
    """Silence has no text, and ending the utterance still produces one `UtteranceFinal`."""
    link, ear = await _ear(stage)
    await _begin(link, ear)
    await _hear(link, ear, *[SILENT] * 5, b"")
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    same("the texts", {each.text for each in await _until_final(link, ear)}, {""})


@check("tryll.voice.hands-free", "MAY", "Voice input and transcripts", "mock")
async def hands_free(stage: Stage) -> None:
    """In hands-free mode, a pause after speech ends the utterance; silence before it does not."""
    link, ear = await _ear(stage, vad_min_silence_ms=300)
    await _begin(link, ear, auto_finish_on_silence=True)
    await _hear(link, ear, *[SILENT] * 6, LOUD, LOUD, *[SILENT] * 5)
    same("the text", (await _until_final(link, ear))[-1].text, "w1 w2")


@check("tryll.voice.cancel", "MAY", "Voice input and transcripts", "mock")
async def cancelled(stage: Stage) -> None:
    """A cancelled utterance produces no `UtteranceFinal`, and the next one starts with the first word."""
    link, ear = await _ear(stage)
    await _begin(link, ear)
    await _hear(link, ear, LOUD, LOUD)
    await link.ask(m.CancelUtteranceRequest(0, ear), m.Ack)
    late = [each for each in await link.quiet(QUIET_SECONDS) if getattr(each, "kind", 0) == _KINDS.UTTERANCE_FINAL]
    expect(not late, "`UtteranceFinal` came")
    await _begin(link, ear)
    await _hear(link, ear, LOUD)
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    same("the text of the next one", (await _until_final(link, ear))[-1].text, "w1")


@check("tryll.voice.segments", "MAY", "Voice input and transcripts", "mock")
async def segments(stage: Stage) -> None:
    """A pause ends a segment with `SegmentFinal`; the final text is the segments, joined by single spaces."""
    link, ear = await _ear(stage, vad_min_silence_ms=300)
    await _begin(link, ear)
    await _hear(link, ear, LOUD, LOUD, *[SILENT] * 5, LOUD, LOUD, LOUD, *[SILENT] * 5)
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    updates = await _until_final(link, ear)
    closed = [each.text for each in updates if each.kind == _KINDS.SEGMENT_FINAL and each.text]
    expect(closed[:1] == ["w1 w2"], f"the segments were {closed}")
    same("the text", updates[-1].text, "w1 w2 w3 w4 w5")


@check("tryll.voice.pieces", "MAY", "Voice input and transcripts", "mock")
async def pieces(stage: Stage) -> None:
    """How sound is divided into frames does not change the result; sound between utterances is dropped."""
    link, ear = await _ear(stage)
    sound = SILENT + LOUD * 3 + SILENT
    await _hear(link, ear, LOUD)
    for step in (len(sound), 700, 1402):
        await _begin(link, ear)
        await _hear(link, ear, *(sound[at : at + step] for at in range(0, len(sound), step)))
        await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
        same(f"the text of pieces of {step} bytes", (await _until_final(link, ear))[-1].text, "w1 w2 w3")


@check("tryll.voice.order", "MAY", "Voice input and transcripts", "mock")
async def in_order(stage: Stage) -> None:
    """Frames of one voice input are handled in order: a begin right after an end waits for it."""
    link, ear = await _ear(stage)
    begin = m.BeginUtteranceRequest(0, ear, auto_finish_on_silence=False)
    one, two = (m.AudioBufferFrame(ear, LOUD), m.AudioBufferFrame(ear, LOUD * 2))
    await link.send(
        begin.replace(request_id=1), one, m.EndUtteranceRequest(2, ear),
        begin.replace(request_id=3), two, m.EndUtteranceRequest(4, ear),
    )  # fmt: skip
    for number in (1, 2, 3, 4):
        same(f"the answer to request {number}", await link.answer(number, "it"), m.Ack(number))
    texts = [(await _until_final(link, ear))[-1].text for _ in range(2)]
    same("the texts", texts, ["w1", "w1 w2"])


@check("tryll.voice.format", "MAY", "Voice input and transcripts", "mock")
async def formats(stage: Stage) -> None:
    """Sound other than 16 bits, one or two channels, 8 to 48 kHz is refused with 4101."""
    link, _ = await _ear(stage)
    for wrong in ({"bits_per_sample": 8}, {"channels": 3}, {"channels": 0}, {"sample_rate": 7999},
                  {"sample_rate": 48001}):  # fmt: skip
        request = m.CreateVoiceInputRequest(0, MOCK).replace(**wrong)
        await link.refused(request, 4101, why=f"with {wrong}")
    for right in ({"sample_rate": 8000}, {"sample_rate": 48000, "channels": 2}):
        await _ear(stage, link, **right)


@check("tryll.voice.states", "MAY", "Voice input and transcripts", "mock")
async def states(stage: Stage) -> None:
    """Beginning a second utterance gets 4103, ending one that does not exist 4104, and an unknown voice input 4102."""
    link, ear = await _ear(stage)
    for kind in (m.EndUtteranceRequest, m.CancelUtteranceRequest):
        await link.refused(kind(0, ear), 4104, why="while it does not listen")
    await _begin(link, ear)
    await link.refused(m.BeginUtteranceRequest(0, ear), 4103, why="while it listens")
    other = await stage.session()
    for asker, id in ((link, NOBODY), (other, ear)):
        for request in (
            m.BeginUtteranceRequest(0, id), m.EndUtteranceRequest(0, id), m.CancelUtteranceRequest(0, id),
            m.DestroyVoiceInputRequest(0, id),
        ):  # fmt: skip
            await asker.refused(request, 4102, why="for a voice input that does not exist")
    await link.ask(m.DestroyVoiceInputRequest(0, ear), m.Ack)
    await link.refused(m.EndUtteranceRequest(0, ear), 4102, why="for a destroyed voice input")


@check("tryll.voice.unconfigured", "MAY", "Session lifecycle", "mock")
async def unconfigured(stage: Stage) -> None:
    """Before the session is configured, a voice input is refused with 2002."""
    link = await stage.greeted()
    found = await has(link, "voice", m.CreateVoiceInputRequest(0, MOCK))
    expect(isinstance(found, m.ErrorResponse) and found.code == 2002, f"it got {shown(found)}")


@check("tryll.voice.autosend", "MAY", "Voice input and transcripts", "mock")
async def autosend(stage: Stage) -> None:
    """The recognized text is sent to the agent once, after the final text, as a turn with request id 0."""
    link, ear = await _ear(stage)
    agent = await link.agent(m.NodeDescription("say", m.GenerateParams(MOCK)))
    await _begin(link, ear, agent_id=agent)
    await _hear(link, ear, LOUD, LOUD)
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    same("the text", (await _until_final(link, ear))[-1].text, "w1 w2")
    turn: ObservedTurn = ended_well(await link.turn(agent))
    expect("w1 w2" in turn.text and turn.complete.request_id == 0, f"the turn was {shown(turn.complete)} {turn.text!a}")
    await _begin(link, ear, agent_id=agent)
    await _hear(link, ear, SILENT, SILENT)
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    await _until_final(link, ear)
    late = [each for each in await link.quiet(QUIET_SECONDS) if isinstance(each, m.AnswerText)]
    expect(not late, "silence was sent to the agent")


@check("tryll.voice.too-long", "MAY", "Voice input and transcripts", "mock")
async def too_long(stage: Stage) -> None:
    """An utterance with more sound than `max_utterance_ms` ends with 4105, once, and without a final text."""
    link, ear = await _ear(stage)
    await _begin(link, ear, max_utterance_ms=300)
    await _hear(link, ear, *[LOUD] * 6)
    found = await link.take(lambda message: isinstance(message, m.ErrorResponse), "error 4105")
    if not isinstance(found, m.ErrorResponse) or (found.code, found.voice_input_id) != (4105, ear):
        raise Broken(f"it was ended with {shown(found)}")
    kinds = [each for each in await link.quiet(QUIET_SECONDS) if not isinstance(each, m.WireTranscriptUpdate)
             or each.kind == _KINDS.UTTERANCE_FINAL]  # fmt: skip
    expect(not kinds, "more came after 4105")
    await _begin(link, ear)


@check("tryll.voice.mute", "MAY", "Streaming answers", "mock")
async def mute(stage: Stage) -> None:
    """With the Mock voice, a node that speaks produces its text as usual, and no sound."""
    link, _ = await _ear(stage)
    speaking = m.NodeDescription("say", m.GenerateAndSpeakParams(MOCK, MOCK))
    agent = await link.agent(speaking)
    turn = ended_well(await link.say(agent, "hello there"))
    expect("hello there" in turn.text, f"the answer is {turn.text!a}")
    agent = await link.agent(canned("line", LINE, exit="aloud"), m.NodeDescription("aloud", m.SpeakParams(MOCK)))
    same("the answer", ended_well(await link.say(agent, "hello")).text, LINE)
    sound = [each for each in await link.quiet(QUIET_SECONDS) if isinstance(each, m.TtsAudioFrame)]
    expect(not sound, "there was sound")


@check("tryll.voice.nobody", "MAY", "Voice input and transcripts", "mock")
async def nobody(stage: Stage) -> None:
    """Listening for an unknown agent is refused with 3001, or 3002 if it was destroyed; the input stays idle."""
    link, ear = await _ear(stage)
    agent = await link.agent(canned("say", LINE))
    await link.ask(m.DestroyAgentRequest(0, agent), m.Ack)
    await link.refused(m.BeginUtteranceRequest(0, ear, NOBODY), 3001, why="for an agent that never existed")
    await link.refused(m.BeginUtteranceRequest(0, ear, agent), 3002, why="for a destroyed agent")
    await _begin(link, ear)


@check("tryll.voice.hotwords", "MAY", "Voice input and transcripts", "mock")
async def hotwords(stage: Stage) -> None:
    """A hotwords file that does not exist is refused with 3010, and one outside the folder with 3009."""
    link, _ = await _ear(stage)
    for path, code in (("conform-not-there.txt", 3010), ("../conform.txt", 3009), ("/etc/hostname", 3009)):
        request = m.CreateVoiceInputRequest(0, MOCK, hotwords_storage_path=path)
        await link.refused(request, code, why=f"with hotwords in {path!a}")


@check("tryll.voice.busy", "MAY", "Voice input and transcripts", "mock")
async def busy(stage: Stage) -> None:
    """Without `barge_in`, text recognized for a busy agent gets 3004 with request id 0; the turn continues."""
    link, ear = await _ear(stage)
    agent = await link.agent(m.NodeDescription("say", m.GenerateParams(SLOW, stream=True)))
    await link.send(m.SendMessageRequest(7, agent, "one two three four five six seven eight nine ten " * 3))
    await _begin(link, ear, agent_id=agent)
    await _hear(link, ear, LOUD, LOUD)
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    same("the text", (await _until_final(link, ear))[-1].text, "w1 w2")
    found = await link.take(lambda message: isinstance(message, m.ErrorResponse), "error 3004")
    told = (found.request_id, found.code, found.agent_id, found.voice_input_id) if isinstance(
        found, m.ErrorResponse) else ()  # fmt: skip
    same("the error", told, (0, 3004, agent, ear))
    turn = ended_well(await link.turn(agent))
    same("the request id of the turn that continued", turn.complete.request_id, 7)


@check("tryll.voice.barge-in", "MAY", "Voice input and transcripts", "mock")
async def barge_in(stage: Stage) -> None:
    """With `barge_in`, speech cancels the running turn, and the recognized text is answered instead."""
    link, ear = await _ear(stage)
    agent = await link.agent(m.NodeDescription("say", m.GenerateParams(SLOW, stream=True)))
    await link.send(m.SendMessageRequest(7, agent, "and so on " * 200))
    await link.take(lambda message: isinstance(message, m.AnswerText), "text of the answer")
    await _begin(link, ear, agent_id=agent, barge_in=True)
    await _hear(link, ear, LOUD, LOUD)
    turn = await link.turn(agent)
    same("how the turn ended", (turn.complete.request_id, turn.complete.status), (7, m.TurnStatus.CANCELLED))
    await link.ask(m.EndUtteranceRequest(0, ear), m.Ack)
    turn = ended_well(await link.turn(agent))
    expect("w1 w2" in turn.text and turn.complete.request_id == 0, f"then it said {turn.text!a}")
