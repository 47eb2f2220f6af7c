"""Accepts a message for a session: once it is accepted, it is not lost."""

from __future__ import annotations

from trunkline.core.events import UserMessage
from trunkline.core.faults import Fault, SessionNotFound
from trunkline.core.keeper import When
from trunkline.exchange.late_messages import take_in_now
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.messages import Messages, QueuedMessage
from trunkline.store.database import Conflict

#: How much of a session's id is repeated in an error.
SHOWN_CHARS = 80


async def accept(messages: Messages, live: LiveSession, message: UserMessage, when: When) -> int:
    """Keep a message and hand it to its session; gives the turn that will answer it.

    Raises:
        BudgetExceeded: its agent may not answer now.
        AgentBusy: a turn is in progress and the message must not wait, or too many are already waiting.
        SessionNotFound: the session was removed.
    """
    async with live.sending:
        try:
            live.check_free(when)
            live.meter.check_turn()
            if live.row.passing:
                # Gone with the client that waits for the answer, and after a restart: there is nothing to keep.
                return live.session.submit(message)
            kept = await messages.take(live.id, message, live.session.shown)
        except (Conflict, Fault) as error:
            if (known := await _known(messages, live, message)) is not None:
                return known.turn or 0
            if isinstance(error, Fault):
                raise
            kept = await _taken_now(messages, live, message)
        try:
            # Again, since others may have been faster; there is no await between here and the session.
            live.check_free(when)
            steered = when == "steer" and live.session.steer(kept.message)
            if not steered:
                live.meter.check_turn()
            turn = live.session.turn if steered else live.session.submit(kept.message)
        except Fault:
            if await messages.forget(kept.number):
                raise
            # Another node has the session now, and answers it.
            if (known := await messages.find(live.id, kept.message.id or "")) is None:
                raise
            return known.turn or 0
        if steered:
            # The row must not be ahead of the log, which is written later while the end of a turn is being saved.
            await live.session.settled()
            await messages.began(live.id, turn, kept.message)
        elif live.session.turn != turn:
            # Behind the answer: the message is safe already, and each write is a wait for the disk.
            live.placed(kept.number, turn)
        return turn


async def _taken_now(messages: Messages, live: LiveSession, message: UserMessage) -> QueuedMessage:
    """Keep a message that whoever had kept it has just forgotten.

    Raises:
        SessionNotFound: that was not it: there is no such session.
    """
    try:
        return await messages.take(live.id, message, live.session.shown)
    except Conflict:
        raise SessionNotFound(f"The session `{live.id[:SHOWN_CHARS]}` no longer exists.") from None


async def _known(messages: Messages, live: LiveSession, message: UserMessage) -> QueuedMessage | None:
    """The message with that id, if it was accepted before; then it is answered."""
    if not message.id or live.row.passing or await live.known(message.id) is None:
        return None
    # Perhaps by another node, when the session was ours already. It may still forget it, as long as nobody answers it.
    await take_in_now(messages, live)
    return await live.known(message.id)
