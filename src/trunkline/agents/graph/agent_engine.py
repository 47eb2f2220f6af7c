"""An agent in the place of a language model: a graph agent has one conversation with it, whichever node speaks.

The conversation begins when the first of the nodes asks, and is told that node's system prompt and what was said until
then. After that it hears only what is new, since it remembers the rest by itself: the message, and what the node's
template made of the turn's knowledge. So how much history a model would see does not matter to an agent, and nothing
tells it how to sample.

A `core.session` stands between: an agent that hangs, crashes or ignores its end costs its own turn and nothing else.
Nobody can be asked on this wire, so what its policy does not allow is denied, with the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

from trunkline.agents.graph.pool_leases import LanguageLease
from trunkline.core.agent import AddHistory
from trunkline.core.events import (
    Envelope,
    Failed,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.fault_table import told
from trunkline.core.faults import AgentFailed, Fault, Forbidden, ProviderError, Unsupported
from trunkline.core.feed import SessionWatcher
from trunkline.core.graph.models import SamplingParams
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.models.engines import ChatMessage, Piece, Prompt, Slot, cost

logger = logging.getLogger(__name__)

#: Larger than any message that fits into a frame: an agent sees to its own window.
CONTEXT_SIZE = 1 << 20
#: Characters of one answer. No `max_tokens` ends an agent that does not come to an end.
MAX_ANSWER = 1024 * 1024
#: Characters that wait for the client before the agent has to.
HIGH_WATER = 64 * 1024

#: What keeps two paragraphs apart that a tool stood between.
_APART = "\n\n"

#: Begins a conversation with these instructions.
Open = Callable[[str | None], Awaitable[Session]]
#: Says something in a session; gives the number of its turn, in the tick in which that has it. Raises a `Fault` if
#: it was not taken.
Submit = Callable[[Session, UserMessage], Awaitable[int]]


class SessionAgents:
    """All graph agents of one session of a server: how many conversations they are in, and those that begin or end."""

    def __init__(self) -> None:
        self.conversations = 0


class GraphClient:
    """One graph agent, as whoever has the agents sees it: of which session it is, and its conversations by agent."""

    def __init__(self, session_agents: SessionAgents | None = None) -> None:
        self.session_agents = session_agents if session_agents is not None else SessionAgents()
        self.conversations: dict[str, AgentLanguage] = {}


class AgentLanguage:
    """A `LanguageEngine` for all nodes of one graph agent, which never ask at the same time.

    `close` takes a session that is not needed any more, and does not wait.
    """

    context_size = CONTEXT_SIZE
    tool_call_format = ""
    default_sampling: SamplingParams | None = None

    def __init__(
        self,
        name: str,
        open: Open,
        close: Callable[[Session], None],
        submit: Submit | None = None,
        sender: str | None = None,
        stop: Callable[[Session, int], None] | None = None,
    ) -> None:
        """`submit`, `sender`, who speaks, and `stop`, for when nobody listens any more, are for sessions that several
        share."""
        self.name = name
        self._submit = submit or _submit_alone
        self._sender = sender
        self._open = open
        self._close = close
        self._stop = stop or _stop_alone
        self._session: Session | None = None
        self._uses = 0
        self._released = False

    def lend(self) -> LanguageLease:
        """For one node more. When the last one is released, the conversation ends."""
        self._uses += 1
        return LanguageLease(self, self._let_go)

    def _let_go(self) -> None:
        self._uses -= 1
        if not self._uses:
            self._released = True
            self.start_over()

    def refusal(self, sampling: SamplingParams) -> str | None:
        """Nobody holds an agent to a form, or to its words. That its answer stops is seen to; the rest means nothing to
        it."""
        asked = [field for field in ("json_schema", "logit_bias", "lora") if getattr(sampling, field)]
        return f"An agent answers as it will, and cannot be given `{asked[0]}`." if asked else None

    async def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        """Let the agent answer what is new in the prompt, piece by piece. Sampling and grammar mean nothing to it."""
        heard = _Heard()
        session: Session | None = None
        try:
            conversation = await self._conversation(prompt)
            said = _joined(prompt.messages[prompt.fresh :])
            if conversation.needs_approver(said):
                # Nobody is asked here: what must be asked about is not for whoever plays.
                raise Forbidden("It does not take this command from a graph: it changes something.")
            before = conversation.shown
            heard.turn = await self._submit(conversation, UserMessage(said, sender=self._sender))
            session = conversation
            if session.shown > before:
                # Another node has the session, and was quicker than its answer that it has the message.
                heard.show([each for each in session.read(before, session.shown) if isinstance(each, Envelope)])
            # In the same tick: nothing is shown between the two.
            session.attach(heard)
            while (piece := await heard.next()) is not None:
                yield piece
        except Fault as fault:
            raise self._failed(str(fault)) from None
        finally:
            heard.leave()
            if session is not None:
                session.detach(heard)
                self._stop(session, heard.turn)
        if heard.problem:
            raise self._failed(heard.problem)
        yield heard.bill()

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """An agent does not report probabilities.

        Raises:
            ProviderError: always.
        """
        raise self._failed("An agent does not report probabilities.")

    def count(self, text: str) -> int:
        """An estimate: nobody knows the vocabulary of whatever the agent thinks with."""
        return (len(text.encode("utf-8", "replace")) + 2) // 3

    def release(self, slot: Slot) -> None:
        """Nothing: no node has anything here for itself."""

    def start_over(self) -> None:
        """End the conversation; the next turn begins another one, and tells it what was said until then."""
        session, self._session = self._session, None
        if session is not None:
            self._close(session)

    def _failed(self, problem: str) -> ProviderError:
        return ProviderError(f"The agent `{self.name}`: {problem}")

    async def _conversation(self, prompt: Prompt) -> Session:
        """The conversation, which begins with the first prompt.

        Raises:
            Fault: the agent cannot begin one.
        """
        if self._session is not None:
            return self._session
        before = prompt.messages[: prompt.fresh]
        instructions = _joined(message for message in before if message.role == "system")
        session = await self._opened(instructions or None)
        # From here on a `release` closes it.
        self._session = session
        if said := [message for message in before if message.role != "system"]:
            try:
                await session.configure(AddHistory(_transcript(said)))
            except Unsupported:
                logger.info("the agent `%s` cannot be given the earlier conversation", self.name)
            except BaseException:
                self.start_over()
                raise
        return session

    async def _opened(self, instructions: str | None) -> Session:
        """Open a session. Nobody waits for an agent that begins slowly once its turn is cancelled."""
        opening = asyncio.ensure_future(self._open(instructions))
        try:
            await asyncio.wait({opening})
        except asyncio.CancelledError:
            opening.cancel()
            opening.add_done_callback(self._too_late)
            raise
        try:
            session = opening.result()
        except Fault:
            raise
        except (Exception, asyncio.CancelledError) as error:
            logger.error("the agent `%s` could not begin", self.name, exc_info=error)
            raise AgentFailed(f"It could not begin ({type(error).__name__}).") from None
        if self._released:
            self._close(session)
            raise AgentFailed("It is no longer needed.")
        return session

    def _too_late(self, opening: asyncio.Future[Session]) -> None:
        if opening.cancelled():
            return
        if (error := opening.exception()) is not None:
            logger.info("an agent that is no longer needed could not begin: %s", error)
        else:
            self._close(opening.result())


class _Heard(SessionWatcher):
    """A `Sink`: what the agent says in one turn, for one reader who may be slower."""

    def __init__(self) -> None:
        self.problem = ""
        """Why it is no answer, once it is over."""
        self.turn = 0
        """Of which events are heard: the session may have others, of others."""
        self._pieces: deque[str] = deque()
        self._waiting = 0
        self._said = 0
        self._count = 0
        self._last = ""
        self._apart = self._left = False
        self._end: TurnEnded | None = None
        self._is_closed = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def congested(self) -> bool:  # type: ignore[override]
        return not self._room.is_set()

    async def drain(self) -> None:
        await self._room.wait()

    def close(self) -> None:
        """The session is at work no more, and says nothing: it was removed, or is another node's."""
        self._is_closed = True
        self._news.set()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            if envelope.turn != self.turn:
                continue
            match envelope.event:
                case TextDelta(text=text):
                    self._add(text)
                case ToolStarted() | ToolFinished() | ToolCancelled():
                    self._apart = True
                case Failed(kind=kind, message=message):
                    # It may try again and succeed: that it counts is known at the end.
                    self.problem = told(kind, message)
                case TurnEnded() as end:
                    self._end = end
                    if end.outcome == "success":
                        self.problem = ""
                    elif not self.problem:
                        self.problem = "It ended without an answer."
        self._news.set()

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._apart and self._last:
            text = _APART[len(self._last) - len(self._last.rstrip("\n")) :] + text
        self._apart = False
        self._last = text[-len(_APART) :]
        self._pieces.append(text)
        self._waiting += len(text)
        if self._waiting > HIGH_WATER and not self._left:
            self._room.clear()

    async def next(self) -> str | None:
        """The next piece; None at the end.

        Raises:
            AgentFailed: it has no end.
        """
        while not self._pieces:
            if self._end is not None:
                return None
            if self._is_closed:
                raise AgentFailed("Its session was closed before it had answered.")
            self._news.clear()
            await self._news.wait()
        piece = self._pieces.popleft()
        self._waiting -= len(piece)
        if self._waiting <= HIGH_WATER:
            self._room.set()
        self._said += len(piece)
        if self._said > MAX_ANSWER:
            raise AgentFailed(f"Its answer has more than {MAX_ANSWER} characters.")
        self._count += 1
        return piece

    def leave(self) -> None:
        """Nobody reads any more, and nobody waits for that."""
        self._left = True
        self._room.set()

    def bill(self) -> Piece:
        """What the turn cost, as far as that is known: each piece was counted as a token already."""
        usage = (self._end.usage if self._end is not None else None) or Usage()
        rest = max(0, cost(usage.output_tokens) - self._count)
        return Piece("", rest, cost(usage.input_tokens), cost(usage.cache_read_tokens))


def _stop_alone(session: Session, turn: int) -> None:
    session.stop(turn=turn)


async def _submit_alone(session: Session, message: UserMessage) -> int:
    """Say something where nobody else talks. What was cancelled before may take a moment to end."""
    await session.at_rest()
    return session.submit(message)


def _joined(messages: Iterable[ChatMessage]) -> str:
    """Who said it is lost: an agent hears one voice."""
    return _APART.join(message.text for message in messages)


def _transcript(messages: Sequence[ChatMessage]) -> str:
    who = {"user": "User", "assistant": "Assistant"}
    return _APART.join(f"{who[message.role]}: {message.text}" for message in messages)
