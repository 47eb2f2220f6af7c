"""The work on one message: ask the model, use the tools it calls, and ask again, until it has an answer.

The same work is done for a user's message and for a sub-agent's task; they differ in who hears of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.compaction import Compaction, Say
from trunkline.agents.coder.guards import Guards
from trunkline.agents.coder.history import History
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.steering import Steering
from trunkline.agents.coder.words import GO_ON, NO_ANSWER, NO_MORE_TOOLS, NOT_RUN
from trunkline.agents.turn_stream import TurnStream
from trunkline.core import fault_kinds
from trunkline.core.events import (
    FINISH,
    Extension,
    Failed,
    Notice,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import Fault, ProviderError, TooLong
from trunkline.core.turns import STOPPED
from trunkline.core.usage import Usage
from trunkline.models.messages import Block, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Answer, Retrying, TextChunk, ThinkingChunk
from trunkline.models.refused import PartRefused

logger = logging.getLogger(__name__)

#: How often what the model says is kept for good while it still speaks.
KEEP_SECONDS = 1.0
#: The longest answer: ten times what any model can say, and nothing that would fill our memory.
MAX_ANSWER_CHARS = 8 * 1024 * 1024


#: What a message is to the model, its files included. Says what could not be read.
Attached = Callable[[UserMessage, TurnStream], Awaitable[Sequence[Block]]]


async def _text_alone(message: UserMessage, tell: TurnStream) -> Sequence[Block]:
    return (Text(message.text),)


class TurnRunner:
    """One message being worked on."""

    def __init__(
        self,
        client: ModelClient,
        history: History,
        calls: Calls,
        compaction: Compaction,
        *,
        aloud: bool = True,
        steering: Steering | None = None,
        attached: Attached = _text_alone,
        answered: Callable[[Say], Awaitable[str]] | None = None,
        news: Callable[[], Sequence[Block]] = tuple,
    ) -> None:
        """`steering`: what is said to the agent while it works, each message read by `attached`; none, if it is not
        for the model. `answered` is asked once, when there is an answer: what to say to a model that must go on. `news`
        is asked before each request: what the model does not know yet.
        """
        self._client = client
        self._history = history
        self._calls = calls
        self._compaction = compaction
        self._steering = steering
        self._attached = attached
        self._answered = answered
        self._news = news
        self._aloud = aloud
        """Whether the model's words are told; a sub-agent's are not."""
        self._said: list[str] = []
        """What the model has said of the answer under way."""
        self._kept = self._length = 0
        """How much of it is kept: in pieces, and in characters."""
        self._keep_at = 0.0
        self._clock = asyncio.get_running_loop().time
        self._asked: tuple[ToolUse, ...] = ()
        self.rounds = 0
        self.answer = ""
        """The words of the latest answer."""

    async def run(self, tell: TurnStream) -> TurnEnded:
        """Work until there is an answer. History is in order afterwards, whatever happens.

        What an earlier process left unanswered in the history comes first.
        """
        tell.usage = tell.usage or Usage()
        try:
            return await self._run(tell)
        except asyncio.CancelledError:
            self._history.stopped("".join(self._said), self._asked, tuple(self._calls.done.values()), STOPPED)
            raise
        except Exception as error:
            if not isinstance(error, Fault):
                logger.exception("the work on a message failed badly")
            fault = fault_kinds.of(error)
            if self._asked:
                done = tuple(self._calls.done.values())
                self._history.stopped("".join(self._said), self._asked, done, f"The agent failed: {fault}")
            elif self._said:
                self._history.assistant((Text("".join(self._said)),))
            await tell.say(Failed(fault.kind, str(fault), fault.retryable))
            return TurnEnded("error", tell.usage)

    async def _run(self, tell: TurnStream) -> TurnEnded:
        guards = Guards()
        nudged = continued = False
        calls, done = self._history.take_unanswered()
        if calls and (reason := await self._use(calls, guards, tell, done)) is not None:
            return await self._broken_off(reason, tell)
        while True:
            await self._catch_up(tell)
            answer = await self._ask(tell)
            calls = self._history.assistant(answer.content)
            self._history.counted(_total(answer.usage), self._client.beside(self._calls.specs()))
            self._said.clear()
            said = "".join(block.text for block in answer.content if isinstance(block, Text))
            self.answer = self.answer + said if continued else said
            if calls:
                continued = False
                reason = await self._use(calls, guards, tell)
                if reason is not None:
                    return await self._broken_off(reason, tell)
            elif answer.stop == "max_tokens" and not continued:
                continued = True
                await tell.say(Notice("The answer reached its length limit; the model was asked to continue."))
                self._history.user((Text(GO_ON),))
            elif self.answer.strip() or answer.stop == "refusal":
                if await self._is_over(tell, refused=answer.stop == "refusal"):
                    return await self._ended(answer, tell)
                continued = False
            elif not nudged:
                nudged = True
                self._history.user((Text(NO_ANSWER),))
            elif await self._is_over(tell):
                return await self._without_words(answer, tell)

    async def _catch_up(self, tell: TurnStream) -> None:
        """Let the model know what has happened since it was asked last."""
        while self._steering is not None and (message := self._steering.next) is not None:
            if content := await self._attached(message, tell):
                self._history.user(content)
            self._steering.was_read()
        if news := self._news():
            self._history.user(news)

    async def _is_over(self, tell: TurnStream, *, refused: bool = False) -> bool:
        """Whether the answer is the last: everything was read, and nobody sends the model on. From there on nothing
        more is taken, so that who is asked has the last answer before them."""
        if not self._may_end():
            return False
        if refused or not await self._sent_on(tell):
            return True
        if self._steering is not None:
            self._steering.begin()
        return False

    async def _sent_on(self, tell: TurnStream) -> bool:
        """Whether somebody does not take the answer for the end. Nobody is asked twice."""
        answered, self._answered = self._answered, None
        if answered is None or not (words := await answered(tell.say)):
            return False
        self._history.user((Text(words),))
        return True

    def _may_end(self) -> bool:
        """Whether everything that was said to the agent meanwhile has been read."""
        return self._steering is None or self._steering.end()

    async def _broken_off(self, reason: str, tell: TurnStream) -> TurnEnded:
        if self._client.max_rounds is not None and self.rounds > self._client.max_rounds:
            await self._finish("max_turns", tell)
        await tell.say(Failed("tool", f"{reason} The turn was ended."))
        return TurnEnded("error", tell.usage)

    async def _ended(self, answer: Answer, tell: TurnStream) -> TurnEnded:
        if answer.stop == "refusal":
            await self._finish("refusal", tell)
            await tell.say(Failed("provider", "The model refused to answer."))
            return TurnEnded("error", tell.usage)
        if answer.stop == "max_tokens":
            await self._finish("length", tell)
            await tell.say(Notice("The answer was cut off at its length limit."))
        return TurnEnded("success", tell.usage)

    async def _finish(self, reason: str, tell: TurnStream) -> None:
        """Say why the answer does not simply come to its end; of a sub-agent's, nobody needs to know."""
        if self._aloud:
            await tell.say(Extension(FINISH, {"reason": reason}))

    async def _without_words(self, answer: Answer, tell: TurnStream) -> TurnEnded:
        """Some models put their answer into their reasoning: better that than nothing."""
        thoughts = "".join(block.text for block in answer.content if isinstance(block, ThinkingBlock))
        if not thoughts:
            await tell.say(Failed("provider", "The model finished without an answer.", retryable=True))
            return TurnEnded("error", tell.usage)
        self.answer = thoughts
        if self._aloud:
            await tell.say(TextDelta(thoughts))
        return TurnEnded("success", tell.usage)

    # Asking

    async def _ask(self, tell: TurnStream) -> Answer:
        try:
            await self._compaction.make_room(tell.say)
        finally:
            tell.usage = (tell.usage or Usage()) + self._compaction.usage
            self._compaction.usage = Usage()
        tried: set[str] = set()
        while True:
            try:
                return await self._listen(tell)
            except (TooLong, PartRefused) as fault:
                remedy = fault.what if isinstance(fault, PartRefused) else "length"
                dropped = None if self._said or remedy in tried else await self._lightened(fault)
                if dropped is None:
                    raise
                tried.add(remedy)
                await tell.say(Notice(dropped))

    async def _lightened(self, fault: TooLong | PartRefused) -> str | None:
        """Leave out what a provider does not take; gives what to tell people, None if there is nothing of that kind."""
        if isinstance(fault, TooLong):
            # The window is smaller than we believed.
            return await self._compaction.drop()
        if fault.what == "pictures":
            return f"{fault} The pictures were left out." if self._history.forget_pictures() else None
        return f"{fault} Its earlier reasoning was left out." if self._history.forget_reasoning() else None

    async def _listen(self, tell: TurnStream) -> Answer:
        self._said.clear()
        self._kept = self._length = 0
        self._keep_at = self._clock() + KEEP_SECONDS
        answer: Answer | None = None
        stream = self._client.ask(
            self._history.messages,
            self._calls.specs(),
            self._history.tokens,
            on_spent=lambda usage: self._spend(usage, tell),
        )
        try:
            # To the very end, which comes right after the answer: a connection that was read to its end is kept.
            async for chunk in stream:
                if isinstance(chunk, TextChunk):
                    self._keep(chunk.text)
                    if self._aloud:
                        await tell.say(TextDelta(chunk.text))
                elif isinstance(chunk, ThinkingChunk):
                    if self._aloud:
                        await tell.say(ThinkingDelta(chunk.text))
                elif isinstance(chunk, Retrying):
                    await tell.say(Notice(chunk.told))
                elif isinstance(chunk, Answer):
                    answer = chunk
        finally:
            await stream.aclose()
        if answer is None:
            raise ProviderError("The model's answer ended without an end.", retryable=True)
        self._spend(answer.usage, tell)
        return answer

    def _keep(self, text: str) -> None:
        """Remember what was said, and from time to time for good: a crash must not take what people have seen."""
        self._said.append(text)
        now = self._clock()
        if now < self._keep_at:
            return
        self._keep_at = now + KEEP_SECONDS
        news = "".join(self._said[self._kept :])
        self._kept, self._length = len(self._said), self._length + len(news)
        if self._length > MAX_ANSWER_CHARS:
            raise ProviderError(f"The model's answer is longer than {MAX_ANSWER_CHARS} characters.", retryable=False)
        self._history.early(Text(news))

    def _spend(self, usage: Usage | None, tell: TurnStream) -> None:
        if usage is not None:
            tell.usage = (tell.usage or Usage()) + usage
            self._client.spent(usage)

    # Using tools

    async def _use(
        self,
        calls: tuple[ToolUse, ...],
        guards: Guards,
        tell: TurnStream,
        done: Mapping[str, ToolResultBlock] | None = None,
    ) -> str | None:
        """One round of tools; gives the reason to end the turn, if there is one."""
        most = self._client.max_rounds
        self.rounds += 1
        if most is not None and self.rounds > most:
            self._history.results([ToolResultBlock(call.id, NOT_RUN, is_error=True) for call in calls])
            return f"Stopped after reaching the turn budget (max_turns={most})."
        self._asked = calls
        results = await self._calls.run(calls, tell, self._history.early, done)
        self._history.results(results)
        self._asked = ()
        if most is not None and self.rounds == most:
            await tell.say(Notice(f"All {most} tool rounds are used; the model was asked for its answer."))
            self._history.user((Text(NO_MORE_TOOLS),))
        return guards.saw(calls, results)


def _total(usage: Usage | None) -> int | None:
    """The tokens of a conversation up to and with an answer, as its provider counted them."""
    if usage is None or usage.input_tokens is None:
        return None
    return usage.input_tokens + (usage.output_tokens or 0)
