"""What can become of a message on its way out, as a table. Everything that decides about losing or doubling is here.

    pending  nothing was sent yet
    sending  it may be on its way, or have arrived
    sent     the platform has it
    failed   the platform does not have it, or not its last text, and will not take it
    unknown  it may have arrived or not; sending it again could double it, so that nobody does by himself

A message is `sending` on disk before the platform is asked, and what the platform said is on disk before anything else
is sent to that chat. So a crash leaves no message that was sent and looks as if it was not.
"""

from __future__ import annotations

from enum import StrEnum


class MessageState(StrEnum):
    """Where a message stands."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """What happened to it."""

    BEGUN = "begun"
    """It is about to be sent."""
    TAKEN = "taken"
    """The platform has it."""
    LATER = "later"
    """The platform does not have it now, and may take it later."""
    AGAIN = "again"
    """Whether it arrived is not known, and sending it again under its key cannot double it."""
    DOUBTED = "doubted"
    """Whether it arrived is not known, and nothing more will be done about it."""
    REFUSED = "refused"
    """The platform does not have it and will not take it, or has been asked for too long."""
    STALE = "stale"
    """The platform has it, and will not take its last text."""
    GONE = "gone"
    """The platform had it and cannot change it any more: it is sent anew."""
    RETRIED = "retried"
    """Somebody decided that it is to be sent again."""
    RESUMED = "resumed"
    """Somebody decided that its last text is to be tried again."""


#: What each cause makes of each state. What is not here does not happen.
TABLE: dict[tuple[MessageState, Cause], MessageState] = {
    (MessageState.PENDING, Cause.BEGUN): MessageState.SENDING,
    (MessageState.PENDING, Cause.REFUSED): MessageState.FAILED,
    (MessageState.SENDING, Cause.BEGUN): MessageState.SENDING,
    (MessageState.SENDING, Cause.TAKEN): MessageState.SENT,
    (MessageState.SENDING, Cause.LATER): MessageState.PENDING,
    (MessageState.SENDING, Cause.AGAIN): MessageState.SENDING,
    (MessageState.SENDING, Cause.DOUBTED): MessageState.UNKNOWN,
    (MessageState.SENDING, Cause.REFUSED): MessageState.FAILED,
    (MessageState.SENT, Cause.STALE): MessageState.FAILED,
    (MessageState.SENT, Cause.GONE): MessageState.PENDING,
    (MessageState.FAILED, Cause.RETRIED): MessageState.PENDING,
    (MessageState.FAILED, Cause.RESUMED): MessageState.SENT,
    (MessageState.UNKNOWN, Cause.RETRIED): MessageState.PENDING,
}

#: Those with work left to do: what a restart takes up. (A `sent` one may also have a newer text.)
OPEN = frozenset({MessageState.PENDING, MessageState.SENDING})

#: Those that a person should hear of.
UNSETTLED = frozenset({MessageState.FAILED, MessageState.UNKNOWN})


def after(state: MessageState, cause: Cause) -> MessageState:
    """The state that follows.

    Raises:
        KeyError: that cannot happen; a defect of ours.
    """
    return TABLE[state, cause]


def worst(states: list[MessageState]) -> MessageState:
    """The state of several messages as one: the one that asks most for attention. Of none: `sent`."""
    order = (MessageState.UNKNOWN, MessageState.FAILED, MessageState.SENDING, MessageState.PENDING)
    return next((state for state in order if state in states), MessageState.SENT)
