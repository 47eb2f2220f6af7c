"""What was said between the agent and its model, kept in the session's journal and always fit to be sent.

Providers refuse a conversation in which a tool call has no result, whatever the reason: a denial, a stop, a crash. So
every way to end a round goes through here, and what a crash cut off is mended when the session is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trunkline.agents.coder.words import CRASHED, NOT_BEGUN, STOPPED
from trunkline.core.agent import Journal
from trunkline.core.faults import SessionDamaged
from trunkline.models.messages import (
    Block,
    Document,
    Image,
    Message,
    Text,
    ThinkingBlock,
    ToolResultBlock,
    ToolUse,
    from_json,
    to_json,
)

#: In place of a role: the record of a result whose round is not over, and of the model that answers from there on.
_EARLY, _MODEL = "early", "model"

#: What providers take back as the id of a call, and as the name of a tool; from us it may get a number behind it.
_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{1,36}")
MAX_NAME_CHARS = 64

#: Characters per token, as a rule of thumb for English and code, where no provider has counted.
CHARS_PER_TOKEN = 4
#: What a picture is taken to cost; providers count between 1,000 and 1,600 for a large one.
IMAGE_TOKENS = 1500


class NoJournal:
    """For conversations that are not kept: those of sub-agents."""

    records: Sequence[Any] = ()

    def append(self, record: Any) -> None:
        pass

    def replace(self, records: Sequence[Any]) -> None:
        pass


class History:
    """The messages of one conversation, oldest first."""

    def __init__(self, journal: Journal, *, goes_on: bool = False) -> None:
        """Read what is kept. With `goes_on`, the calls of the latest answer still get their results; see
        `take_unanswered`.

        Raises:
            SessionDamaged: another agent kept it.
        """
        self._journal = journal
        self.messages: list[Message] = []
        self._model = ""
        early: list[Message] = []
        try:
            for record in journal.records:
                if record.get("role") == _EARLY:
                    early.append(from_json(record))
                elif record.get("role") == _MODEL:
                    self._model = str(record["name"])
                else:
                    self.messages.append(from_json(record))
                    early.clear()
        except (LookupError, ValueError):
            hint = "Continue it with the agent that it began with, or begin a new one."
            raise SessionDamaged("This session was not written by the coding agent.", hint=hint) from None
        self._tokens = sum(map(estimate, self.messages))
        self.data_chars = sum(map(_data_of, self.messages))
        """Characters of pictures and documents, which are sent again with every request."""
        self._used_ids = {
            block.id for message in self.messages for block in message.content if isinstance(block, ToolUse)
        }
        self.on_replaced: Callable[[], None] = lambda: None
        """Told when the model no longer has some of what it was shown."""
        self._unanswered: tuple[tuple[ToolUse, ...], dict[str, ToolResultBlock]] = ((), {})
        self._mend(early, goes_on)

    @property
    def tokens(self) -> int:
        """How full the model's window is: as the provider counted last, and an estimate of what came since."""
        return self._tokens

    def counted(self, tokens: int | None) -> None:
        """The provider has counted all that was said so far, its latest answer included."""
        if tokens:
            self._tokens = tokens

    def user(self, content: Iterable[Block]) -> None:
        """The user's side said something."""
        self._add(Message("user", tuple(content)))

    def assistant(self, content: Iterable[Block]) -> tuple[ToolUse, ...]:
        """The model said something; gives its calls, each with an id of its own.

        Small models and some servers use one id for every call. An answer could then belong to any of them.
        """
        blocks = tuple(self._renamed(block) for block in content if not _is_empty(block))
        if blocks:
            self._add(Message("assistant", blocks))
        return tuple(block for block in blocks if isinstance(block, ToolUse))

    def take_unanswered(self) -> tuple[tuple[ToolUse, ...], dict[str, ToolResultBlock]]:
        """The calls of the latest answer, where an earlier process did not live to see all of them through, and the
        results of those that it did. Once: whoever takes them sees to the rest."""
        taken, self._unanswered = self._unanswered, ((), {})
        return taken

    def results(self, results: Sequence[ToolResultBlock]) -> None:
        """The calls of the latest answer have their results, in the order of the calls."""
        self._add(Message("user", tuple(results)))

    def early(self, block: Block) -> None:
        """Something is known of a round that is not over: a piece of the answer, or a call's start, or its result.

        It is kept already, and replaced by the whole when the round is over: a crash must not take it.
        """
        self._journal.append({**to_json(Message("user", (block,))), "role": _EARLY})

    def stopped(self, said: str, calls: Sequence[ToolUse], results: Sequence[ToolResultBlock], reason: str) -> None:
        """The turn was cut off: by then the model had `said` something, or some of its `calls` had `results`."""
        if said:
            self._add(Message("assistant", (Text(said),)))
        have = {result.id: result for result in results}
        ends = [have.get(call.id) or ToolResultBlock(call.id, reason, is_error=True) for call in calls]
        self._add(Message("user", (*ends, Text(STOPPED))))

    def answered_by(self, model: str) -> None:
        """This model answers from here on. Reasoning is signed for the model that it came from, and for no other."""
        if model == self._model:
            return
        if self._model and any(map(_is_signed, (block for message in self.messages for block in message.content))):
            unsigned = [message.replace(content=_unsigned(message.content)) for message in self.messages]
            self.replace([message for message in unsigned if message.content])
        self._model = model
        self._journal.append({"role": _MODEL, "name": model})

    def replace(self, messages: Sequence[Message]) -> None:
        """Go on with other messages instead, as after a compaction."""
        self.messages = list(messages)
        self._tokens = sum(map(estimate, self.messages))
        self.data_chars = sum(map(_data_of, self.messages))
        named = [{"role": _MODEL, "name": self._model}] if self._model else []
        self._journal.replace([*named, *map(to_json, self.messages)])
        self.on_replaced()

    def _add(self, message: Message) -> None:
        self._journal.append(to_json(message))
        self.messages.append(message)
        self._tokens += estimate(message)
        self.data_chars += _data_of(message)

    def _renamed(self, block: Block) -> Block:
        if not isinstance(block, ToolUse):
            return block
        own = block.id if _GOOD_ID.fullmatch(block.id) else "call"
        call_id, count = own, 1
        while call_id in self._used_ids:
            count += 1
            call_id = f"{own}-{count}"
        self._used_ids.add(call_id)
        return block.replace(id=call_id, name=block.name[:MAX_NAME_CHARS])

    def _mend(self, early: Sequence[Message], goes_on: bool) -> None:
        """The process may have ended in the middle of an answer, or between a call and its result."""
        if not self.messages:
            return
        known = [block for message in early for block in message.content]
        if self.messages[-1].role == "user":
            said = "".join(block.text for block in known if isinstance(block, Text))
            if said:
                self._add(Message("assistant", (Text(said),)))
                self._add(Message("user", (Text(CRASHED),)))
            return
        calls = [block for block in self.messages[-1].content if isinstance(block, ToolUse)]
        if calls:
            results = {block.id: block for block in known if isinstance(block, ToolResultBlock)}
            if goes_on:
                self._unanswered = (tuple(calls), results)
                return
            self.results([results.get(call.id) or ToolResultBlock(call.id, NOT_BEGUN, is_error=True) for call in calls])


