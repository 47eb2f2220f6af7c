"""What a node of a cluster did to the rows of a session that was another's already: messages that it kept, and
questions that it closed.

A node that is cut off from the others may still reach the database, and keep a message there after the session's new
owner has looked for those that wait. Whoever sent it was told that it is not lost, and the owner does not know of it.
One that was asleep, and wakes in the middle of opening a session, closes the rows of what waits by now: nobody would
see it. Rows have no fence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from trunkline.core.faults import Fault, StoreUnavailable
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.exchange.approvals import ApprovalStore
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.messages import Messages, QueuedMessage, begun_in

#: How long one session is waited for. One that is busy is asked the next time: the caller has others to look after, and
#: nodes that died.
EACH_SECONDS = 2.0


async def take_up(messages: Messages, approvals: ApprovalStore, lives: Sequence[LiveSession]) -> set[str]:
    """Have sessions that are ours answer the messages that another node kept for them, and ask again what it closed.
    What cannot be done now is done the next time. Gives the sessions in which something is pending, whichever node
    has them."""
    waiting, asked = set(await messages.sessions_waiting()), set(await approvals.sessions_waiting())
    for live in lives:
        if live.id not in asked:
            live.ask_again()

    async def taken_in(live: LiveSession) -> None:
        # The second: it was closed meanwhile.
        with suppress(Fault, ValueError, TimeoutError):
            async with asyncio.timeout(EACH_SECONDS):
                await take_in(messages, live)

    await asyncio.gather(*(taken_in(live) for live in lives if live.id in waiting))
    return waiting | asked


async def take_in(messages: Messages, live: LiveSession) -> None:
    """Hand those of a session that is ours to it.

    Raises:
        DatabaseGone: nobody knows now.
        Fault: it is being closed here, or was lost. What was not handed to it waits for whoever has it next.
    """
    async with live.sending:
        await take_in_now(messages, live)


async def take_in_now(messages: Messages, live: LiveSession) -> None:
    """The same, for who holds `live.sending`: nothing else is added to the queue.

    Raises:
        DatabaseGone: nobody knows now.
        Fault: it is being closed here, or was lost. What was not handed to it waits for whoever has it next.
    """
    session = live.session
    late = _unknown(session, await messages.waiting(live.id))
    if not late:
        return
    # What has begun and ended since those rows were read is in the log now, whether or not a row says so.
    await session.settled()
    if _leaves(session, late):
        return
    items = session.read(min(each.seq for each in late), session.shown)
    begun = {message.id for _, message in await asyncio.to_thread(begun_in, list(items), late)}
    for each in late:
        if each.message.id in begun:
            continue
        if _leaves(session, late):
            return
        # The row first: then whoever has kept it cannot forget it any more.
        if await messages.placed(each.number, session.latest + 1):
            session.submit(each.message)


def _leaves(session: Session, late: Sequence[QueuedMessage]) -> bool:
    """Whether a session leaves those to whoever has it next.

    Raises:
        StoreUnavailable: it does, and whoever has kept one may still forget it: nobody can be promised an answer.
    """
    leaves = session.is_closing or session.status is State.CLOSED
    if leaves and any(each.turn is None for each in late):
        raise StoreUnavailable("The session is being closed here.", retryable=True)
    return leaves


def _unknown(session: Session, waiting: Iterable[QueuedMessage]) -> list[QueuedMessage]:
    """Those that a session neither answers nor has in its queue right now."""
    open_ids = {turn.message.id for turn in session.state.open_turns.values()}
    return [each for each in waiting if (id := each.message.id) not in open_ids and not session.turn_of(id or "")]
