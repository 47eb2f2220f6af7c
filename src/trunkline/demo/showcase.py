"""A conversation over the JSON stream, for people to see: a real agent process, and us as its host.

    await play(show=lambda line: ...)

Every line that crosses the wire, in either direction, is shown as it is, with a few words about it. The agent plays
the bundled script `tour`, so that there is nothing to install and nothing to pay. It works in a directory of its own,
which is gone afterwards, as is the agent, whatever happens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory

from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.own_python import module_command
from trunkline.base.process import SpawnError, StderrTail, child_env
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.values import Value
from trunkline.core.faults import AgentFailed, AgentTimeout
from trunkline.demo.captions import caption
from trunkline.wires.jsonstream import codec, messages

#: How long the agent may be silent, or take to leave. The script's own pauses are far shorter.
PATIENCE_SECONDS = 10.0

COMMAND = module_command("trunkline", ("agent", "--json-stream", "--agent", "scripted", "--script", "tour"))


class ShownLine(Value):
    """One line that crossed the wire. `at` counts seconds from the start, `by_host` tells the direction."""

    at: float
    scene: str
    by_host: bool
    data: bytes
    caption: str


class HostAnswer(Value):
    """What the host says to the request that was `nth` (from 0) of those it waited for."""

    nth: int
    deny: str | None = None
    always: bool = False


class Scene(Value):
    """One message, and how the host meets what comes of it.

    `rounds`: when as many requests are open as a round has answers, they are given, in the order of the round.
    `stop_after`: the number of text deltas after which the host has heard enough.
    """

    title: str
    says: str
    rounds: tuple[tuple[HostAnswer, ...], ...] = ()
    stop_after: int | None = None


SCENES = (
    Scene("A question and its answer", "hello"),
    Scene("Tools that ask first", "create hello.py", rounds=((HostAnswer(0),), (HostAnswer(0, always=True),))),
    Scene("Two tools at once, answered in reverse", "check it", rounds=((HostAnswer(1), HostAnswer(0)),)),
    Scene("A refusal, with its reason", "clean up", rounds=((HostAnswer(0, deny="I still need those files."),),)),
    Scene("A failure, a retry, and a stop in mid-sentence", "tell me a long story", stop_after=4),
)

OPENING = "The agent starts"
CLOSING = "The host closes the stream"


async def play(
    show: Callable[[ShownLine], None],
    *,
    scenes: Sequence[Scene] = SCENES,
    command: Sequence[str] = COMMAND,
    pause: float = 0.0,
) -> None:
    """Play all scenes, `pause` seconds apart. Cancelling it ends the agent.

    Raises:
        AgentFailed: the agent could not be started, or did not behave as the scenes expect.
        AgentTimeout: it was silent for too long.
    """
    with TemporaryDirectory(prefix="trunkline-") as folder:
        # Its own home, so that nothing stays; and none of the user's settings, which could answer for the host.
        env = child_env(drop_prefixes=("TRUNKLINE_",), extra={"TRUNKLINE_HOME": f"{folder}/home"})
        host = await ShowcaseHost.start(command, folder, env, show)
        try:
            await host.expect(messages.Ready)
            for number, scene in enumerate(scenes, 1):
                await asyncio.sleep(pause)
                await host.act(scene, f"m{number}")
            await asyncio.sleep(pause)
            await host.leave()
        finally:
            await host.close()


class ShowcaseHost:
    """The host's end of one conversation."""

    def __init__(self, child: AsyncChild, show: Callable[[ShownLine], None]) -> None:
        self._child = child
        self._show = show
        self._lines = LineSplitter(codec.MAX_LINE)
        self._unread: list[bytes] = []
        self._scene = OPENING
        self._begun = time.monotonic()
        self._stderr: StderrTail = child.keep_stderr_tail()

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: str, env: Mapping[str, str], show: Callable[[ShownLine], None]
    ) -> ShowcaseHost:
        """Start the agent.

        Raises:
            AgentFailed: it cannot be started.
        """
        try:
            return cls(await spawn_async(command, cwd=folder, env=env, stdin="pipe"), show)
        except SpawnError as error:
            raise AgentFailed(f"The agent cannot be started: {error}") from error

    async def act(self, scene: Scene, msg_id: str) -> None:
        """Send the scene's message and meet what comes of it, until the answer has ended."""
        self._scene = scene.title
        self._send(messages.UserMessage(msg_id, scene.says))
        rounds = list(scene.rounds)
        requests: list[str] = []
        deltas = 0
        while not isinstance(event := await self._receive(), messages.StreamEnd):
            if isinstance(event, messages.ToolRequest):
                requests.append(event.call_id)
            if rounds and len(requests) == len(rounds[0]):
                for answer in rounds.pop(0):
                    self._send(_answer(answer, requests[answer.nth]))
                requests.clear()
            if isinstance(event, messages.TextDelta):
                deltas += 1
                if deltas == scene.stop_after:
                    self._send(messages.Stop())
        if rounds or requests:
            raise AgentFailed(f"The agent asked for other tools than the scene `{scene.title}` expects.")

    async def expect(self, kind: type[messages.Event]) -> None:
        """Receive one event of a kind.

        Raises:
            AgentFailed: it was another one.
        """
        event = await self._receive()
        if not isinstance(event, kind):
            raise AgentFailed(f"The agent should have said `{kind.type}`.{self._last_words()}")

    async def leave(self) -> None:
        """Close the stream and wait until the agent has left.

        Raises:
            AgentFailed: it did not leave with exit code 0.
        """
        self._scene = CLOSING
        self._child.close_stdin()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                code = await self._child.wait()
        except TimeoutError:
            raise AgentTimeout(f"The agent did not leave within {PATIENCE_SECONDS:g} s.") from None
        if code != 0:
            raise AgentFailed(f"The agent left with exit code {code}.{self._last_words()}")

    async def close(self) -> None:
        """End what is left of the agent."""
        await self._child.close()

    def _send(self, command: messages.Command) -> None:
        data = codec.encode(command)
        self._child.write(data)
        self._note(data.rstrip(b"\n"), caption(command), by_host=True)

    async def _receive(self) -> messages.Event | None:
        """The next line of the agent; None for one that we do not understand."""
        while not self._unread:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    data = await self._child.read_stdout()
            except TimeoutError:
                raise AgentTimeout(f"The agent was silent for {PATIENCE_SECONDS:g} s.{self._last_words()}") from None
            if not data:
                code = await self._child.wait()
                raise AgentFailed(f"The agent ended too early, with exit code {code}.{self._last_words()}")
            self._unread += [line for line in self._lines.feed(data) if not isinstance(line, OverlongLine)]
        line = self._unread.pop(0)
        try:
            event = codec.decode_event(line)
        except ValueError:
            event = None
        self._note(line, caption(event) if event else "says what is not in the protocol", by_host=False)
        return event

    def _note(self, data: bytes, words: str, *, by_host: bool) -> None:
        self._show(ShownLine(time.monotonic() - self._begun, self._scene, by_host, data, words))

    def _last_words(self) -> str:
        words = self._stderr.text()
        return f" Its last words: {words}" if words else ""


def _answer(answer: HostAnswer, call_id: str) -> messages.Command:
    if answer.deny is not None:
        return messages.ToolDeny(call_id, answer.deny)
    return messages.ToolApprove(call_id, "always" if answer.always else "once")
