"""What was said so far, and how much of it a node shows to its model.

The window of a node has a high-water mark: the model's context less a reserve for the answer. A prompt above it loses
its oldest exchanges, down to three quarters of the mark, so that the next turns find the same beginning, still warm.
What a node has dropped stays dropped. The system prompt and the current turn are never dropped.

Tokens are estimated, and an engine may know better: a prompt that it finds too long loses more, and is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from sys import getsizeof

from trunkline.core.faults import NodeFailed
from trunkline.models.engines import ChatMessage, LanguageEngine, Prompt, high_water

#: Exchanges that are kept, whatever the models take.
MAX_EXCHANGES = 4096
#: Characters that are kept: an agent is not a place to store things in.
MAX_CHARS = 4 * 1024 * 1024

#: Where dropping stops, as a part of the high-water mark.
LOW_WATER = 0.75
#: The least part of the shown exchanges that goes when an engine finds a prompt too long: after thirty tries all are
#: gone, whatever the engine says.
LEAST_DROPPED = 0.25
#: What a chat template adds to each message.
MESSAGE_TOKENS = 8


class Dialog:
    """The exchanges of a conversation: a user's message and its answer, each. Without an answer there is none."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        """User and assistant in turns."""
        self.dropped = 0
        """Exchanges that were here and are not kept any longer."""
        self.most_tokens = 0
        """No model counts more tokens than these."""
        self._chars = self._size = 0

    def add(self, user: str, assistant: str) -> None:
        """Keep an exchange; the oldest ones make room for it."""
        self.messages += (ChatMessage("user", user), ChatMessage("assistant", assistant))
        self.most_tokens += _most_tokens(user) + _most_tokens(assistant)
        self._chars += len(user) + len(assistant)
        self._size += getsizeof(user) + getsizeof(assistant)
        if self._chars > MAX_CHARS or len(self.messages) > 2 * MAX_EXCHANGES:
            self._drop(self._size)

    def size(self) -> int:
        """The bytes that all texts take in memory."""
        return self._size

    def forget(self, size: int) -> None:
        """Drop the oldest exchanges until the texts take no more than this."""
        self._drop(max(size, 0))

    def _drop(self, size: int) -> None:
        gone = 0
        while self._chars > MAX_CHARS or self._size > size or len(self.messages) // 2 - gone > MAX_EXCHANGES:
            oldest = self.messages[2 * gone : 2 * gone + 2]
            self.most_tokens -= sum(_most_tokens(message.text) for message in oldest)
            self._chars -= sum(len(message.text) for message in oldest)
            self._size -= sum(getsizeof(message.text) for message in oldest)
            gone += 1
        if gone:
            del self.messages[: 2 * gone]
            self.dropped += gone

    def exchanges(self) -> list[tuple[str, str]]:
        """All of them, oldest first."""
        texts = [message.text for message in self.messages]
        return list(zip(texts[::2], texts[1::2], strict=True))

    def restore(self, exchanges: Iterable[tuple[str, str]]) -> None:
        """Begin anew with these."""
        self.dropped += len(self.messages) // 2
        self.messages.clear()
        self.most_tokens = self._chars = self._size = 0
        for user, assistant in exchanges:
            self.add(user, assistant)


class Window:
    """What one node shows of a dialog to its model."""

    def __init__(self, engine: LanguageEngine) -> None:
        self._engine = engine
        self._high = high_water(engine.context_size)
        self._start = 0
        """The first exchange that is shown, counted from the dialog's very first."""
        self._costs: dict[int, int] = {}
        """Tokens of the exchanges that were counted."""

    def history(self, dialog: Dialog, always: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The history that fits in beside what is always shown.

        Raises:
            NodeFailed: not even that fits.
        """
        while self._start < dialog.dropped:
            self._costs.pop(self._start, None)
            self._start += 1
        shown = dialog.messages[2 * (self._start - dialog.dropped) :]
        # As long as the largest count that can be fits in, nothing needs to be counted.
        most = dialog.most_tokens
        for message in always:
            most += _most_tokens(message.text)
        if most <= self._high:
            return shown
        base = sum(map(self._tokens, always))
        if base > self._high:
            raise NodeFailed(f"The message and what goes with it have {base} tokens; {self._high} fit.")
        costs = [self._cost(dialog, self._start + number) for number in range(len(shown) // 2)]
        total = base + sum(costs)
        gone = 0
        if total > self._high:
            while gone < len(costs) and total > self._high * LOW_WATER:
                total -= costs[gone]
                self._costs.pop(self._start + gone, None)
                gone += 1
        self._start += gone
        return shown[2 * gone :]

    def shrink(self, dialog: Dialog, prompt: Prompt, tokens: int) -> bool:
        """The engine has found a prompt too long: show less from now on. False if no history is left to drop.

        `tokens`: how long the engine says that it is; 0 if it does not.
        """
        # What was shown may have been dropped from the dialog meanwhile.
        self._start = max(self._start, dialog.dropped)
        count = len(dialog.messages) // 2 - (self._start - dialog.dropped)
        if count <= 0:
            return False
        estimate = sum(map(self._tokens, prompt.messages))
        total = max(float(tokens), estimate)
        least = ceil(count * LEAST_DROPPED)
        gone = 0
        while gone < least or (gone < count and total > self._high * LOW_WATER):
            total -= self._cost(dialog, self._start) * max(1.0, tokens / estimate)
            self._costs.pop(self._start, None)
            self._start += 1
            gone += 1
        return True

    def _cost(self, dialog: Dialog, exchange: int) -> int:
        if exchange not in self._costs:
            at = 2 * (exchange - dialog.dropped)
            self._costs[exchange] = sum(map(self._tokens, dialog.messages[at : at + 2]))
        return self._costs[exchange]

    def _tokens(self, message: ChatMessage) -> int:
        return self._engine.count(message.text) + MESSAGE_TOKENS


def _most_tokens(text: str) -> int:
    """Of a message: a text has no more tokens than bytes."""
    return MESSAGE_TOKENS + (len(text) if text.isascii() else 4 * len(text))
