"""The voice inputs of a session: sound in, transcripts out, and what was said to the agent.

The frames of one voice input are handled in the order in which they came, each when the one before it is done: a new
utterance waits for the last words of the one before. Sound that waits is put together, and counts as what a client has
under way: one that sends it faster than it is understood is not read for a while. Voice inputs do not wait for each
other.

When the server stops, an utterance that was begun may come to its end: that is no new work.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from trunkline.core.faults import Fault, NoRecognizer
from trunkline.core.graph.hosting import VoiceInputDescription
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.host import HostedUtterance, HostedVoice
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind
from trunkline.wires.tryll.serve.requests import Reporter
from trunkline.wires.tryll.serve.scheduler import RequestLane

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve.session import ClientSession
    from trunkline.wires.tryll.serve.turns import ServedAgent

logger = logging.getLogger(__name__)

#: Voice inputs of one session at a time: microphones, and not players.
MAX_VOICES = 32
#: Like the id of an agent, that of a voice input is the session's, followed by so many bits.
VOICE_BITS = 24
#: How much more sound that waits counts than what it takes: of a client's 16 MiB, so that what is asked for behind it
#: does not have to wait for minutes of it.
SOUND_WEIGHT = 4


def _described(request: m.CreateVoiceInputRequest) -> VoiceInputDescription:
    return VoiceInputDescription(
        request.model_name,
        request.sample_rate,
        request.channels,
        request.bits_per_sample,
        request.vad_threshold,
        request.vad_min_silence_ms,
        request.vad_speech_pad_ms,
        request.hotwords_storage_path,
        request.hotwords_score,
    )


class VoiceInputs:
    """Those of one session."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.closed = False
        """Whether the session is over."""
        self._inputs: dict[int, VoiceInput] = {}
        self._count = 0
        """How many there have been."""

    async def create(self, request: m.CreateVoiceInputRequest) -> None:
        """Make one."""
        session = self.session
        host = session.configured()
        if len(self._inputs) >= MAX_VOICES or self._count >> VOICE_BITS:
            raise TryllError(4100, f"A session has at most {MAX_VOICES} voice inputs.")
        reporter = Reporter(session.connection, request.request_id)
        hosted, size = await session.keep(partial(host.create_voice, _described(request), reporter), request, 4100)
        self._count += 1
        voice_id = session.connection.id << VOICE_BITS | self._count
        self._inputs[voice_id] = VoiceInput(self, voice_id, hosted, size)
        session.say(m.CreateVoiceInputResponse(request.request_id, voice_id))

    @property
    def listening(self) -> bool:
        """Whether one of them is in the middle of an utterance."""
        return any(each.listening for each in self._inputs.values())

    def forget(self, voice: VoiceInput) -> None:
        """It was destroyed."""
        del self._inputs[voice.id]
        self.session.kept.give_back(voice.size)

    def find(self, voice_id: int) -> VoiceInput | None:
        """One that is there."""
        return self._inputs.get(voice_id)

    def close(self) -> None:
        """The session ends: whatever is heard from now on concerns nobody."""
        self.closed = True
        for each in self._inputs.values():
            each.close()


