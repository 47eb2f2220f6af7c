"""Asking again what failed, was stopped or was interrupted: which message is meant, and that it is run once.

A button and `/retry ID` mean the one message that they name. `/retry` alone means the last one that has ended, and only
if that did not end well: what failed a week ago is not run because something went right since.

The old message is given up and a new one noted in one transaction, so that a crash leaves one of them.
"""

from __future__ import annotations

import hashlib

from trunkline.base.values import Value
from trunkline.chat.delivery.store import ChatStore, Note, blob
from trunkline.chat.plain import excerpt
from trunkline.chat.platform import Button

#: How a message ends that is for the bridge itself: a command, a press. It is none that could be asked again.
FOR_THE_BRIDGE = "command"

NOTHING = "There is nothing to ask again."

#: What a message is called for a moment, in the transaction that gives it up.
_CHOSEN = "chosen"
_ENDED_BADLY = "('error', 'cancelled')"
_AGAIN = "again"
_MOST_DIGITS = 12
_SEAL_CHARS = 8


class Meant(Value):
    """The message that a button is about. The seal tells it from another that got the same number much later."""

    number: int
    seal: str


class NotAgain(Exception):
    """It cannot be asked again. The text is for whoever wanted it."""


def told(note: Note) -> str:
    """What the chat hears of a message whose turn was cut off."""
    inbound = note.inbound
    words = inbound.text or (inbound.files[0].type if inbound.files else "")
    return f"The bridge was interrupted before this was answered: {excerpt(words)}."


def button(note: Note) -> Button:
    """What asks this message again when it is pressed."""
    return Button("Ask again", f"{_AGAIN}:{note.id}:{_seal(blob(note.inbound.id))}")


def pressed(data: str) -> Meant | None:
    """What a button says; None if it is none of ours."""
    match data.split(":"):
        case [action, number, seal] if action == _AGAIN and number.isascii() and number.isdecimal():
            return Meant(int(number[:_MOST_DIGITS]), seal)
        case _:
            return None


def renewed(store: ChatStore, platform: str, chat: str, meant: Meant | int | None) -> tuple[Note, Note]:
    """Give up the message that is meant, by a button or its number or as the last one, and note it anew: old and new.

    Raises:
        NotAgain: there is none, or it has been asked again already.
        ConfigError: it could not be written to the disk.
    """
    if meant is None:
        number: int | None = _last(store, platform, chat)
    else:
        number = meant if isinstance(meant, int) else meant.number
    here = blob(platform), blob(chat)
    with store.together():
        found = store.execute(
            f"SELECT id FROM notes WHERE key = ? AND platform = ? AND chat = ? AND state IN {_ENDED_BADLY}",  # noqa: S608
            number, *here,
        ).fetchone()  # fmt: skip
        if found is None or (isinstance(meant, Meant) and meant.seal != _seal(found[0])):
            raise NotAgain(NOTHING)
        store.execute("UPDATE notes SET state = ? WHERE key = ?", _CHOSEN, number)
        old = store.latest(platform, chat, _CHOSEN)
        if old is None:
            raise NotAgain(NOTHING)
        # Its id is its own: one that is delivered again is still recognised by the old one.
        again = old.inbound.replace(id=f"{old.inbound.id}/{old.id}", message=old.inbound.message_id)
        new = store.note(platform, again)
        if new is None:
            raise NotAgain(NOTHING)
        store.end(old, "refused")
    return old, new


def _last(store: ChatStore, platform: str, chat: str) -> int | None:
    """The number of the last message to the agent that has ended, however it did."""
    row = store.execute(
        "SELECT key FROM notes WHERE platform = ? AND chat = ? AND state NOT IN ('waiting', 'running', ?)"
        " ORDER BY key DESC LIMIT 1",
        blob(platform), blob(chat), FOR_THE_BRIDGE,
    ).fetchone()  # fmt: skip
    return None if row is None else int(row[0])


def _seal(id: bytes) -> str:
    return hashlib.sha256(id).hexdigest()[:_SEAL_CHARS]
