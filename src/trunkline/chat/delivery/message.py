"""One message on its way, as a process knows it.

It has the row that is on disk. Every change of the row is saved before it counts, with one exception: while the text
still grows, newer texts, and that they are shown, are known to the process alone. After a crash they are of no use:
who was writing is gone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

from trunkline.chat.delivery.rows import Body, OutboxRow, Rows, TextBody
from trunkline.chat.delivery.splitting import resumed
from trunkline.chat.delivery.states import OPEN, Cause, MessageState, after

_logger = logging.getLogger(__name__)


class SentMessage:
    """A message that a lane delivers."""

    def __init__(self, rows: Rows, row: OutboxRow, *, growing: bool = False) -> None:
        self._rows = rows
        self.row = row
        self.growing = growing
        """Whether more text may come."""
        self.doubtful = row.state is MessageState.SENDING
        """Whether an earlier try may have gone through."""
        self.not_before = 0.0
        """By the loop's clock: the next try."""
        self._skipped = 0
        """How much of its text a message before may have shown, whose fate is unknown."""
        self._given = _chars(row.body)
        """How long the text was that it was given last, with what is skipped."""
        self._settled = asyncio.Event()
        self._tell()

    @property
    def is_open(self) -> bool:
        """It is to be sent."""
        return self.row.state in OPEN and not _is_blank(self.row.body)

    @property
    def is_stale(self) -> bool:
        """It was sent, and is to be changed."""
        row = self.row
        return (
            row.state is MessageState.SENT
            and row.message is not None
            and row.shown != row.body
            and not _is_blank(row.body)
        )

    @property
    def is_done(self) -> bool:
        """Nothing is left to do, now or later."""
        return not (self.growing or self.is_open or self.is_stale)

    async def settled(self) -> MessageState:
        """Wait until nothing is left to do."""
        await self._settled.wait()
        return self.row.state

    # What it is to show.

    def show(self, body: Body) -> None:
        """A newer text; more may come."""
        self._give(body, growing=True)

    def fix(self, body: Body) -> None:
        """The last text."""
        self._give(body, growing=False)

    def _give(self, body: Body, *, growing: bool) -> None:
        given, wanted = _chars(body), body
        if self._skipped and isinstance(body, TextBody):
            wanted = body.replace(text=resumed(body.text, self._skipped))
        row = self.row.replace(body=wanted)
        if self._goes_on(row, given, growing):
            return
        if not growing and row.state is MessageState.PENDING and _is_blank(wanted):
            # All of it stands elsewhere already.
            self._rows.forget(row)
            row = row.replace(state=MessageState.SENT)
        elif not growing:
            self._rows.save(row)
        self._rows.store.when_kept(lambda: self._become(row, given, self._skipped, growing))

    # What happened to it: each of them is a `Cause`.

    def begun(self) -> Body:
        """It is about to be sent: what exactly, and that it may arrive, is saved first."""
        # Under one key the first text counts: if a try before went through, that is what is shown.
        shown = self.row.shown or self.row.body
        self._keep(self.row.replace(state=after(self.row.state, Cause.BEGUN), shown=shown))
        return self.row.body

    def taken(self, message: str) -> None:
        """The platform has it, under this name."""
        self._keep(self.row.replace(state=after(self.row.state, Cause.TAKEN), message=message, problem=""))

    def later(self, problem: str) -> None:
        """The platform does not have it now, and may take it later."""
        if self.doubtful:
            self.again(problem)
        else:
            self._keep(self.row.replace(state=after(self.row.state, Cause.LATER), shown=None, problem=problem))

    def again(self, problem: str) -> None:
        """It may have arrived, and is sent again under the same key."""
        self.doubtful = True
        self._keep(self.row.replace(state=after(self.row.state, Cause.AGAIN), problem=problem))

    def refused(self, problem: str) -> None:
        """It is not there, and will not be; unless an earlier try went through."""
        if self.doubtful:
            self.doubted(problem)
        else:
            self._lose(self.row.replace(state=after(self.row.state, Cause.REFUSED), shown=None, problem=problem))

    def doubted(self, problem: str) -> None:
        """Whether it arrived will never be known."""
        self._lose(self.row.replace(state=after(self.row.state, Cause.DOUBTED), problem=problem))

    def changed(self, body: Body) -> None:
        """The platform shows this now."""
        row = self.row.replace(shown=body, problem="")
        if not self.growing:
            self._rows.save(row)
        self._become(row, self._given, self._skipped, self.growing)

    def stale(self, problem: str) -> None:
        """The platform has it, and will not take its last text."""
        self._lose(self.row.replace(state=after(self.row.state, Cause.STALE), problem=problem))

    def gone(self, problem: str) -> None:
        """The platform cannot change it any more: it is sent anew, as a new message."""
        row = self.row.replace(state=after(self.row.state, Cause.GONE), token=secrets.token_hex(16), renewed=True)
        self._keep(row.replace(shown=None, message=None, problem=problem))
        self.doubtful = False

    def unwanted(self) -> None:
        """Nobody is there who could miss it, now or later: the disk forgets it, and so does who waits for its end."""
        self._rows.forget(self.row)
        row = self.row.replace(state=MessageState.SENT, shown=self.row.body, message=None)
        self._become(row, self._given, self._skipped, self.growing)

    # How it is kept.

    def _lose(self, row: OutboxRow) -> None:
        """It failed, or is unknown: the owner should hear of it. Not of its text: others may read the log."""
        if not self._goes_on(row, self._given, self.growing):
            self._keep(row)
        _logger.warning(
            "Message %d to `%s` on %s is %s: %s (see `trunkline bridge outbox`)",
            row.id, row.chat, row.platform, row.state, row.problem,
        )  # fmt: skip

    def _goes_on(self, old: OutboxRow, given: int, growing: bool) -> bool:
        """Leave a message whose fate is unknown as it was sent, and become a new one with what comes after that.

        What comes after it certainly did not arrive. False: there is nothing like that.
        """
        if (
            old.state is not MessageState.UNKNOWN
            or not isinstance(old.body, TextBody)
            or not isinstance(old.shown, TextBody)
        ):
            return False
        if not old.body.text.startswith(old.shown.text):
            return False
        rest = resumed(old.body.text, len(old.shown.text))
        if not rest.strip():
            return False
        skipped = given - (len(old.body.text) - len(old.shown.text))
        with self._rows.store.together():
            self._rows.save(old.replace(body=old.shown))
            row = self._rows.add(old.platform, old.chat, old.body.replace(text=rest))
            self._rows.store.when_kept(lambda: self._become(row, given, skipped, growing))
        return True

    def _become(self, row: OutboxRow, given: int, skipped: int, growing: bool) -> None:
        if row.id != self.row.id:
            self.doubtful = False
        self.row, self.growing = row, growing
        self._given, self._skipped = given, skipped
        self._tell()

    def _keep(self, row: OutboxRow) -> None:
        # What grows is saved as it is shown: after a crash it must not be changed back to what it was at some time.
        unfinished = self.growing and row.shown is not None
        self._rows.save(row.replace(body=row.shown) if unfinished else row)
        self.row = row
        self._tell()

    def _tell(self) -> None:
        if self.is_done:
            self._settled.set()
        else:
            self._settled.clear()


def _chars(body: Body) -> int:
    return len(body.text) if isinstance(body, TextBody) else 0


def _is_blank(body: Body) -> bool:
    return isinstance(body, TextBody) and not body.text.strip()
