"""Makes room before the model's window is full, in tiers: the cheap one first.

1. Results of old tool calls are cleared; the newest stay.
2. The model writes a summary, which takes the place of everything but the latest message of the user.
3. Where even that fails, the oldest messages are dropped.

With a summary, and with what is left of the messages, go the plan, the to-dos and the files in hand (`in_hand`).
The model is told each time. The log keeps everything: only what is sent changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from operator import is_
from typing import Protocol

from trunkline.agents.coder.history import History, data_chars, estimate
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.words import CLEARED, COMPACTED, DROPPED, LATEST, PICTURE_CLEARED, is_ours
from trunkline.core.events import Event, Notice
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models.messages import Block, Document, Message, Text, ToolResultBlock
from trunkline.models.model import Answer, Retrying, ToolSpec

#: How full the window may get before the second and the third tier, as a part of it; and the first, as a part of that.
SUMMARISE_AT, DROP_AT = 0.8, 0.95
CLEAR_SHARE = 0.75
#: Results that stay when old ones are cleared; shorter ones than this are not worth it.
KEPT_RESULTS = 5
WORTH_CLEARING_CHARS = 200
#: Characters of pictures and documents that are sent with every request; services take about twice as much.
MAX_DATA_CHARS = 16 * 1024 * 1024
#: The longest summary, in tokens.
SUMMARY_TOKENS = 8000
#: After that many failed summaries in a session no more are tried; the third tier is left.
MAX_FAILURES = 3
#: Where one was refused, the next is asked for when the conversation has grown by this part of the window.
ASK_AGAIN_SHARE = 0.05

ASK_FOR_SUMMARY = """Write a summary of our conversation so far that lets you go on without it. Use no tools.
Be exact: it replaces everything above. Use these headings and leave out empty ones:
1. What the user wants, in their own words where they matter
2. Decisions and constraints
3. Files read, written or changed, with what matters in them
4. Commands run, and what they showed
5. Errors met, and how they were solved
6. What is done
7. What is left, and what you were about to do"""


Say = Callable[[Event], Awaitable[None]]


class BeforeSummary(Protocol):
    """Asked before a summary is written."""

    async def __call__(self, say: Say, *, by_hand: bool) -> tuple[str, str]:
        """Why none may be written, if so; and what else the model is told about it."""


class Compaction:
    """Keeps one conversation within its model's window."""

    def __init__(
        self,
        client: ModelClient,
        history: History,
        tools: Callable[[], Sequence[ToolSpec]],
        *,
        enabled: bool = True,
        summarise_at: float | None = None,
    ) -> None:
        self._client = client
        self._history = history
        self._tools = tools
        self._failures = 0
        self._ask_again_at = 0.0
        """How many tokens there must be before a summary is wanted again that was refused."""
        self._summarise_at = summarise_at or SUMMARISE_AT
        self.before_summary: BeforeSummary | None = None
        self.in_hand: Callable[[], Awaitable[Sequence[Text]]] | None = None
        """What must not be lost. It is asked for right before messages are replaced."""
        self.enabled = enabled
        self.usage = Usage()
        """What summaries have cost since somebody last asked."""

    def alike(self, client: ModelClient, history: History, tools: Callable[[], Sequence[ToolSpec]]) -> Compaction:
        """One for another conversation, set as this one is now."""
        other = Compaction(client, history, tools, enabled=self.enabled, summarise_at=self._summarise_at)
        other.before_summary = self.before_summary
        return other

    @property
    def summarise_at(self) -> float:
        """How many tokens the conversation may have before a summary takes its place."""
        return min(self._summarise_at * self._client.context_window, self._client.room)

    async def make_room(self, say: Say) -> None:
        """Before a request: do what is needed, and no more."""
        window, summarise_at = self._client.context_window, self.summarise_at
        if self._clear_pictures():
            await say(Notice("Old pictures and documents were cleared to make room."))
        if self.enabled and self._history.tokens >= CLEAR_SHARE * summarise_at:
            freed = self._clear_results()
            if freed:
                await say(Notice(f"Old tool results were cleared to make room (about {freed} tokens)."))
        if self.enabled and self._history.tokens >= summarise_at and self._may_summarise:
            await say(Notice(await self.summarise(say)))
        if self._history.tokens >= DROP_AT * window:
            dropped = await self.drop()
            if dropped is not None:
                await say(Notice(dropped))

    @property
    def _may_summarise(self) -> bool:
        """Whether there is something before the latest message, and summaries have not failed too often, nor was one
        refused just now."""
        if self._history.tokens < self._ask_again_at:
            return False
        return len(self._history.messages) > 1 and self._failures < MAX_FAILURES

    async def summarise(self, say: Say, *, by_hand: bool = False) -> str:
        """Let the model write a summary and go on with that; gives what to tell people."""
        history = self._history
        before = history.tokens
        wish = ASK_FOR_SUMMARY
        if self.before_summary is not None:
            refusal, more = await self.before_summary(say, by_hand=by_hand)
            if refusal:
                if not by_hand:
                    self._ask_again_at = before + ASK_AGAIN_SHARE * self._client.context_window
                return f"The conversation was not compacted: {refusal}"
            wish = "\n\n".join(filter(None, (wish, more)))
        request = [*history.messages, Message("user", (Text(wish),))]
        try:
            summary = await self._ask(request, say)
        except ProviderError as fault:
            self._failures += 1
            return f"The conversation could not be summarised: {fault}"
        if not summary:
            self._failures += 1
            return "The conversation could not be summarised: the model wrote no summary, or no whole one."
        self._failures, self._ask_again_at = 0, 0.0
        kept = (*await self._in_hand(), *_latest_words(history.messages))
        history.replace([Message("user", (Text(f"{COMPACTED}\n\n{summary}"), *kept))])
        return f"The conversation was compacted: about {before} tokens became {history.tokens}."

    async def _in_hand(self) -> Sequence[Text]:
        return () if self.in_hand is None else await self.in_hand()

    async def drop(self) -> str | None:
        """Without the model: leave out the oldest messages, so that half of the room they take is free, or half of the
        window if that is smaller. Gives what to tell people; None if there is nothing to leave out.
        """
        messages = self._history.messages
        room = min(self._client.context_window, sum(map(estimate, messages))) // 2
        kept: list[Message] = []
        tokens = 0
        for message in reversed(messages):
            tokens += estimate(message)
            if kept and tokens > room:
                break
            kept.append(message)
        kept.reverse()
        if kept and isinstance(kept[0].content[0], ToolResultBlock):
            # A result whose call is gone would be refused.
            kept.pop(0)
        dropped = [message for message in messages[: len(messages) - len(kept)] if not _is_mark(message)]
        if not dropped:
            return None
        self._ask_again_at = 0.0
        words = () if _latest_words(kept) else _latest_words(messages)
        self._history.replace([Message("user", (Text(DROPPED), *await self._in_hand(), *words)), *kept])
        return f"The model's window is full: the oldest {len(dropped)} messages are no longer sent."

    def _clear_results(self) -> int:
        """Clear old results; gives the tokens that are free now."""
        before = self._history.tokens
        left = KEPT_RESULTS

        def cleared(block: Block) -> Block:
            nonlocal left
            if not isinstance(block, ToolResultBlock):
                return block
            left -= 1
            worth = len(block.text) > WORTH_CLEARING_CHARS or block.images
            return ToolResultBlock(block.id, CLEARED, block.is_error) if left < 0 and worth else block

        return max(0, before - self._history.tokens) if self._rewrite(cleared) else 0

    def _clear_pictures(self) -> bool:
        """Clear the oldest pictures and documents beyond what a service takes; whether there were any."""
        if self._history.data_chars <= MAX_DATA_CHARS:
            return False
        left = MAX_DATA_CHARS

        def cleared(block: Block) -> Block:
            nonlocal left
            size = data_chars(block)
            left -= size
            return _without_data(block) if size and left < 0 else block

        return self._rewrite(cleared)

    def _rewrite(self, change: Callable[[Block], Block]) -> bool:
        """Go through all blocks, the newest first, and replace those that change; whether any did."""
        messages: list[Message] = []
        for message in reversed(self._history.messages):
            content = tuple(reversed([change(block) for block in reversed(message.content)]))
            same = all(map(is_, content, message.content))
            messages.append(message if same else message.replace(content=content))
        messages.reverse()
        if all(map(is_, messages, self._history.messages)):
            return False
        self._history.replace(messages)
        return True

    async def _ask(self, messages: Sequence[Message], say: Say) -> str:
        """The model's summary; empty if it wrote none, or was cut off."""
        summary = ""
        # The tools are named because their calls are in the conversation; providers insist.
        stream = self._client.ask(
            messages, self._tools(), self._history.tokens, most=SUMMARY_TOKENS, on_spent=self._spend
        )
        try:
            async for chunk in stream:
                if isinstance(chunk, Retrying):
                    await say(Notice(chunk.told))
                elif isinstance(chunk, Answer):
                    self._spend(chunk.usage or Usage())
                    if chunk.stop == "end":
                        summary = "".join(block.text for block in chunk.content if isinstance(block, Text)).strip()
        finally:
            await stream.aclose()
        return summary

    def _spend(self, usage: Usage) -> None:
        self.usage += usage
        self._client.spent(usage)


def _latest_words(messages: Sequence[Message]) -> tuple[Text, ...]:
    """What the user said last: a summary may lose its edge."""
    for message in reversed(messages):
        words = tuple(block for block in message.content if isinstance(block, Text) and not is_ours(block))
        if message.role == "user" and words:
            return (Text(LATEST), *words)
    return ()


def _is_mark(message: Message) -> bool:
    """Whether a message stands for those that were dropped before."""
    return message.content[0] == Text(DROPPED) and all(map(is_ours, message.content))


def _without_data(block: Block) -> Block:
    match block:
        case ToolResultBlock():
            return block.replace(text=f"{block.text}\n{PICTURE_CLEARED}", images=())
        case Document(name=name, text=text):
            return Text(f"[The document `{name}`, as text:]\n{text}")
        case _:
            return Text(PICTURE_CLEARED)
