"""What a user can type instead of a message: `/compact`, `/clear`, `/help`, and what others add.

A plain word with a slash that is none of these is a slip, and costs no model's time. A path is a message like others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial

from trunkline.agents.coder.compaction import Compaction, Say
from trunkline.agents.coder.history import History
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.core.faults import Mistyped
from trunkline.tools.truncation import one_line

#: How a command looks: `/usr` alone may be one, `/usr/bin` is a path.
_COMMAND = re.compile(r"(/[^\s/]+)(?!\S)(.*)", re.DOTALL)
#: How one looks that was mistyped. What people call theirs may be written in other ways, but `/index.html` is no slip.
_SLIP = re.compile(r"/[a-z][a-z0-9_:-]*")

#: How to say it all the same.
AS_A_MESSAGE = "To say it to the model, put a space before it."

#: Entries of a list for people, and characters of each. A workspace may bring thousands, and long words for each.
MOST_LISTED = 100
LISTED_CHARS = 200

HELP = {
    "/compact": "summarise the conversation to make room",
    "/context": "how full the model's window is, and what fills it",
    "/clear": "forget the conversation so far",
    "/bashes": "the commands in the background, and how to end one",
    "/agents": "the sub-agents that are defined",
    "/hooks": "the commands that run around the agent's work",
    "/mcp": "the MCP servers, their state and their tools",
    "/grants": "what was granted in this session, and how to take it back",
    "/permissions": "the permission rules that count here, and how to remove one of your own",
    "/undo": "put the files back as they were before the last turn, or the last N",
    "/rewind": "the same, and the conversation too",
    "/diff": "what the session has changed in files, or its last N turns",
    "/help": "these commands",
}


def split(text: str, known: Collection[str]) -> tuple[str, str] | None:
    """The command in small letters, which may be a slip, and the words behind it; None if the text is a message."""
    found = _COMMAND.match(text)
    if found is None:
        return None
    word = found[1].lower()
    # A command may be called as a directory is, `/run`; what is neither known nor there is a slip.
    is_one = word in known or (_SLIP.fullmatch(word) and not os.path.exists(found[1]))
    return (word, found[2].strip()) if is_one else None


def unknown(word: str, known: Collection[str], hint: str) -> Mistyped:
    """There is no such command; `hint` says which there are."""
    return Mistyped(f"There is no command `{word}`.{suggestion(word, known)}", hint=f"{hint} {AS_A_MESSAGE}")


class AsMessage(Value):
    """What a command was short for: this is said to the model in its place."""

    text: str


#: Does what a command asks for, with the words behind it. Gives what to tell people, or what to say to the model.
Run = Callable[[str, Say], Awaitable[str | AsMessage]]


def always(rest: str) -> bool:
    """A command that only an approver may give, whatever stands behind it."""
    return True


def never(rest: str) -> bool:
    """A command that everybody may give who may say something."""
    return False


class TypedCommand(Value):
    """One command."""

    help: str
    run: Run
    argument: str = ""
    """What may stand behind it, for people, such as `[NAME]`. Nothing: it takes no words."""
    needs_approver: Callable[[str], bool] = never
    """Whether it does, with these words behind it, what somebody would be asked about if the model did it: changes
    files, what is remembered, or what runs. See `core.agent.Conversation`."""


class Commands:
    """The commands of one conversation."""

    def __init__(self, history: History, compaction: Compaction) -> None:
        self._history = history
        self._compaction = compaction
        self._own: dict[str, TypedCommand] = {}
        self.sources: list[Callable[[], Mapping[str, TypedCommand]]] = []
        """Where more of them come from that may be others the next time. Ours win over theirs."""
        for word, run in (
            ("/compact", self._compact),
            ("/clear", self._clear),
            ("/help", self._help),
        ):
            self.add(word, TypedCommand(HELP[word], run))

    def add(self, word: str, command: TypedCommand) -> None:
        """One more; `word` has its slash."""
        self._own[word] = command

    @property
    def help(self) -> Mapping[str, str]:
        """What each does, by its word."""
        return {word: command.help for word, command in self._known.items()}

    def has(self, text: str) -> bool:
        """Whether a message is a command, or was meant to be one: the model has no use for it."""
        return split(text, self._known) is not None

    def needs_approver(self, text: str) -> bool:
        """Whether a message is a command that only those may give who may approve a tool call."""
        if _COMMAND.match(text) is None:
            return False
        known = self._known
        found = split(text, known)
        return found is not None and found[0] in known and known[found[0]].needs_approver(found[1])

    def find(self, text: str) -> Callable[[Say], Awaitable[str | AsMessage]] | None:
        """What a message asks for, if it is a command: something that does it.

        Raises:
            Mistyped: it looks like a command, and there is none of that name, or it takes no words behind it.
        """
        known = self._known
        found = split(text, known)
        if found is None:
            return None
        word, rest = found
        if word not in known:
            raise unknown(word, known, f"There are {listed(list(known), ', ')}.")
        command = known[word]
        if rest and not command.argument:
            # What follows may be all that they want: `/clear the table`.
            raise Mistyped(f"`{word}` is a command and takes no arguments.", hint=AS_A_MESSAGE)
        return partial(command.run, rest)

    @property
    def _known(self) -> dict[str, TypedCommand]:
        known: dict[str, TypedCommand] = {}
        for source in self.sources:
            known.update(source())
        return {**self._own, **{word: command for word, command in known.items() if word not in self._own}}

    async def _compact(self, rest: str, say: Say) -> str:
        if len(self._history.messages) < 2:
            return "There is nothing to compact yet."
        return await self._compaction.summarise(say, by_hand=True)

    async def _clear(self, rest: str, say: Say) -> str:
        self._history.replace([])
        return "The conversation was cleared. The log keeps it."

    async def _help(self, rest: str, say: Say) -> str:
        shown = ((f"{word} {command.argument}".rstrip(), command.help) for word, command in self._known.items())
        return listed([f"{word}  {what}" for word, what in shown])


def listed(entries: Sequence[str], between: str = "\n", where: str = "") -> str:
    """A list for people. `where`: where there are all of them, if that is known."""
    more = [f"and {len(entries) - MOST_LISTED} more{where}"] if len(entries) > MOST_LISTED else []
    return between.join([*(one_line(entry, LISTED_CHARS) for entry in entries[:MOST_LISTED]), *more])
