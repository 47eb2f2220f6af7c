"""What a server logs of its clients, at `info`: a line for each session, and one for each turn, when it is over.

    session 7: turn of agent 2: Success, 0.412 s, 18 tokens, 61.2 tokens/s, first word after 0.118 s, waited 0.000 s
    session 7: 127.0.0.1:56102, 31.5 s, 4 turns

`waited`: until a model had time for it. Numbers only: never what anybody said, nor what a client calls its things. At
`debug`, that a session begins, too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from trunkline.core.fault_table import form_of
from trunkline.core.graph.ordinals import TurnStatus

if TYPE_CHECKING:
    from trunkline.core.graph.turns import Ending
    from trunkline.wires.tryll.serve.connection import ServerConnection
    from trunkline.wires.tryll.serve.turns import ServedTurn

logger = logging.getLogger(__name__)

_STATUS = {TurnStatus.SUCCESS: "Success", TurnStatus.ERROR: "Error", TurnStatus.CANCELLED: "Cancelled"}


class SessionLog:
    """The log of one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._sessions: dict[int, tuple[str, float]] = {}
        """Where each comes from, and since when."""
        self._turns: dict[int, int] = {}
        """How many each has had."""

    def entered(self, connection: ServerConnection) -> None:
        """A session has begun."""
        peer = connection.transport.get_extra_info("peername")
        address = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "somewhere"
        self._sessions[connection.id] = address, self._loop.time()
        logger.debug("session %d: %s connected", connection.id, address, extra={"session": connection.id})

    def left(self, connection: ServerConnection) -> None:
        """It is over. A turn of it may still be on its way out."""
        address, since = self._sessions.pop(connection.id)
        turns = self._turns.pop(connection.id, 0)
        logger.info("session %d: %s, %.1f s, %d turns", connection.id, address, self._loop.time() - since, turns,
                    extra={"session": connection.id})  # fmt: skip

    def over(self, turn: ServedTurn, session: int, ending: Ending) -> None:
        """A turn has ended."""
        if session in self._sessions:
            self._turns[session] = self._turns.get(session, 0) + 1
        status = _STATUS.get(ending.status, ending.status)
        told = status if ending.error is None else f"{status} {form_of(ending.error.kind).tryll}"
        speed, first = turn.speed(ending.tokens_generated), turn.first_word
        logger.info(
            "session %d: turn of agent %d: %s, %.3f s, %d tokens%s%s, waited %.3f s", session, turn.served.id, told,
            turn.seconds, ending.tokens_generated, "" if speed is None else f", {speed:.1f} tokens/s",
            "" if first is None else f", first word after {first:.3f} s", ending.waited, extra={"session": session},
        )  # fmt: skip


def session_log(loop: asyncio.AbstractEventLoop) -> SessionLog | None:
    """The log of a server; None where nobody reads it. Looked at once: a turn is not to ask each time."""
    return SessionLog(loop) if logger.isEnabledFor(logging.INFO) else None