class VoiceInput:
    """One of them, with the utterance that it hears."""

    def __init__(self, inputs: VoiceInputs, voice_id: int, hosted: HostedVoice, size: int) -> None:
        self.id = voice_id
        self.size = size
        """What it takes of the room that the session has."""
        self.inputs = inputs
        self.session = inputs.session
        self._gone = False
        """Whether it was destroyed, or the session is over."""
        self._hosted = hosted
        self._utterance: HostedUtterance | None = None
        self._listener: _Listener | None = None
        """Who hears it."""
        self._heard = False
        """Whether it has any sound."""
        self._lane = RequestLane()
        """Its frames, as they came."""
        self._frames = self._requests = 0
        """What waits for its turn or has it, sound included; and what of it is no sound."""
        self._sound: bytearray | None = None
        """Sound that is last in the queue, and has room for more."""

    @property
    def _active(self) -> HostedUtterance | None:
        """The utterance that is under way."""
        return self._utterance if self._utterance is not None and not self._utterance.over else None

    @property
    def listening(self) -> bool:
        """Whether there is sound whose words are still to be told."""
        return self._heard and self._active is not None

    def close(self) -> None:
        """Stop listening, and let go of everything. Idempotent."""
        self._gone = True
        if self._utterance is not None:
            self._utterance.cancel()
            self._utterance = None
        self._hosted.close()

    # Frames, as they come.

    def put(self, do: Callable[[Any], Awaitable[None]], request: m.Message, size: int, *, ends: bool = False) -> None:
        """Do what is asked for when it is its turn. `ends`: what was heard before it is not wanted."""
        if ends and not self._requests and self._active is not None:
            # Only sound is before it: nobody need understand that any more.
            self._active.hurry()
        self._sound = None

        async def step(request: m.Message) -> None:
            try:
                if self._gone:
                    raise TryllError(4102)
                await do(request)
            finally:
                self._frames -= 1
                self._requests -= 1

        ongoing = self._frames > 0 or self._active is not None
        self.session.in_order(step, request, size, self._lane, new=not ongoing)
        self._frames += 1
        self._requests += 1

    def hear(self, frame: m.AudioBufferFrame, size: int) -> None:
        """Listen to some sound when it is its turn. Nobody listens to it between utterances."""
        if self._sound is not None:
            self._sound += frame.pcm
            self.session.weigh(SOUND_WEIGHT * len(frame.pcm))
            return
        if not frame.pcm or (not self._frames and self._active is None):
            return
        sound = self._sound = bytearray(frame.pcm)

        async def step(frame: m.AudioBufferFrame) -> None:
            try:
                if self._sound is sound:
                    self._sound = None
                await self._listen(sound)
            finally:
                self._frames -= 1
                self.session.weigh(-SOUND_WEIGHT * len(sound))

        self.session.in_order(step, frame, size, self._lane, new=False)
        self.session.weigh(SOUND_WEIGHT * len(sound))
        self._frames += 1

    async def _listen(self, pcm: bytearray) -> None:
        utterance = self._active
        if utterance is None:
            return
        self._heard = True
        try:
            await utterance.feed(pcm)
        except Exception as error:
            logger.exception("an utterance failed")
            self._break_off(utterance, NoRecognizer(f"The server failed at this ({type(error).__name__})."))

    def _break_off(self, utterance: HostedUtterance, why: Fault | None = None) -> None:
        """It failed, and is over. What was understood until then is its transcript: the client waits for one."""
        if utterance.over or self._listener is None:
            return
        utterance.cancel()
        if why is not None:
            self._listener.failed(why)
        self._listener.end()

    def begin(self, request: m.BeginUtteranceRequest, size: int) -> None:
        """Listen from now on, or from its turn on.

        Whether the agent is there is seen now: what is asked for after this, such as its end, does not concern it.
        """
        if self.session.server.stopping:
            raise TryllError(2001)
        missing = None
        try:
            if request.agent_id:
                self.session.served(request.agent_id)
        except TryllError as error:
            missing = error

        async def step(request: m.BeginUtteranceRequest) -> None:
            self._begin(request, missing)

        if self._frames:
            self.put(step, request, size)
        else:
            self._begin(request, missing)

    # Requests, in their turn.

    def _begin(self, request: m.BeginUtteranceRequest, missing: TryllError | None) -> None:
        if self._active is not None:
            raise TryllError(4103)
        if missing is not None:
            raise missing
        self._heard = False
        self._listener = _Listener(self, request)
        hands_free, most = request.auto_finish_on_silence, request.max_utterance_ms
        self._utterance = self._hosted.begin(self._listener, hands_free=hands_free, max_ms=most)
        self.session.say(m.Ack(request.request_id))

    async def end(self, request: m.EndUtteranceRequest) -> None:
        """Take what was heard."""
        utterance = self._needed()
        try:
            await utterance.finish()
        except Exception:
            self._break_off(utterance)
            raise
        self.session.say(m.Ack(request.request_id))

    async def cancel(self, request: m.CancelUtteranceRequest) -> None:
        """Forget what was heard."""
        self._needed().cancel()
        self.session.say(m.Ack(request.request_id))

    async def destroy(self, request: m.DestroyVoiceInputRequest) -> None:
        """End it."""
        self.close()
        self.inputs.forget(self)
        self.session.say(m.Ack(request.request_id))

    def _needed(self) -> HostedUtterance:
        if (found := self._active) is None:
            raise TryllError(4104)
        return found