def estimate(message: Message) -> int:
    """About how many tokens a message has."""
    return sum(map(_block_tokens, message.content))


def data_chars(block: Block) -> int:
    """Characters of pictures and documents in a block."""
    match block:
        case Image(data=data) | Document(data=data):
            return len(data)
        case ToolResultBlock(images=images):
            return sum(len(image.data) for image in images)
        case _:
            return 0


def _data_of(message: Message) -> int:
    return sum(map(data_chars, message.content))


def _block_tokens(block: Block) -> int:
    match block:
        case Text(text=text):
            chars = len(text)
        case ThinkingBlock(text=text, redacted=redacted):
            chars = len(text) + len(redacted or "")
        case ToolUse(name=name, input=args, raw=raw):
            chars = len(name) + len(raw or "") + len(repr(args))
        case ToolResultBlock(text=text, images=images):
            chars = len(text) + CHARS_PER_TOKEN * IMAGE_TOKENS * len(images)
        case Document(text=text):
            chars = len(text) + CHARS_PER_TOKEN * IMAGE_TOKENS
        case _:
            chars = CHARS_PER_TOKEN * IMAGE_TOKENS
    return chars // CHARS_PER_TOKEN + 1


def _is_signed(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) or (isinstance(block, ToolUse) and block.extra is not None)


def _unsigned(content: tuple[Block, ...]) -> tuple[Block, ...]:
    spoken = (block for block in content if not isinstance(block, ThinkingBlock))
    return tuple(block.replace(extra=None) if isinstance(block, ToolUse) else block for block in spoken)


def _is_empty(block: Block) -> bool:
    """Whether a block says nothing; providers refuse such blocks when they come back."""
    return isinstance(block, Text) and not block.text.strip()
