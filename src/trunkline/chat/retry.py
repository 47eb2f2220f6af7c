"""Asking again what failed, was stopped or was interrupted: which message is meant, and that it is run once.

A button and `/retry ID` mean the one message that they name. `/retry` alone means the last one that has ended, and only
if that did not end well: what failed a week ago is not run because something went right since.

The old message is given up and a new one noted in one transaction, so that a crash leaves one of them.
"""

from __future__ import annotations

import hashlib

from trunkline.base.values import Value
from trunkline.chat.commands import CommandRefused
from trunkline.chat.delivery.store import ChatStore, Note, blob
from trunkline.chat.plain import excerpt
from trunkline.chat.platform import Button

NOTHING = "There is nothing to retry."
NOT_LET_IN = "The sender is no longer allowed here, so this is not asked again."

_AGAIN = "again"
_MOST_DIGITS = 12
_SEAL_CHARS = 8


class RetryTarget(Value):
    """The message that a button is about. The seal tells it from another that got the same number much later."""

    number: int
    seal: str


class CannotRetry(CommandRefused):
    """It cannot be asked again. The text is for whoever wanted it."""


def told(note: Note) -> str:
    """What the chat hears of a message whose turn was cut off."""
    return f"The bridge was interrupted before this was answered: {named(note)}."


def named(note: Note) -> str:
    """A message, so that people know which."""
    inbound = note.inbound
    return excerpt(inbound.text or (inbound.files[0].type if inbound.files else ""))


def button(note: Note) -> Button:
    """What asks this message again when it is pressed."""
    return Button("Ask again", f"{_AGAIN}:{note.id}:{_seal(blob(note.inbound.id))}")


def pressed(data: str) -> RetryTarget | None:
    """What a button says; None if it is none of ours."""
    match data.split(":"):
        case [action, number, seal] if action == _AGAIN and number.isascii() and number.isdecimal():
            return RetryTarget(int(number[:_MOST_DIGITS]), seal)
        case _:
            return None


def find(store: ChatStore, platform: str, chat: str, target: RetryTarget | int | None) -> Note:
    """The message that is meant: by a button, by its number, or as the last one.

    Raises:
        CannotRetry: there is none, or it has been asked again already.
    """
    if target is None:
        number = store.last_ended(platform, chat)
    else:
        number = target if isinstance(target, int) else target.number
    found = None if number is None else store.failed(platform, chat, number)
    if found is None or (isinstance(target, RetryTarget) and target.seal != _seal(blob(found.inbound.id))):
        raise CannotRetry(NOTHING)
    return found


def renewed(store: ChatStore, old: Note) -> Note:
    """Give a message up, and note it anew; gives the new one.

    Raises:
        CannotRetry: it has been asked again already.
        ConfigError: it could not be written to the disk.
    """
    with store.together():
        # Its id is its own: one that is delivered again is still recognised by the old one.
        again = old.inbound.replace(id=f"{old.inbound.id}/{old.id}", message=old.inbound.message_id)
        new = store.note(old.platform, again)
        if new is None:
            raise CannotRetry(NOTHING)
        store.end(old, "refused")
    return new


def _seal(id: bytes) -> str:
    return hashlib.sha256(id).hexdigest()[:_SEAL_CHARS]
