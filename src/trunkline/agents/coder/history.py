"""What was said between the agent and its model, kept in the session's journal and always fit to be sent.

Providers refuse a conversation in which a tool call has no result, whatever the reason: a denial, a stop, a crash. So
every way to end a round goes through here, and what a crash cut off is mended when the session is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any

from trunkline.agents.coder.words import CRASHED, NOT_BEGUN, PICTURE_REFUSED, STOPPED
from trunkline.base import shapes
from trunkline.core.agent import Journal
from trunkline.core.events import UserMessage
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
#: In the record of a message: the name of the turn that begins with it.
_TURN = "turn"
#: The same: of a sub-agent that can be asked to go on.
_ASIDE = "subagent"
#: The same: of something that goes on although the conversation is compacted or cleared, in one value; see `keep`. What
#: was set in the session, and its output style; how many commands it has started in the background; which tools
#: ToolSearch has brought.
OPTIONS, STYLE, BACKGROUND, BROUGHT = "options", "style", "background", "brought"
_KEPT = {OPTIONS: dict, STYLE: str, BACKGROUND: int, BROUGHT: list}
#: The same: of files as the model knows them, and of what was said to a turn that did not live to read it.
_SEEN, _UNREAD = "seen", "unread"

#: What providers take back as the id of a call, and as the name of a tool; from us it may get a number behind it.
_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{1,36}")
MAX_NAME_CHARS = 64

#: Characters per token, as a rule of thumb for English and code, where no provider has counted.
CHARS_PER_TOKEN = 4
#: A count of less than this part of the estimate is no count of the whole.
LEAST_COUNTED = 0.5
#: What a picture is taken to cost; providers count between 1,000 and 1,600 for a large one.
IMAGE_TOKENS = 1500


class NoJournal:
    """For conversations that are not kept as they go: those of sub-agents."""

    def __init__(self, records: Sequence[Any] = ()) -> None:
        self.records = records

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
        self.turns: dict[str, int] = {}
        """At which message each turn begins that can still be told from the others, oldest first."""
        self._model = ""
        self.aside: dict[str, dict[str, Any]] = {}
        """What is kept of conversations beside this one, by their ids, the latest last; see `keep_aside`."""
        self.kept: dict[str, Any] = {}
        """What goes on whatever happens to the messages; see `keep`."""
        self.seen: dict[str, str] = {}
        """A name for the content of each file that the model has seen; see `keep_seen`."""
        self.unread: tuple[UserMessage, ...] = ()
        """What was said to a turn that did not live to read it, oldest first; see `keep_unread`."""
        early: list[Message] = []
        try:
            for record in journal.records:
                if record.get("role") == _EARLY:
                    early.append(from_json(record))
                elif record.get("role") == _MODEL:
                    self._model = str(record["name"])
                elif record.get("role") == _ASIDE:
                    self.aside.pop(record["kept"]["id"], None)
                    self.aside[record["kept"]["id"]] = record["kept"]
                elif (kind := _KEPT.get(record.get("role"))) is not None:
                    if not isinstance(record["set"], kind):
                        raise ValueError(f"`{record['role']}` is not kept as one")
                    self.kept[record["role"]] = record["set"]
                elif record.get("role") == _SEEN:
                    self.seen.update(record["files"].items())
                elif record.get("role") == _UNREAD:
                    self.unread = tuple(shapes.decode(UserMessage, said) for said in record["said"])
                else:
                    if _TURN in record:
                        self.turns[str(record[_TURN])] = len(self.messages)
                    self.messages.append(from_json(record))
                    early.clear()
        except (LookupError, ValueError, AttributeError):
            hint = "Continue it with the agent that it began with, or begin a new one."
            raise SessionDamaged("This session was not written by the coding agent.", hint=hint) from None
        self._tokens = self._estimated = sum(map(estimate, self.messages))
        self.is_counted = False
        """Whether a provider has counted what is sent, the tools and the system prompt among it."""
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

    def counted(self, tokens: int | None, beside: int = 0) -> None:
        """The provider has counted all that was said so far, its latest answer included; None: it has not. `beside` is
        about how many tokens are sent that are none of the messages': the system prompt, the tools."""
        estimated = self._estimated + beside
        if tokens and tokens >= LEAST_COUNTED * estimated:
            self._tokens = tokens
            self.is_counted = True
        else:
            # Some services count only what they have not kept from the request before.
            self._tokens = max(self._tokens, estimated)

    def user(self, content: Iterable[Block], turn: str = "") -> None:
        """The user's side said something; with `turn`, one of that name begins with it."""
        if turn:
            self.turns[turn] = len(self.messages)
        self._add(Message("user", tuple(content)), turn)

    def rewind(self, turn: str) -> None:
        """Forget a turn and all that came after it.

        Raises:
            KeyError: it cannot be told from the others any more.
        """
        self.replace(self.messages[: self.turns[turn]])

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
        if self._model:
            self.forget_reasoning()
        self._model = model
        self._journal.append({"role": _MODEL, "name": model})

    def forget_reasoning(self) -> bool:
        """Go on without what the model has thought; whether there was any of it."""
        return self._rewrite(_is_signed, _unsigned)

    def forget_pictures(self) -> bool:
        """Go on without the pictures, with a word in the place of each; whether there were any."""
        return self._rewrite(_is_pictured, _unpictured)

    def _rewrite(
        self, concerns: Callable[[Block], bool], changed: Callable[[tuple[Block, ...]], tuple[Block, ...]]
    ) -> bool:
        rewritten = [
            message.replace(content=changed(message.content)) if any(map(concerns, message.content)) else message
            for message in self.messages
        ]
        if all(map(is_, rewritten, self.messages)):
            return False
        self.replace([message for message in rewritten if message.content])
        return True

    def replace(self, messages: Sequence[Message]) -> None:
        """Go on with other messages instead, as after a compaction."""
        self.turns = self._turns_in(messages)
        self.messages = list(messages)
        self._tokens = self._estimated = sum(map(estimate, self.messages))
        self.is_counted = False
        self.data_chars = sum(map(_data_of, self.messages))
        if not messages:
            # All of it is to be forgotten.
            self.aside.clear()
            self.seen.clear()
            self.unread = ()
        records: list[dict[str, Any]] = [{"role": _MODEL, "name": self._model}] if self._model else []
        records += [_kept(name, value) for name, value in self.kept.items()]
        records += [{"role": _ASIDE, "kept": kept} for kept in self.aside.values()]
        records += [{"role": _SEEN, "files": self.seen}] if self.seen else []
        records += [_unread(self.unread)] if self.unread else []
        begins = {at: turn for turn, at in self.turns.items()}
        records += [_record(message, begins.get(at, "")) for at, message in enumerate(self.messages)]
        self._journal.replace(records)
        self.on_replaced()

    def _turns_in(self, messages: Sequence[Message]) -> dict[str, int]:
        """Where the turns begin in other messages: at the same ones, or at those in their places."""
        if len(messages) == len(self.messages):
            return self.turns
        places = {id(message): at for at, message in enumerate(messages)}
        found = (
            (turn, places.get(id(self.messages[at]))) for turn, at in self.turns.items() if at < len(self.messages)
        )
        return {turn: at for turn, at in found if at is not None}

    def keep_aside(self, kept: dict[str, Any], most: int) -> None:
        """Keep something of a conversation beside this one, in place of what was kept under its `id`. The latest
        `most` are remembered."""
        self.aside.pop(kept["id"], None)
        self.aside[kept["id"]] = kept
        while len(self.aside) > most:
            del self.aside[next(iter(self.aside))]
        self._journal.append({"role": _ASIDE, "kept": kept})

    def keep(self, name: str, value: Any) -> None:
        """Keep something of the session, such as its `OPTIONS`, in place of what was kept of it before."""
        self.kept[name] = value
        self._journal.append(_kept(name, value))

    def keep_seen(self, path: str, content: str, most: int) -> None:
        """Keep which content of a file the model knows, in place of the one before. The latest `most` files are
        remembered."""
        if self.seen.get(path) == content:
            return
        self.seen.pop(path, None)
        self.seen[path] = content
        while len(self.seen) > most:
            del self.seen[next(iter(self.seen))]
        self._journal.append({"role": _SEEN, "files": {path: content}})

    def keep_unread(self, messages: Sequence[UserMessage]) -> None:
        """Keep what the model has to read before the next message, in place of what was kept before."""
        if self.unread != (messages := tuple(messages)):
            self.unread = messages
            self._journal.append(_unread(messages))

    def _add(self, message: Message, turn: str = "") -> None:
        self._journal.append(_record(message, turn))
        self.messages.append(message)
        tokens = estimate(message)
        self._tokens += tokens
        self._estimated += tokens
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


