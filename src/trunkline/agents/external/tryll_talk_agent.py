"""A Tryll server as an agent that hears and speaks: what is typed is answered, and so is what is said aloud.

    agent = TalkAgent("127.0.0.1", 9100, TalkOptions(), listener)
    session = await Session.open(agent, log, policy)
    await agent.talk.listen()                  # and `await agent.talk.hear(pcm)`
    ...                                        # in the listener: session.submit(message)

The server begins the turn of an utterance by itself. The listener is told its text, and the turn that is begun with it
follows that answer. The journal is that of `TryllAgent`: what was said aloud is known to whoever goes on in writing,
and vice versa.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from trunkline.agents.external.tryll import tryll_name, unopened
from trunkline.agents.external.tryll_conversation import JOURNAL_KEY, ServerConversation, exchanges, not_accepted
from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_events import (
    Answered,
    AnswerPiece,
    Hushed,
    NodeTold,
    PromptSent,
    Spoken,
    Trouble,
    UserTranscript,
)
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import Capabilities, OpenRequest
from trunkline.core.events import Audio, Event, Extension, Failed, Notice, TextDelta, TurnEnded, UserMessage
from trunkline.core.faults import AgentFailed, ConfigError, Fault, Unsupported
from trunkline.core.graph.turns import TURN_DIAGNOSTICS
from trunkline.wires.tryll.drive import Sound
from trunkline.wires.tryll.drive.connection import Progress
from trunkline.wires.tryll.errors import TryllError

if TYPE_CHECKING:
    from ssl import SSLContext


#: What is said to whoever asks something after the end.
OVER = "The conversation with the server is over."


class SpeechListener(Protocol):
    """Whoever has the microphone and the speakers. Nothing here waits."""

    def heard(self, text: str | None) -> None:
        """What was understood so far of what somebody says; None when it is over."""

    def spoken(self, text: str) -> None:
        """That was said, and the server answers it: a turn with this text is to follow the answer."""

    def play(self, sound: Sound) -> None:
        """A piece of the answer, aloud."""

    def hush(self) -> None:
        """What is not played yet is not to be."""

    def ended(self, problem: Fault | None) -> None:
        """Nothing more is heard: there is no more sound, or it cannot go on."""


class TalkAgent:
    """Opens conversations with one server. The one that was opened last is listened to."""

    #: Nothing runs unasked there: tools are only ever asked for.
    capabilities = Capabilities(approval=True, resume=True, voice=True)

    def __init__(
        self,
        host: str,
        port: int,
        options: TalkOptions,
        listener: SpeechListener,
        *,
        token: str = "",
        ssl: SSLContext | None = None,
        progress: Progress | None = None,
        notice: Callable[[str], object] = lambda text: None,
    ) -> None:
        """`progress` hears of models that are downloaded, `notice` of those that cannot be had."""
        self.host, self.port = host, port
        self.name = tryll_name(host, port)
        self.options = options
        self.listener = listener
        self._opening = partial(TryllTalk.open, token=token, ssl=ssl, progress=progress, notice=notice)
        self._open: list[TalkConversation] = []

    @property
    def talk(self) -> TryllTalk:
        """What is spoken to.

        Raises:
            AgentFailed: nothing is open.
        """
        if not self._open:
            raise AgentFailed(OVER)
        return self._open[-1].talk

    @property
    def models(self) -> tuple[str, ...]:
        """What answers, hears and speaks, as far as that is known."""
        options = self._open[-1].talk.options if self._open else self.options
        told = {"": options.model, "hears with ": options.stt, "speaks with ": options.tts}
        return tuple(f"{does}{name}" for does, name in told.items() if name)

    async def open(self, request: OpenRequest) -> TalkConversation:
        """Connect, with all models fetched, and go on with what was said before, where the server takes that back.

        Raises:
            ConfigError: there is no server, or no such model.
            AgentTimeout: it says nothing.
        """
        given = request.options or {}
        options = self.options.replace(
            model=str(given.get("model") or self.options.model),
            instructions=request.instructions or self.options.instructions,
            diagnostics=bool(given.get("diagnostics")),
        )
        before = tuple(exchanges(request.journal.records)) if request.resumed else ()
        try:
            talk = await self._opening(self.host, self.port, options)
        except TryllError as error:
            raise unopened(error) from None
        forgotten = None
        try:
            if before:
                await talk.restore(before)
        except TryllError as error:
            forgotten = error.message
        except BaseException:
            await talk.close()
            raise
        conversation = TalkConversation(self, talk, request, forgotten)
        self._open.append(conversation)
        return conversation

    def closed(self, conversation: TalkConversation) -> None:
        """It is over: the one before it is listened to again, if it is still there."""
        if conversation in self._open:
            self._open.remove(conversation)

    def is_heard(self, conversation: TalkConversation) -> bool:
        """Whether that one is listened to."""
        return bool(self._open) and self._open[-1] is conversation


class _TalkAnswer:
    """What the server says to one message, as it comes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.events: asyncio.Queue[AnswerPiece | Spoken | NodeTold | Answered] = asyncio.Queue()


