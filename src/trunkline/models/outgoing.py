"""A conversation as providers accept it, message by message, at a cost that does not grow with what was sent before.

Providers refuse a conversation in which a call has no result or a result no call, in which a side speaks twice or an
assistant first. `repaired` makes one that they accept out of any; `RequestWriter` does so only where it is needed, and
remembers the bytes of every message that it has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_

from trunkline.models.messages import Block, Message, Role, Text, ThinkingBlock, ToolResultBlock, ToolUse

#: Conversations whose bytes are remembered at once: an agent's own and those of its sub-agents.
MAX_CONVERSATIONS = 8

#: What is said where somebody must speak and has nothing to say.
FILLER = "."


class Sent:
    """What one message is on the wire, and the calls and results in it."""

    __slots__ = ("calls", "data", "message", "results", "role", "tidy")

    def __init__(self, message: Message, data: bytes) -> None:
        self.message = message
        self.role = message.role
        self.data = data
        self.calls = tuple(block.id for block in message.content if isinstance(block, ToolUse))
        self.results = tuple(block.id for block in message.content if isinstance(block, ToolResultBlock))
        self.tidy = _is_tidy(message)


class _Conversation:
    """What is known of one conversation: its messages so far, and whether they can go out as they are."""

    def __init__(self, first: Message) -> None:
        self.first = first
        self.known: dict[int, Sent] = {}
        """By the identity of the message, which the value keeps alive."""
        self.begin()

    def begin(self) -> None:
        """Look at it from the start again."""
        self.messages: list[Message] = []
        self.sent: list[Sent] = []
        self.sound = True
        self.role: Role = "assistant"
        self.waiting: tuple[str, ...] = ()
        """The calls of the latest message, which the next one has to answer."""

    def add(self, message: Message, encode: Callable[[Message], bytes]) -> None:
        self.messages.append(message)
        one = self.known.get(id(message))
        if one is None:
            one = self.known[id(message)] = Sent(message, encode(message))
        if not one.data:
            return
        if one.role == "user":
            self.sound = self.sound and one.tidy and one.results == self.waiting
            self.waiting = ()
        else:
            self.sound = self.sound and one.tidy and self.role == "user" and not self.waiting
            self.waiting = one.calls
        self.role = one.role
        self.sent.append(one)

    def forget_others(self) -> None:
        """Let go of messages that are no longer sent."""
        if len(self.known) > len(self.messages):
            current = set(map(id, self.messages))
            self.known = {key: one for key, one in self.known.items() if key in current}


class RequestWriter:
    """Writes conversations in one format.

    `encode` gives the bytes of a message: never none for the user's, none for an assistant's that has nothing to send.
    A message is known by its identity: it must not change, and messages are frozen.
    """

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        # By the identity of the first message. The last used is the last.
        self._conversations: dict[int, _Conversation] = {}

    def sent(self, messages: Sequence[Message]) -> Sequence[Sent]:
        """What goes out: the user first and last, calls followed by their results, nothing empty.

        The user may still speak twice: only a format knows how to make one message of two.
        """
        if not messages:
            return [Sent(message, self._encode(message)) for message in repaired(messages)]
        talk = self._conversation(messages[0])
        seen = len(talk.messages)
        # A conversation only grows, as a rule; then what is new is all that has to be looked at. Lists are compared by
        # the identity of what is in them first: ten times as fast as asking for it one by one.
        if talk.messages != [*messages[:seen]]:
            talk.begin()
            seen = 0
        for message in messages[seen:]:
            talk.add(message, self._encode)
        talk.forget_others()
        if talk.sound and talk.role == "user" and not talk.waiting:
            return talk.sent
        mended = (talk.known.get(id(message)) or Sent(message, self._encode(message)) for message in repaired(messages))
        return [one for one in mended if one.data]

    def _conversation(self, first: Message) -> _Conversation:
        talk = self._conversations.pop(id(first), None) or _Conversation(first)
        self._conversations[id(first)] = talk
        if len(self._conversations) > MAX_CONVERSATIONS:
            del self._conversations[next(iter(self._conversations))]
        return talk


def repaired(messages: Iterable[Message]) -> list[Message]:
    """A conversation that every provider accepts, with as much of this one as can be kept.

    Messages in which nothing had to be changed are the same objects.
    """
    current = _merged(messages)
    while True:
        paired = _paired(current)
        following = _merged(paired)
        if len(following) == len(current):
            break
        current = following
    filler = Message("user", (Text(FILLER),))
    if not following or following[0].role == "assistant":
        following.insert(0, filler)
    if following[-1].role == "assistant":
        following.append(filler)
    return following


def _is_tidy(message: Message) -> bool:
    """Whether results come first, each call and result is there once, and each stands on its own side."""
    seen: set[str] = set()
    others = False
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            if others or message.role != "user" or block.id in seen:
                return False
            seen.add(block.id)
        elif isinstance(block, ToolUse):
            if message.role != "assistant" or block.id in seen:
                return False
            seen.add(block.id)
        else:
            others = True
    return True


def _merged(messages: Iterable[Message]) -> list[Message]:
    """No empty message, and no two of one side after each other."""
    found: list[Message] = []
    for message in messages:
        if not message.content:
            continue
        if found and found[-1].role == message.role:
            found[-1] = Message(message.role, found[-1].content + message.content)
        else:
            found.append(message)
    return found


def _paired(messages: list[Message]) -> list[Message]:
    """Calls that have results, and results that have calls, in the order of the calls."""
    found: list[Message] = []
    calls: list[str] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            following = messages[number + 1].content if number + 1 < len(messages) else ()
            answered = {block.id for block in following if isinstance(block, ToolResultBlock)}
            content, calls = _answered_calls(message.content, answered)
        else:
            content, calls = _awaited_results(message.content, calls), []
        unchanged = len(content) == len(message.content) and all(map(is_, content, message.content))
        found.append(message if unchanged else Message(message.role, content))
    return found


def _answered_calls(content: tuple[Block, ...], answered: set[str]) -> tuple[tuple[Block, ...], list[str]]:
    kept: list[Block] = []
    calls: list[str] = []
    for block in content:
        if isinstance(block, ToolUse):
            if block.id not in answered or block.id in calls:
                continue
            calls.append(block.id)
        elif isinstance(block, ToolResultBlock):
            continue
        kept.append(block)
    if all(isinstance(block, ThinkingBlock) for block in kept):
        kept = []
    return tuple(kept), calls


def _awaited_results(content: tuple[Block, ...], calls: list[str]) -> tuple[Block, ...]:
    results: dict[str, Block] = {}
    for block in content:
        if isinstance(block, ToolResultBlock):
            results.setdefault(block.id, block)
    others = (block for block in content if not isinstance(block, ToolResultBlock | ToolUse))
    return (*(results[call] for call in calls if call in results), *others)
