"""A voice input on a Tryll server, for whoever speaks into it. It outlives its connection: the next one has it again.

    voice = await tryll.voice_input("whisper-base", sample_rate=48000)
    await voice.begin(agent=agent)
    for piece in microphone:
        await voice.send(piece)
    print(await voice.end())
    if voice.reply is not None:
        print((await voice.reply.result()).text)

One utterance at a time. What is understood meanwhile comes to a listener, or from `updates`. An utterance that the
connection is lost in is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, Self

from trunkline.wires.tryll.drive.agent import TURN_SECONDS, RemoteAgent
from trunkline.wires.tryll.drive.connection import ClientConnection, Progress
from trunkline.wires.tryll.drive.events import call
from trunkline.wires.tryll.drive.replay import MODEL_SECONDS, REQUEST_SECONDS
from trunkline.wires.tryll.drive.turn import Reply
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    Ack,
    AudioBufferFrame,
    BeginUtteranceRequest,
    CancelUtteranceRequest,
    CreateVoiceInputRequest,
    CreateVoiceInputResponse,
    DestroyVoiceInputRequest,
    EndUtteranceRequest,
    WireTranscriptUpdate,
)
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind

logger = logging.getLogger(__name__)

#: The sound of one frame. A moment has two or four bytes, and none is cut in two.
FRAME_BYTES = 64 * 1024
#: How long the last words may take: a small machine writes down a minute.
TRANSCRIPT_SECONDS = 60.0
#: Updates that are kept for a reader who is late. The older ones of them say less than the newer.
MAX_UPDATES = 1000

_NO_ANSWER = 1003
_NOT_LISTENING = 4104
_TOO_LONG = 4105
#: Errors from this on are about the voice input. Those before are about the agent, which was not told.
_OF_VOICE = 4100

Listener = Callable[[WireTranscriptUpdate], object]


class VoiceOwner(Protocol):
    """What a voice input needs of the client that made it."""

    async def live(self) -> ClientConnection:
        """The connection; a new one, where everything is there again, if it was lost."""

    def release(self, made: RemoteVoice) -> None:
        """It is not to be made again."""


class _Utterance:
    """One utterance, as far as it is known."""

    def __init__(self, agent: RemoteAgent | None) -> None:
        self.agent = agent
        self.reply: Reply | None = None
        self.transcript: str | None = None
        self.error: TryllError | None = None
        self.untold: deque[WireTranscriptUpdate] = deque(maxlen=MAX_UPDATES)
        self.news = asyncio.Event()

    @property
    def over(self) -> bool:
        return self.transcript is not None or self.error is not None

    def fail(self, error: TryllError) -> None:
        if not self.over:
            self.error = error
            self.news.set()


class RemoteVoice:
    """A voice input of a session. Made by `Tryll.voice_input`."""

    def __init__(self, owner: VoiceOwner, request: CreateVoiceInputRequest) -> None:
        self.id = 0
        """What the server calls it; another number after each loss of the connection."""
        self._owner = owner
        self._request = request
        self._home: ClientConnection | None = None
        self._failure: TryllError | None = None
        """Why it could not be made again."""
        self._utterance = _Utterance(None)
        self._utterance.transcript = ""
        self._replies: list[Reply] = []
        """The answers that are to come, also to utterances before."""
        self._listener: Listener | None = None
        self._destroyed = False

    @classmethod
    async def made(
        cls,
        owner: VoiceOwner,
        model: str,
        *,
        progress: Progress | None = None,
        timeout: float = MODEL_SECONDS,
        **fields: Any,
    ) -> Self:
        """Make one. `progress` hears of a model that is downloaded for it.

        Args:
            fields: those of `CreateVoiceInputRequest`: `sample_rate`, `channels`, `hotwords_storage_path` and so on.

        Raises:
            TryllError: 3009, 3010, the hotwords; 4100, the model; 4101, the format.
        """
        link = await owner.live()
        voice = cls(owner, CreateVoiceInputRequest(0, model, **fields))
        await voice.create(link, timeout, progress)
        return voice

    # Utterances.

    async def begin(
        self,
        *,
        agent: RemoteAgent | None = None,
        hands_free: bool = False,
        max_ms: int = 60_000,
        barge_in: bool = True,
        timeout: float = REQUEST_SECONDS,
    ) -> None:
        """Listen from now on.

        Args:
            agent: who is told what was said, in a turn that the server begins: see `reply`.
            hands_free: whether a pause after speech ends the utterance.
            max_ms: the most sound that it may have.
            barge_in: whether speech ends a turn of the agent. Otherwise a busy one is not told: `reply` raises 3004.

        Raises:
            TryllError: 3001, 3002, there is no such agent; 4103, the voice input is listening; or as `end`.
        """
        link = await self._live()
        agent_id = agent.at(link) if agent is not None else 0
        request = BeginUtteranceRequest(0, self.id, agent_id, hands_free, max_ms, barge_in)
        begun = _Utterance(agent)
        try:
            # The last words of the one before come until then.
            await link.request(request, Ack, timeout, then=lambda: self._begun(begun))
        except BaseException as error:
            refused = isinstance(error, TryllError) and error.code != _NO_ANSWER
            if not refused and (self._utterance is begun or self._utterance.over):
                # Nobody knows of it: it must not stand in the way of the next.
                begun.fail(_cancelled())
                link.write(CancelUtteranceRequest(voice_input_id=self.id))
            raise

    def _begun(self, utterance: _Utterance) -> None:
        self._utterance = utterance

    async def send(self, pcm: bytes) -> None:
        """Let the server hear some sound, of the format that the voice input has. After the utterance, nobody listens.

        Raises:
            TryllError: 1002, the connection is lost.
            ValueError: half a sample.
        """
        if len(pcm) % 2:
            raise ValueError("samples have 16 bits, and one is cut in two")
        link = self._home
        if link is None or link.lost is not None:
            raise (link.lost if link is not None else self._failure) or TryllError(1002)
        for begin in range(0, len(pcm), FRAME_BYTES):
            await link.tell(AudioBufferFrame(self.id, pcm[begin : begin + FRAME_BYTES]))

    async def end(self, *, timeout: float = TRANSCRIPT_SECONDS) -> str:
        """Take what was heard; "" if nothing was. An utterance that has ended by itself gives what it gave.

        Raises:
            TryllError: 4104, there is no utterance; 4105, it is too long; 1002, the connection was lost; 1003, the last
                words did not come.
        """
        utterance = self._utterance
        if not utterance.over:
            try:
                await (await self._live()).request(EndUtteranceRequest(0, self.id), Ack, timeout)
            except TryllError as error:
                # It may have ended by itself just before.
                if error.code != _NOT_LISTENING or not utterance.over:
                    raise
        return await self.transcript(timeout=timeout)

    async def transcript(self, *, timeout: float | None = None) -> str:
        """Wait for the end of the utterance, and take what was heard. Raises as `end`."""
        utterance = self._utterance
        try:
            async with asyncio.timeout(timeout):
                while not utterance.over:
                    utterance.news.clear()
                    await utterance.news.wait()
        except TimeoutError:
            raise TryllError(1003, f"The transcript did not come within {timeout:g} s.") from None
        if utterance.error is not None:
            raise utterance.error
        return utterance.transcript or ""

    async def cancel(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """Forget what was heard.

        Raises:
            TryllError: 4104, there is nothing to forget; or as `end`.
        """
        utterance = self._utterance
        await (await self._live()).request(CancelUtteranceRequest(0, self.id), Ack, timeout)
        utterance.fail(_cancelled())

    @property
    def reply(self) -> Reply | None:
        """The agent's answer to what was said last; None if it was not told, or not yet."""
        return self._utterance.reply

    async def updates(self) -> AsyncIterator[WireTranscriptUpdate]:
        """What is understood of the utterance, up to its end. Raises as `end`."""
        utterance = self._utterance
        while True:
            while utterance.untold:
                yield utterance.untold.popleft()
            if utterance.error is not None:
                raise utterance.error
            if utterance.over:
                return
            utterance.news.clear()
            await utterance.news.wait()

    def on_update(self, listener: Listener | None) -> None:
        """Hear what is understood, as it comes, from the event loop; None: nobody does."""
        self._listener = listener

    async def destroy(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """End it, and an utterance. Idempotent."""
        if self._destroyed:
            return
        self._destroyed = True
        self._listener = None
        self._owner.release(self)
        link = self._home
        try:
            if link is not None and link.lost is None:
                # Last words may come until then, and the server answers them.
                await link.request(DestroyVoiceInputRequest(0, self.id), Ack, timeout)
        except TryllError:
            # With its connection it is gone, too.
            if link is None or link.lost is None:
                raise
        finally:
            self._utterance.fail(TryllError(4102, "The voice input was destroyed."))
            if link is not None:
                link.voices.pop(self.id, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.destroy()

    async def _live(self) -> ClientConnection:
        if self._destroyed:
            raise TryllError(4102)
        link = await self._owner.live()
        if self._home is not link:
            error = self._failure or TryllError(1002)
            raise TryllError(error.code, error.message)
        return link

    # For the client.

    async def create(self, link: ClientConnection, timeout: float, progress: Progress | None = None) -> None:
        """Make it, or make it again.

        Raises:
            TryllError: it cannot be made.
        """
        made = (await link.request(self._request, CreateVoiceInputResponse, timeout, progress))[-1]
        if self._destroyed:
            link.write(DestroyVoiceInputRequest(voice_input_id=made.voice_input_id))
            return
        self.id, self._home, self._failure = made.voice_input_id, link, None
        link.voices[self.id] = self

    def fail(self, error: TryllError) -> None:
        """It cannot be made again: whatever is asked of it raises that, until there is another connection."""
        logger.warning("a voice input could not be made again: %s", error)
        self._failure, self._home = error, None

    # For the connection.

    def feed(self, message: WireTranscriptUpdate) -> None:
        """Something was understood."""
        utterance = self._utterance
        if utterance.over:
            return
        utterance.untold.append(message)
        if message.kind == Kind.UTTERANCE_FINAL:
            utterance.transcript = message.text
            if message.text and utterance.agent is not None and self._home is not None:
                utterance.reply = _Unasked.expected(self._home, utterance.agent, message.text)
                self._replies = [reply for reply in (*self._replies, utterance.reply) if not reply.over]
        utterance.news.set()
        if self._listener is not None:
            call(self._listener, message, "a transcript")

    def complain(self, error: TryllError) -> None:
        """The server says that something is wrong, and nobody asked."""
        waiting = [reply for reply in self._replies if not reply.over]
        if error.code == _TOO_LONG:
            self._utterance.fail(error)
        elif error.code < _OF_VOICE and waiting:
            # Those before it were said to the agent, or wait for that with it.
            waiting[-1].lose(error)
        else:
            logger.warning("the server complains: %s", error)

    def lose(self, error: TryllError) -> None:
        """The connection is gone."""
        self._utterance.fail(error)


def _cancelled() -> TryllError:
    return TryllError(_NOT_LISTENING, "The utterance was cancelled.")


class _Unasked:
    """Conducts a turn that the server begins."""

    def __init__(self, link: ClientConnection, agent: RemoteAgent) -> None:
        self._link = link
        self._agent = agent
        self._agent_id = agent.id

    @classmethod
    def expected(cls, link: ClientConnection, agent: RemoteAgent, text: str) -> Reply:
        """The answer that is to come."""
        reply = Reply(cls(link, agent), text, TURN_SECONDS, check=True)
        reply.sent(0)
        link.replies.expect(agent.id, reply)
        agent.expect(reply)
        return reply

    async def begin(self, reply: Reply, text: str, timeout: float) -> None:
        """See `Conduct`. There is nothing to be sent."""

    def give_up(self, reply: Reply) -> None:
        """See `Conduct`."""
        self._agent.stop()

    def ended(self, reply: Reply) -> None:
        """See `Conduct`."""
        self._link.replies.forget(self._agent_id, reply)
        self._agent.heard_out(reply)
