"""A brain: what answers prompts. Here each is the one turn of a new session with an agent, with nobody to ask.

The answer is limited as a whole, from the connection to the last byte. Nothing is asked twice: the next cycle asks
again, with what is known then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from trunkline.agents.turn_stream import TurnStream
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.agent import Agent, Capabilities, Change, Decision, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Failed, TextDelta, ToolStarted, TurnEnded, UserMessage
from trunkline.core.fault_kinds import of_kind
from trunkline.core.faults import AgentFailed, AgentTimeout
from trunkline.core.ids import new_id
from trunkline.core.log import EventLog, MemoryLog
from trunkline.core.redaction import Redaction
from trunkline.core.rules import limits_of
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.runner.finishing import on_disk
from trunkline.runner.prompting import DecisionPrompt
from trunkline.store.files import FileStore

#: Characters of one answer: what is longer is no decision.
MAX_REPLY = 1024 * 1024

#: Says the answer to a prompt, and gives what that used.
Answering = Callable[[DecisionPrompt, TurnStream], Awaitable[Usage | None]]


class BrainReply(Value):
    """What was answered, word for word."""

    text: str
    usage: Usage | None = None


class AnswerTooLong(AgentFailed):
    """An answer without an end. `said`: its beginning."""

    def __init__(self, said: str) -> None:
        super().__init__(f"The answer has more than {MAX_REPLY} characters.")
        self.said = said[:MAX_REPLY]


class Brain(Protocol):
    """What decides."""

    @property
    def window(self) -> int | None:
        """Tokens that a prompt and its answer may have together, if known."""

    async def answer(self, prompt: DecisionPrompt) -> BrainReply:
        """Ask once.

        Raises:
            AnswerTooLong: it does not end.
            Fault: no answer came, or not all of it in time.
        """

    async def close(self) -> None:
        """Let go of everything. Idempotent."""


class Keeping(NamedTuple):
    """Where sessions are kept, and without what."""

    store: FileStore
    secrets: Redactor


class LonelyBrain:
    """Answers prompts, each in a session of its own with an agent. Nobody is there to be asked about tools."""

    def __init__(
        self,
        agent_for: Callable[[DecisionPrompt], Agent],
        *,
        seconds: float,
        window: int | None = None,
        workspace: str = ".",
        options: Mapping[str, Any] | None = None,
        allow: Sequence[str] = (),
        keeping: Keeping | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """
        Args:
            agent_for: gives the agent that a prompt is for.
            allow: the tools that it may use.
            keeping: where the sessions are kept; nowhere without it.
            close: lets go of what the agent needs.
        """
        self.window = window
        self._agent_for = agent_for
        self._seconds = seconds
        self._workspace = workspace
        self._options = options
        self._allow = tuple(allow)
        self._keeping = keeping
        self._close = close

    async def answer(self, prompt: DecisionPrompt) -> BrainReply:
        agent = self._agent_for(prompt)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._asked(agent, prompt)
        except TimeoutError:
            raise AgentTimeout(f"{_who(agent)} gave no complete answer within {self._seconds:g} s.") from None

    async def _asked(self, agent: Agent, prompt: DecisionPrompt) -> BrainReply:
        log = await self._log(agent)
        try:
            session = await Session.open(
                agent,
                log,
                Policy(allow=self._allow, interactive=False, rules=limits_of(agent)),
                # There is one prompt at a time: another one would be stale after the turn.
                busy="skip",
                workspace=self._workspace,
                instructions=prompt.system,
                options=self._options,
                redact=Redaction(self._keeping.secrets) if self._keeping is not None else None,
            )
        except BaseException:
            log.discard()
            raise
        heard = AnswerSink(session.stop)
        try:
            session.attach(heard)
            session.submit(UserMessage(prompt.user))
            await session.at_rest()
        finally:
            await session.close()
        return heard.reply()

    async def _log(self, agent: Agent) -> EventLog:
        keeping, session = self._keeping, new_id()
        if keeping is None:
            return MemoryLog(session, keep=0)
        return await on_disk(lambda: keeping.store.create(session, os.path.realpath(self._workspace), agent.name))

    async def close(self) -> None:
        if self._close is not None:
            await self._close()


class Answerer:
    """A function as the agent of one prompt, and its conversation: no tools, and nothing to remember."""

    name = "runner"
    capabilities = Capabilities(approval=True)
    session_id: str | None = None

    def __init__(self, answering: Answering, prompt: DecisionPrompt) -> None:
        self._answering = answering
        self._prompt = prompt
        self._stream: TurnStream | None = None

    async def open(self, request: OpenRequest) -> Answerer:
        return self

    def turn(self, message: UserMessage) -> TurnStream:
        self._stream = TurnStream(self._work)
        return self._stream

    async def _work(self, tell: TurnStream) -> TurnEnded:
        return TurnEnded("success", await self._answering(self._prompt, tell))

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked."""

    async def configure(self, change: Change) -> None:
        """There is nothing to change."""

    async def cancel(self) -> None:
        if self._stream is not None:
            self._stream.cancel()

    async def close(self) -> None:
        await self.cancel()


def _who(agent: Agent) -> str:
    return "The model" if isinstance(agent, Answerer) else f"The agent `{agent.name}`"


class AnswerSink:
    """What an agent says in one turn. After a tool it begins anew: what came before was not the answer."""

    congested = False

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        """`stop` is called when it is too long."""
        self._stop = stop
        self._pieces: list[str] = []
        self._length = 0
        self._failure: Failed | None = None
        self._end: TurnEnded | None = None

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            match envelope.event:
                case TextDelta(text=text) if self._length <= MAX_REPLY:
                    self._pieces.append(text)
                    self._length += len(text)
                    if self._length > MAX_REPLY:
                        self._stop()
                case ToolStarted() if self._length <= MAX_REPLY:
                    self._pieces.clear()
                    self._length = 0
                case Failed() as failure:
                    self._failure = failure
                case TurnEnded() as end:
                    self._end = end

    async def drain(self) -> None:
        """It is never behind."""

    @property
    def ended(self) -> bool:
        """Whether the turn is over."""
        return self._end is not None

    def reply(self) -> BrainReply:
        """The answer.

        Raises:
            AnswerTooLong, Fault: see `Brain.answer`.
        """
        said = "".join(self._pieces)
        if self._length > MAX_REPLY:
            raise AnswerTooLong(said)
        if self._end is None or self._end.outcome != "success":
            failure = self._failure or Failed("agent", "The agent gave no answer.")
            raise of_kind(failure.kind, failure.message, retryable=failure.retryable)
        return BrainReply(said, self._end.usage)