class TalkConversation(ServerConversation):
    """One dialogue, which is one session of the server."""

    def __init__(self, owner: TalkAgent, talk: TryllTalk, request: OpenRequest, forgotten: str | None) -> None:
        """`forgotten`: why the server does not know what was said before, if it does not."""
        super().__init__(request, () if request.resumed else request.history)
        self.talk = talk
        self._owner = owner
        self._forgotten = forgotten
        self._spoken: deque[_TalkAnswer] = deque()
        """Answers to what was said aloud, whose turns have not begun."""
        self._typed: deque[_TalkAnswer] = deque()
        """Answers to what was typed, of which the server has said nothing yet."""
        self._reading = asyncio.create_task(self._read(), name="events of a spoken conversation")

    async def _use(self, model: str) -> None:
        # Whoever speaks next would be answered before another were loaded.
        raise Unsupported(
            "In a spoken conversation the server answers by itself, with the model that it began with.",
            hint=f"Leave, and come back with `--model {model} --resume`.",
        )

    async def cancel(self) -> None:
        self.talk.hush()
        await super().cancel()

    async def _leave(self) -> None:
        self._owner.closed(self)
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self.talk.close()

    # Answers.

    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        if self._forgotten is not None:
            await tell.say(not_accepted(self._forgotten))
            self._forgotten = None
        answer = await self._asked(message, tell)
        said: list[str] = []
        try:
            while not isinstance(event := await answer.events.get(), Answered):
                await tell.say(_told(event, said))
        finally:
            if said:
                self._note(JOURNAL_KEY, [message.text, "".join(said)])
        tell.usage = event.usage
        if event.debug and self.talk.options.diagnostics:
            await tell.say(Extension(TURN_DIAGNOSTICS, event.debug))
        if event.outcome == "error":
            await tell.say(Failed("agent", event.message))
        return TurnEnded(event.outcome, event.usage)

    async def _asked(self, message: UserMessage, tell: TurnStream) -> _TalkAnswer:
        """The answer to a message: one that the server has begun, or a new one.

        Raises:
            AgentFailed: there is nobody to answer any more.
        """
        if any(answer.text == message.text for answer in self._spoken):
            # What was said before it has become no turn: whoever has the microphone began anew, or may not go on.
            while (spoken := self._spoken.popleft()).text != message.text:
                pass
            return spoken
        if self._reading.done():
            raise AgentFailed(OVER)
        await self._read_no_files(message, tell)
        answer = _TalkAnswer(message.text)
        self._typed.append(answer)
        try:
            await self.talk.say(self._prompt(message))
        except BaseException:
            self._typed.remove(answer)
            raise
        self._context.clear()
        return answer

    async def _read(self) -> None:
        """Give everything that happens to whom it concerns."""
        answer = _TalkAnswer("")
        problem: Fault | None = None
        try:
            while (event := await self.talk.next_event()) is not None:
                if isinstance(event, PromptSent):
                    answer = self._answer_to(event)
                elif isinstance(event, AnswerPiece | Spoken | NodeTold | Answered):
                    answer.events.put_nowait(event)
                if self._owner.is_heard(self):
                    self._tell(event)
        except TryllError as lost:
            problem = ConfigError(lost.message)
        except Fault as fault:
            problem = fault
        for waiting in (answer, *self._spoken, *self._typed):
            waiting.events.put_nowait(Answered("error", OVER if problem is None else problem.message))
        if self._owner.is_heard(self):
            self._owner.listener.ended(problem)

    def _answer_to(self, event: PromptSent) -> _TalkAnswer:
        if event.typed and self._typed:
            return self._typed.popleft()
        answer = _TalkAnswer(event.text)
        self._spoken.append(answer)
        return answer

    def _tell(self, event: object) -> None:
        listener = self._owner.listener
        match event:
            case UserTranscript(kind=kind, text=text):
                listener.heard(None if kind == "over" else text)
            case PromptSent(text=text, typed=False):
                listener.spoken(text)
            case Spoken(sound=sound):
                listener.play(sound)
            case Hushed():
                listener.hush()
            case Trouble(message=message) if self._request.announce is not None:
                self._request.announce(Notice(message))


def _told(event: AnswerPiece | Spoken | NodeTold, said: list[str]) -> Event:
    match event:
        case AnswerPiece(text=text, anew=anew):
            said.append(f"\n{text}" if anew and said else text)
            return TextDelta(said[-1])
        case Spoken(sound=sound):
            return Audio(sound.pcm, sound.sample_rate, sound.channels)
        case NodeTold(event=told):
            return told