class _Listener:
    """A `TranscriptListener` that tells the client, and the agent."""

    def __init__(self, voice: VoiceInput, request: m.BeginUtteranceRequest) -> None:
        self._voice = voice
        self._session = voice.session
        self._agent_id = request.agent_id
        self._barge_in = request.barge_in
        self._segments: list[str] = []
        self._told_ms = 0

    def update(self, kind: int, text: str, audio_ms: int) -> None:
        self._told_ms = audio_ms
        if kind == Kind.PARTIAL and self._session.connection.behind:
            # The next one says more.
            return
        if kind == Kind.SEGMENT_FINAL and text:
            self._segments.append(text)
        self._session.say(m.WireTranscriptUpdate(self._voice.id, kind, text, audio_ms))
        if kind == Kind.SPEECH_START and self._barge_in:
            self._interrupt()
        elif kind == Kind.UTTERANCE_FINAL and text and self._agent_id:
            self._send(text)

    def failed(self, error: Fault) -> None:
        told = TryllError.of(error)
        self._session.say(m.ErrorResponse(0, told.code, told.message, voice_input_id=self._voice.id))

    def end(self) -> None:
        """That was all."""
        self.update(Kind.UTTERANCE_FINAL, " ".join(self._segments), self._told_ms)

    def _interrupt(self) -> None:
        """Somebody speaks: the agent falls silent."""
        served = self._served()
        if served is not None and served.turn is not None:
            served.turn.cancel()

    def _served(self) -> ServedAgent | None:
        try:
            return self._session.served(self._agent_id)
        except TryllError:
            return None

    def _send(self, text: str) -> None:
        """Say to the agent what was heard. The end of the voice input makes no difference: the client was told it."""
        if self._voice.inputs.closed:
            return
        served = self._served()
        if served is not None and served.changing:
            # It is for what the agent will be.
            self._send_later(text, served.next.append)
        elif served is not None and served.turn is not None and self._barge_in:
            # It may have been interrupted already, and be on its last words.
            served.turn.cancel()
            self._send_later(text, served.when_idle)
        else:
            # Whatever is wrong is told from there: there is no such agent, or it is busy.
            self._session.handle(m.SendMessageRequest(0, self._agent_id, text), len(text), self._voice.id)

    def _send_later(self, text: str, when: Callable[[Callable[[], None]], None]) -> None:
        # What waits counts, like a request that does.
        session, size = self._session, len(text)
        session.weigh(size, 1)

        def go_on() -> None:
            session.weigh(-size, -1)
            self._send(text)

        when(go_on)


# What is done for each kind of frame.


def _create(session: ClientSession, request: m.CreateVoiceInputRequest, size: int) -> None:
    if session.voices is None:
        session.voices = VoiceInputs(session)
    session.in_order(session.voices.create, request, size)


def _found(session: ClientSession, request: Any) -> VoiceInput:
    found = session.voices.find(request.voice_input_id) if session.voices is not None else None
    if found is None:
        raise TryllError(4102)
    return found


def _destroy(session: ClientSession, request: m.DestroyVoiceInputRequest, size: int) -> None:
    voice = _found(session, request)
    voice.put(voice.destroy, request, size, ends=True)


def _begin(session: ClientSession, request: m.BeginUtteranceRequest, size: int) -> None:
    _found(session, request).begin(request, size)


def _end(session: ClientSession, request: m.EndUtteranceRequest, size: int) -> None:
    voice = _found(session, request)
    voice.put(voice.end, request, size)


def _cancel(session: ClientSession, request: m.CancelUtteranceRequest, size: int) -> None:
    voice = _found(session, request)
    voice.put(voice.cancel, request, size, ends=True)


def _audio(session: ClientSession, frame: m.AudioBufferFrame, size: int) -> None:
    voice = session.voices.find(frame.voice_input_id) if session.voices is not None else None
    if voice is not None:
        voice.hear(frame, size)


#: What is done for each kind of request, and the number for a failure that nobody foresaw.
VOICE_REQUESTS: dict[type[m.Message], tuple[Callable[[ClientSession, Any, int], None], int]] = {
    m.CreateVoiceInputRequest: (_create, 4100),
    m.DestroyVoiceInputRequest: (_destroy, 4102),
    m.BeginUtteranceRequest: (_begin, 4100),
    m.EndUtteranceRequest: (_end, 4100),
    m.CancelUtteranceRequest: (_cancel, 4100),
    m.AudioBufferFrame: (_audio, 4100),
}
