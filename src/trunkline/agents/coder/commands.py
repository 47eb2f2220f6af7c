"""What a user can type instead of a message: `/compact`, `/context`, `/clear`, `/help`.

A word with a slash that is none of these is a slip, and costs no model's time. A path is a message like any other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Collection

from trunkline.agents.coder.compaction import Compaction, Say
from trunkline.agents.coder.history import History
from trunkline.agents.coder.model_client import ModelClient
from trunkline.base.nearest import suggestion
from trunkline.core.faults import Mistyped

#: How a command looks: `/usr` alone may be one, `/usr/bin` is a path.
_COMMAND = re.compile(r"(/[a-z][a-z0-9_-]*)(?!\S)(.*)", re.IGNORECASE | re.DOTALL)

#: How to say it all the same.
AS_A_MESSAGE = "To say it to the model, put a space before it."

HELP = {
    "/compact": "summarise the conversation to make room",
    "/context": "how full the model's window is",
    "/clear": "forget the conversation so far",
    "/help": "these commands",
}


def split(text: str) -> tuple[str, str] | None:
    """The command in small letters, and the words behind it; None if the text is a message, or begins with a path."""
    found = _COMMAND.match(text)
    if found is None or os.path.exists(found[1]):
        return None
    return found[1].lower(), found[2].strip()


def unknown(word: str, known: Collection[str], hint: str) -> Mistyped:
    """There is no such command; `hint` says which there are."""
    return Mistyped(f"There is no command `{word}`.{suggestion(word, known)}", hint=f"{hint} {AS_A_MESSAGE}")


class Commands:
    """The commands of one conversation."""

    def __init__(self, client: ModelClient, history: History, compaction: Compaction) -> None:
        self._client = client
        self._history = history
        self._compaction = compaction
        self._known: dict[str, Callable[[Say], Awaitable[str]]] = {
            "/compact": self._compact,
            "/context": self._context,
            "/clear": self._clear,
            "/help": self._help,
        }

    def find(self, text: str) -> Callable[[Say], Awaitable[str]] | None:
        """What a message asks for, if it is a command: something that does it and gives what to tell people.

        Raises:
            Mistyped: it looks like a command, and there is none of that name, or it takes no words behind it.
        """
        found = split(text)
        if found is None:
            return None
        word, rest = found
        if word in self._known and not rest:
            return self._known[word]
        if word in self._known:
            # What follows may be all that they want: `/clear the table`.
            raise Mistyped(f"`{word}` is a command and takes no arguments.", hint=AS_A_MESSAGE)
        raise unknown(word, self._known, f"There are {', '.join(self._known)}.")

    async def _compact(self, say: Say) -> str:
        if len(self._history.messages) < 2:
            return "There is nothing to compact yet."
        return await self._compaction.summarise(say)

    async def _context(self, say: Say) -> str:
        window, used = self._client.context_window, self._history.tokens
        model = self._client.model
        return (
            f"{used:,} of {window:,} tokens ({used / window:.0%}) in {len(self._history.messages)} messages, "
            f"model `{model.name}` of `{model.provider}`."
        )

    async def _clear(self, say: Say) -> str:
        self._history.replace([])
        return "The conversation was cleared. The log keeps it."

    async def _help(self, say: Say) -> str:
        return "\n".join(f"{name}  {what}" for name, what in HELP.items())
