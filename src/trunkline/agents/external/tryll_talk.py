"""Talking with an agent on a Tryll server: sound goes in, and out come the words in it, the answer, and its sound.

    async with await TryllTalk.open("127.0.0.1", 9100, TalkOptions()) as talk:
        await talk.listen()
        ...                                     # elsewhere: await talk.hear(pcm)
        while (event := await talk.next_event()) is not None:
            show(event)

Hands-free, a pause ends what somebody says, and the next utterance begins at once. No sound is lost in between: what
came behind the pause is heard again. Or somebody presses and releases a key. Typing is possible, too.

A connection that is lost is made anew, with the conversation; the utterance is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from ssl import SSLContext
from typing import Any, Self

from trunkline.agents.external.tryll import told_by_node, usage_of
from trunkline.agents.external.tryll_talk_events import (
    Answered,
    AnswerPiece,
    Hushed,
    NodeTold,
    PromptSent,
    Spoken,
    TalkEvent,
    TalkEvents,
    Trouble,
    UserTranscript,
)
from trunkline.agents.external.tryll_talk_options import TalkOptions, made
from trunkline.core.faults import AgentFailed, NotListening
from trunkline.wires.tryll.drive import (
    RemoteAgent,
    RemoteVoice,
    Replacement,
    Reply,
    Sound,
    SpeechTiming,
    Tryll,
    TurnFailed,
)
from trunkline.wires.tryll.drive.connection import Progress
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import HistoryEntry, WireTranscriptUpdate
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind

logger = logging.getLogger(__name__)

#: How long a server may take to begin a session.
CONNECT_SECONDS = 10.0
#: The longest utterance that a server listens to. Hands-free, silence counts, so another one follows.
LONGEST_MS = 600_000
#: What is remembered of the sound that was sent: longer than any recognizer takes for its last words.
REMEMBERED_SECONDS = 30
#: Less than this behind a pause is no sound: places are told in milliseconds, and those are not whole samples.
LEAST_REST_MS = 20
_LOST, _TOO_LONG, _IDLE = 1002, 4105, 4104
_SAMPLE_BYTES = 2


class TryllTalk:
    """One conversation. Its events are for one reader."""

    def __init__(self, tryll: Tryll, agent: RemoteAgent, voice: RemoteVoice | None, options: TalkOptions) -> None:
        self.options = options
        self._tryll = tryll
        self._agent = agent
        self._ear = voice
        self._out = TalkEvents()
        self._order = asyncio.Lock()
        """Sound and requests for the voice input, in the order in which they are meant."""
        self._open = False
        """Whether an utterance is under way, or the next one is about to be."""
        self._hands_free = False
        self._last = False
        """Whether there will be no more sound."""
        self._segments: list[str] = []
        self._sent = bytearray()
        self._forgotten = 0
        """Bytes of the utterance that were sent before those."""
        self._replies: list[Reply] = []
        """Those that are not over, in their order."""
        self._listening: asyncio.Task[None] | None = None
        self._answering: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        options: TalkOptions,
        *,
        token: str = "",
        ssl: SSLContext | None = None,
        progress: Progress | None = None,
        notice: Callable[[str], object] = lambda text: None,
    ) -> Self:
        """Connect, see to it that all models are there, and make the agent and its ear.

        Args:
            progress: hears of models that are downloaded.
            notice: hears of models that cannot be had, if there is another.

        Raises:
            TryllError: there is no server, or no model, or it cannot be used.
        """
        tryll = Tryll(host, port, config=options.config.replace(token=token), timeout=CONNECT_SECONDS, ssl=ssl)
        try:
            await tryll.connect()
            agent, voice, options = await made(tryll, options, progress, notice)
            return cls(tryll, agent, voice, options)
        except BaseException:
            await tryll.close()
            raise

    async def close(self) -> None:
        """End the conversation, whatever is going on in it. Idempotent."""
        tasks = [task for task in (self._listening, self._answering) if task is not None]
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            self._out.end()
            await self._tryll.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def next_event(self) -> TalkEvent | None:
        """What happens next; None at the end.

        Raises:
            TryllError: the conversation cannot go on.
            AgentFailed: the same, by a defect of ours.
        """
        return await self._out.get()

    @property
    def answering(self) -> bool:
        """Whether an answer is being given."""
        return self._answering is not None and not self._answering.done()

    async def answered(self) -> None:
        """Wait until no answer is being given."""
        while self._answering is not None and not self._answering.done():
            await asyncio.wait([self._answering])

    async def restore(self, exchanges: Sequence[HistoryEntry]) -> None:
        """Go on from what was said before, in another conversation.

        Raises:
            TryllError: the server does not take it back.
        """
        await self._agent.restore(exchanges)

    # What one says.

    async def listen(self) -> None:
        """Listen from now on, hands-free: a pause ends an utterance.

        Raises:
            TryllError: it cannot be done.
        """
        await self._start(hands_free=True)

    async def press(self) -> None:
        """Listen until `release`. An answer falls silent. Raises as `listen`."""
        self.hush()
        await self._start(hands_free=False)

    async def release(self) -> None:
        """What was heard since `press` is all. Waits for the words, so that it can be pressed again."""
        async with self._order:
            await self._end()
        if self._listening is not None and not self._hands_free:
            await asyncio.wait([self._listening])

    async def deafen(self) -> None:
        """Listen no longer; what was heard of an utterance that is not over is forgotten."""
        task, self._listening = self._listening, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        async with self._order:
            if self._open:
                self._open = False
                try:
                    await self._voice.cancel()
                except TryllError as error:
                    if error.code not in (_IDLE, _LOST):
                        raise
        self._out.push(UserTranscript("over"))

    async def hear(self, pcm: bytes) -> None:
        """Take some sound. If nobody listens, it is dropped.

        Raises:
            ValueError: half a sample.
        """
        async with self._order:
            if not self._open:
                return
            self._remember(pcm)
            try:
                await self._voice.send(pcm)
            except TryllError as error:
                # Whoever listens knows, too, and begins anew.
                if error.code != _LOST:
                    raise

    async def say(self, text: str) -> None:
        """Tell the agent something that was typed. An answer that is going on is stopped first."""
        self.hush()
        await self.answered()
        self._answer(self._agent.stream(text), typed=True)

    def hush(self) -> None:
        """Let the agent fall silent."""
        self._out.push(Hushed())
        for reply in self._replies:
            reply.leave()

    async def finish(self) -> None:
        """There is no more sound: wait for the rest of the words, and for the answer. Then the events end."""
        self._last = True
        async with self._order:
            await self._end()
        if self._listening is not None:
            await asyncio.wait([self._listening])
        if self._answering is not None:
            await asyncio.wait([self._answering])
        self._out.end()

    # Listening.

    @property
    def _voice(self) -> RemoteVoice:
        if self._ear is None:
            raise NotListening("Nobody was to be heard in this conversation.")
        return self._ear

    async def _start(self, *, hands_free: bool) -> None:
        if self._listening is not None and not self._listening.done():
            return
        self._hands_free = hands_free
        await self._begin(None, hands_free=hands_free)
        self._listening = self._begun(self._listen(hands_free=hands_free), "listening")

    async def _listen(self, *, hands_free: bool) -> None:
        while True:
            consumed_ms: int | None = None
            try:
                async for update in self._voice.updates():
                    self._understood(update)
                    if update.kind == Kind.UTTERANCE_FINAL:
                        consumed_ms = update.audio_ms_consumed
            except TryllError as error:
                if error.code not in (_TOO_LONG, _LOST):
                    raise
                if error.code == _LOST or not hands_free:
                    self._out.push(Trouble(error.message))
                self._out.push(UserTranscript("over"))
            if not hands_free:
                self._open = False
                return
            if not await self._begin(consumed_ms, hands_free=True):
                return

    async def _begin(self, consumed_ms: int | None, *, hands_free: bool) -> bool:
        """Begin an utterance, with the sound that the one before did not need. False: there is no more of it."""
        async with self._order:
            rest = b"" if consumed_ms is None else self._behind(consumed_ms)
            if self._open and self._last and not rest:
                self._open = False
                return False
            self._segments.clear()
            self._sent.clear()
            self._forgotten = 0
            await self._voice.begin(
                agent=self._agent, hands_free=hands_free, max_ms=LONGEST_MS, barge_in=self.options.barge_in
            )
            self._open = True
            if rest:
                self._remember(rest)
                await self._voice.send(rest)
            if self._last:
                await self._end()
            return True

    async def _end(self) -> None:
        if self._open:
            try:
                await self._voice.end()
            except TryllError as error:
                # Whoever listens hears the same.
                if error.code not in (_LOST, _TOO_LONG, _IDLE):
                    raise

    def _remember(self, pcm: bytes) -> None:
        self._sent += pcm
        second = self.options.sample_rate * self._frame
        too_many = len(self._sent) - REMEMBERED_SECONDS * second
        if too_many > second:
            # Not for each piece: that would copy all of it again and again.
            del self._sent[:too_many]
            self._forgotten += too_many

    def _behind(self, consumed_ms: int) -> bytes:
        """The sound that was sent, and came too late to be heard."""
        rate = self.options.sample_rate
        rest = bytes(self._sent[max(0, consumed_ms * rate // 1000 * self._frame - self._forgotten) :])
        return rest if len(rest) >= LEAST_REST_MS * rate // 1000 * self._frame else b""

    @property
    def _frame(self) -> int:
        return self.options.channels * _SAMPLE_BYTES

    def _understood(self, update: WireTranscriptUpdate) -> None:
        if update.kind == Kind.SPEECH_START:
            if self.options.barge_in:
                # The server stops the turn. What it has sent already may still be waiting, or playing.
                self._out.push(Hushed())
            if not self._segments:
                self._out.push(UserTranscript("start"))
        elif update.kind == Kind.UTTERANCE_FINAL:
            self._out.push(UserTranscript("over", update.text))
            if self._voice.reply is not None:
                self._answer(self._voice.reply)
        else:
            text = " ".join(filter(None, [*self._segments, update.text]))
            if update.kind == Kind.SEGMENT_FINAL and update.text:
                self._segments.append(update.text)
            if text:
                self._out.push(UserTranscript("partial", text))

    # Answers.

    def _answer(self, reply: Reply, *, typed: bool = False) -> None:
        self._replies.append(reply)
        self._answering = self._begun(self._answered(reply, self._answering, typed), "answering")

    async def _answered(self, reply: Reply, before: asyncio.Task[None] | None, typed: bool) -> None:
        if before is not None and not before.done():
            # It is over on the server, or refused. Two at once would be mixed up.
            await asyncio.wait([before])
        self._out.push(PromptSent(reply.message, typed))
        hushes = self._out.hushes
        try:
            while (event := await reply.next_event()) is not None:
                if isinstance(event, str):
                    await self._out.put(AnswerPiece(event, isinstance(event, Replacement)), hushes)
                elif isinstance(event, Sound):
                    await self._out.put(Spoken(event), hushes)
                elif not isinstance(event, SpeechTiming):
                    await self._out.put(NodeTold(told_by_node(event)), hushes)
        except TryllError as error:
            self._out.push(
                Answered("error", error.message, debug=error.turn.debug if isinstance(error, TurnFailed) else None)
            )
        else:
            turn = reply.turn
            self._out.push(Answered("cancelled" if turn.cancelled else "success", "", usage_of(turn), turn.debug))
        finally:
            self._replies.remove(reply)

    def _begun(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"talk: {name}")
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = task.exception() if not task.cancelled() else None
        if isinstance(error, TryllError):
            self._out.end(error)
        elif error is not None:
            logger.error("a conversation failed", exc_info=error)
            self._out.end(AgentFailed("The conversation failed."))
