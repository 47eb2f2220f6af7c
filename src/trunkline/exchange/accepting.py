"""Accepts a message for a session: once it is accepted, it is not lost."""

from __future__ import annotations

from trunkline.core.events import UserMessage
from trunkline.core.faults import Fault, SessionNotFound
from trunkline.core.keeper import When
from trunkline.exchange.late_messages import take_in_now
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.messages import Messages
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
            if message.id and not live.row.passing and (known := await live.known(message.id)) is not None:
                if isinstance(error, Conflict):
                    # Perhaps by another node, when the session was ours already: then nobody has answered it.
                    await take_in_now(messages, live)
                return known.turn or 0
            gone = SessionNotFound(f"The session `{live.id[:SHOWN_CHARS]}` no longer exists.")
            raise (error if isinstance(error, Fault) else gone) from None
        try:
            # Again, since others may have been faster; there is no await between here and the session.
            live.check_free(when)
            steered = when == "steer" and live.session.steer(kept.message)
            if not steered:
                live.meter.check_turn()
            turn = live.session.turn if steered else live.session.submit(kept.message)
        except Fault:
            await messages.forget(kept.number)
            raise
        if steered:
            # The row must not be ahead of the log, which is written later while the end of a turn is being saved.
            await live.session.settled()
            await messages.began(live.id, turn, kept.message)
        elif live.session.turn != turn:
            # Behind the answer: the message is safe already, and each write is a wait for the disk.
            live.placed(kept.number, turn)
        return turn