def _record(message: Message, turn: str) -> dict[str, Any]:
    """A message for the journal, with the name of the turn that begins with it, if one does."""
    # Within the message's own: a record by itself takes three times as much of the log.
    return to_json(message) | ({_TURN: turn} if turn else {})


def _kept(name: str, value: Any) -> dict[str, Any]:
    return {"role": name, "set": value}


def _unread(messages: Sequence[UserMessage]) -> dict[str, Any]:
    return {"role": _UNREAD, "said": [shapes.encode(message) for message in messages]}


def estimate(message: Message) -> int:
    """About how many tokens a message has."""
    return sum(map(block_tokens, message.content))


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


def block_tokens(block: Block) -> int:
    """About how many tokens a block has."""
    match block:
        case Text(text=text):
            chars = len(text)
        case ThinkingBlock(text=text, redacted=redacted, extra=extra):
            chars = len(text) + len(redacted or "") + (len(repr(extra)) if extra else 0)
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


def _is_pictured(block: Block) -> bool:
    return isinstance(block, Image) or (isinstance(block, ToolResultBlock) and bool(block.images))


def _unpictured(content: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(map(_without_pictures, content))


def _without_pictures(block: Block) -> Block:
    match block:
        case Image():
            return Text(PICTURE_REFUSED)
        case ToolResultBlock(text=text, images=images) if images:
            return block.replace(text=f"{text}\n{PICTURE_REFUSED}", images=())
        case _:
            return block


def _is_empty(block: Block) -> bool:
    """Whether a block says nothing; providers refuse such blocks when they come back."""
    return isinstance(block, Text) and not block.text.strip()
