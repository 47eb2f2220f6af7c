"""The ears and the mouth of a conversation in the terminal: what is said becomes messages, and answers are heard."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trunkline.cli import talk_audio
from trunkline.cli.talk_audio import PIECE_MS, Microphone, Speakers
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.tryll.messages import DownloadProgress

if TYPE_CHECKING:
    from trunkline.agents.external.tryll_talk_agent import TalkAgent
    from trunkline.cli.talk_files import Recording
    from trunkline.wires.tryll.drive import Sound

#: Notes about a download: one for each so many hundredths, and none about what takes less than a moment.
_STEP = 10
MOMENT_SECONDS = 1.0


class TerminalVoice:
    """Where speech comes from: the microphone, or a file. It is the listener of its agent."""

    def __init__(
        self, *, recording: Recording | None = None, fast: bool = False, push_to_talk: bool = False, aloud: bool = True
    ) -> None:
        """
        Args:
            recording: what is said, in place of a microphone.
            fast: do not wait until it would have been played.
            push_to_talk: whether listening begins and ends with a key.
            aloud: whether answers are played.
        """
        self.agent: TalkAgent | None = None
        """Who is spoken to. Whoever makes it says so here."""
        self.recording = recording
        self.push_to_talk = push_to_talk
        self.hearing: str | None = None
        """What was understood so far of what is being said; None while nobody speaks."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when `hearing` changes."""
        self.news = asyncio.Event()
        """Set when something was said, or nothing more will be."""
        self._fast = fast
        self._aloud = aloud
        self._said: deque[str] = deque()
        self.over = False
        """Whether nothing more will be said."""
        self._problem: Fault | None = None
        self._pressed = False
        self.listening = False
        """Whether somebody can be heard, and not only typed messages are answered."""
        self._speakers: Speakers | None = None
        self._microphone: Microphone | None = None

    # What its agent tells.

    def heard(self, text: str | None) -> None:
        self.hearing = text
        self.on_change()

    def spoken(self, text: str) -> None:
        self._said.append(text)
        self.news.set()

    def play(self, sound: Sound) -> None:
        if self._speakers is not None:
            self._speakers.play(sound)

    def hush(self) -> None:
        if self._speakers is not None:
            self._speakers.stop()

    def ended(self, problem: Fault | None) -> None:
        self.over, self._problem = True, self._problem or problem
        self.hearing = None
        self.news.set()

    # For whoever holds the conversation.

    def take(self) -> str | None:
        """What was said, if anything was.

        Raises:
            Fault: nothing more can be heard.
        """
        if self._said:
            return self._said.popleft()
        if self._problem is not None:
            raise self._problem
        if not self.over:
            self.news.clear()
        return None

    async def messages(self) -> AsyncIterator[UserMessage]:
        """What is said, until there is no more of it.

        Raises:
            Fault: nothing was understood, or nothing more can be heard.
        """
        are_any = False
        async with self.heard_out():
            while True:
                await self.news.wait()
                text = self.take()
                if text is not None:
                    are_any = True
                    yield UserMessage(text)
                elif self.over:
                    break
        if not are_any:
            raise ConfigError("Nothing was understood.")

    @asynccontextmanager
    async def devices(self) -> AsyncIterator[None]:
        """Inside, the microphone and the speakers are ours: whoever has none need not wait for models.

        Raises:
            ConfigError: there is none.
        """
        microphone = self._microphone = await talk_audio.open_microphone() if self.recording is None else None
        self.listening = True
        try:
            if self._aloud:
                self._speakers = await talk_audio.open_speakers()
            yield
        finally:
            self.listening = False
            speakers, self._speakers = self._speakers, None
            if speakers is not None:
                await speakers.close()
            if microphone is not None:
                await microphone.close()

    @asynccontextmanager
    async def heard_out(self) -> AsyncIterator[None]:
        """Inside, the microphone is listened to, or the file is played to the agent."""
        await self.listen()
        feeding = asyncio.create_task(self._feed(self._microphone), name="speech")
        try:
            yield
        finally:
            feeding.cancel()
            await asyncio.wait({feeding})

    async def listen(self) -> None:
        """Hear what is said from now on, in the conversation that was opened last.

        Raises:
            ConfigError: it cannot be done.
        """
        self._said.clear()
        self.heard(None)
        self._pressed = False
        if not self.push_to_talk and not self._fast:
            await self._try(self._agent.talk.listen)
        elif self.recording is not None:
            # Faster than it is understood, a pause would be found too late: then it is one utterance.
            await self._try(self._agent.talk.press)

    async def press(self) -> None:
        """The key that lets the agent fall silent, or begins and ends what is said."""
        self.hush()
        if not self.push_to_talk:
            self._agent.talk.hush()
        elif self._pressed:
            self._pressed = False
            await self._try(self._agent.talk.release)
        else:
            self._pressed = True
            self.heard("")
            await self._try(self._agent.talk.press)

    @property
    def _agent(self) -> TalkAgent:
        if self.agent is None:
            raise RuntimeError("a voice has an agent to talk to")
        return self.agent

    async def _try(self, wanted: Callable[[], Awaitable[None]]) -> None:
        from trunkline.wires.tryll.errors import TryllError

        try:
            await wanted()
        except TryllError as error:
            raise ConfigError(error.message) from None

    async def _feed(self, microphone: Microphone | None) -> None:
        from trunkline.wires.tryll.errors import TryllError

        try:
            if microphone is not None:
                await self._follow(microphone)
                raise ConfigError("The microphone was disconnected.")
            await self._play()
        except Fault as fault:
            self.ended(fault)
        except TryllError as error:
            self.ended(ConfigError(error.message))

    async def _follow(self, microphone: Microphone) -> None:
        while pcm := await microphone.read():
            talk, speakers = self._agent.talk, self._speakers
            # Who may not interrupt is not heard meanwhile: neither is the answer itself, from the speakers.
            if talk.options.barge_in or not (talk.answering or (speakers is not None and speakers.playing)):
                await talk.hear(pcm)

    async def _play(self) -> None:
        """Send the file, at the speed at which it would be played, unless it is to be fast."""
        recording, talk = self.recording, self._agent.talk
        if recording is None:
            return
        loop = asyncio.get_running_loop()
        step = recording.second * PIECE_MS // 1000 // 4 * 4
        due = loop.time()
        for begin in range(0, len(recording.pcm), step):
            if not self._fast:
                due += PIECE_MS / 1000
                await asyncio.sleep(due - loop.time())
                while not talk.options.barge_in and talk.answering:
                    # Whoever may not interrupt waits for the end.
                    await talk.answered()
                    due = loop.time()
            await talk.hear(recording.pcm[begin : begin + step])
        await talk.finish()


class ProgressNotes:
    """Progress of downloads: a note for each tenth of the way, of what takes longer than a moment."""

    def __init__(self, note: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._note = note
        self._clock = clock
        self._last: tuple[str, int] | None = None
        self._began: dict[str, float] = {}

    def __call__(self, progress: DownloadProgress) -> None:
        name, now = progress.model_name, self._clock()
        if now - self._began.setdefault(name, now) < MOMENT_SECONDS:
            return
        share = int(max(0.0, min(progress.percent, 100.0)))
        step = (name, share // _STEP)
        if step != self._last:
            self._last = step
            self._note(f"{name}: {share} % fetched")
