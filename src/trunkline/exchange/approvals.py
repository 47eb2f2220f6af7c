"""Approvals as rows: each is asked once and answered once, and outlives the process.

The session decides: it accepts one answer per call, and logs it before the agent sees it. The rows follow the log.
People look at them, and after a restart they tell the exchange which answers are still awaited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.events import ToolRequested
from trunkline.core.faults import UnknownCall
from trunkline.core.ids import new_id
from trunkline.exchange.turn_rows import held
from trunkline.store.database import Database, Row, Transaction

State = Literal["pending", "approved", "denied", "closed"]

#: The most approvals in one list.
MOST_LISTED = 1000

_FIELDS = (
    "id, session, agent, turn, call_id, tool, category, description, args, digest, asked_at, state, decided_by, "
    "decided_at, decided_wire, reason"
)


class Approval(Value):
    """One question and its outcome. Times are in milliseconds since 1970."""

    id: str
    session: str
    agent: str
    turn: int
    call_id: str
    tool: str
    category: str
    description: str
    args: Mapping[str, Any]
    digest: str
    asked_at: int
    state: State
    decided_by: str | None = None
    decided_at: int | None = None
    decided_wire: str | None = None
    """By which wire the answer came, as far as that is known."""
    reason: str | None = None


class ApprovalFilter(Value):
    """Which approvals to list: those of which all that is given is true."""

    state: State | None = None
    session: str | None = None
    agent: str | None = None
    tool: str | None = None
    category: str | None = None
    by: str | None = None
    """Who decided."""
    is_over: bool = False
    """Only those that await no answer any more; in the order in which that came, not in that of the questions."""
    before: str | None = None
    """The id of another one: those that come before it."""


class AlreadyDecided(UnknownCall):
    """Somebody else answered first, or the call is over."""

    def __init__(self, approval: Approval) -> None:
        if approval.state == "closed":
            text = f"It no longer needs an answer: {approval.reason or 'the call is over.'}"
        else:
            text = f"It was {approval.state} already, by {approval.decided_by or 'nobody'}."
        super().__init__(text)
        self.approval = approval


def digest(request: ToolRequested) -> str:
    """What an answer is bound to, besides the call's id: the tool and every argument."""
    whole = {"name": request.name, "args": request.args, "outside": request.outside}
    return hashlib.sha256(jsontext.dumps(whole)).hexdigest()


class ApprovalStore:
    """The rows."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        """`clock` gives milliseconds since 1970."""
        self._database = database
        self._clock = clock

    async def asked(self, session: str, agent: str, turn: int, request: ToolRequested) -> Approval:
        """A person has to decide on a call. If it was asked about before, its row is reused."""
        call_id, tool, description = map(jsontext.whole, (request.call_id, request.name, request.description))
        row = (
            new_id(), session, agent, turn, call_id, tool, request.category, description,
            jsontext.dumps(dict(request.args)).decode(), digest(request), self._clock(), "pending",
        )  # fmt: skip

        def write(tx: Transaction) -> Approval:
            found = tx.one(
                f"SELECT {_FIELDS} FROM approval WHERE session = ? AND turn = ? AND call_id = ? AND state = 'pending'",
                (session, turn, call_id),
            )
            if found is None:
                marks = ", ".join("?" * len(row))
                tx.execute(
                    "INSERT INTO approval (id, session, agent, turn, call_id, tool, category, description, args, "
                    f"digest, asked_at, state) VALUES ({marks})",
                    row,
                )
                found = tx.one(f"SELECT {_FIELDS} FROM approval WHERE id = ?", (row[0],))
            return _approval(found or {})

        return await self._database.write(write)

    async def answered(
        self,
        session: str,
        turn: int,
        call_id: str,
        *,
        approved: bool,
        by: str,
        reason: str | None = None,
        wire: str | None = None,
    ) -> None:
        """The session accepted an answer. A row that already has one keeps it."""
        await self._settle(session, turn, call_id, "approved" if approved else "denied", by, reason, wire)

    async def explained(self, id: str, reason: str) -> None:
        """Why it was denied."""
        sql = "UPDATE approval SET reason = ? WHERE id = ? AND state = 'denied'"
        await self._database.write(lambda tx: tx.execute(sql, (jsontext.whole(reason), id)))

    async def ended(self, session: str, turn: int, call_id: str | None, reason: str) -> None:
        """The call, or with None the whole turn, is over: an answer is no longer needed."""
        await self._settle(session, turn, call_id, "closed", None, reason)

    async def close_all(self, session: str, reason: str, *, but: frozenset[tuple[int, str]] = frozenset()) -> None:
        """In this session only these calls, by turn and id, still await an answer."""
        kept = {(turn, jsontext.whole(call_id)) for turn, call_id in but}

        def write(tx: Transaction) -> None:
            pending = tx.all(
                "SELECT id, turn, call_id FROM approval WHERE session = ? AND state = 'pending'", (session,)
            )
            for row in pending:
                if (row["turn"], row["call_id"]) not in kept:
                    tx.execute(
                        "UPDATE approval SET state = 'closed', reason = ?, decided_at = ? WHERE id = ?",
                        (reason, self._clock(), row["id"]),
                    )

        await self._database.write(write)

    async def get(self, id: str) -> Approval | None:
        """The approval with that id."""
        row = await self._database.read(lambda tx: tx.one(f"SELECT {_FIELDS} FROM approval WHERE id = ?", (held(id),)))
        return None if row is None else _approval(row)

    async def found(self, state: State | None = None, session: str | None = None) -> list[Approval]:
        """The latest approvals, oldest first."""
        return await self.listed(ApprovalFilter(state, session))

    async def listed(self, wanted: ApprovalFilter, limit: int = MOST_LISTED) -> list[Approval]:
        """The latest of those that are wanted, oldest first."""
        where, values = ["1 = 1"], []
        for column, value in (
            ("state", wanted.state),
            ("session", wanted.session),
            ("agent", wanted.agent),
            ("tool", wanted.tool),
            ("category", wanted.category),
            ("decided_by", wanted.by),
        ):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(held(value))
        if wanted.is_over:
            where.append("state <> 'pending'")
        at = "decided_at" if wanted.is_over else "asked_at"
        if wanted.before is not None:
            where.append(f"({at}, id) < (SELECT {at}, id FROM approval WHERE id = ?)")
            values.append(held(wanted.before))
        sql = f"SELECT {_FIELDS} FROM approval WHERE {' AND '.join(where)} ORDER BY {at} DESC, id DESC LIMIT ?"
        rows = await self._database.read(lambda tx: tx.all(sql, (*values, min(limit, MOST_LISTED))))
        return [_approval(row) for row in reversed(rows)]

    async def overdue(self, until: int) -> list[Approval]:
        """Those that were asked by then and await an answer, oldest first; of very many, the oldest."""
        sql = (
            f"SELECT {_FIELDS} FROM approval WHERE state = 'pending' AND asked_at <= ? ORDER BY asked_at, id "
            f"LIMIT {MOST_LISTED}"
        )
        return [_approval(row) for row in await self._database.read(lambda tx: tx.all(sql, (until,)))]

    async def count_pending(self) -> int:
        """How many await an answer."""
        sql = "SELECT COUNT(*) AS count FROM approval WHERE state = 'pending'"
        row = await self._database.read(lambda tx: tx.one(sql))
        return int((row or {"count": 0})["count"])

    async def sessions_waiting(self) -> list[str]:
        """The sessions that await an answer."""
        sql = "SELECT DISTINCT session FROM approval WHERE state = 'pending' ORDER BY session"
        return [str(row["session"]) for row in await self._database.read(lambda tx: tx.all(sql))]

    async def _settle(
        self,
        session: str,
        turn: int,
        call_id: str | None,
        state: State,
        by: str | None,
        reason: str | None,
        wire: str | None = None,
    ) -> None:
        by, reason, wire = (None if text is None else jsontext.whole(text) for text in (by, reason, wire))
        values: list[Any] = [state, by, self._clock(), wire, reason, session, turn]
        call = "" if call_id is None else " AND call_id = ?"
        values += [] if call_id is None else [jsontext.whole(call_id)]
        sql = (
            "UPDATE approval SET state = ?, decided_by = ?, decided_at = ?, decided_wire = ?, reason = ? "
            f"WHERE session = ? AND turn = ?{call} AND state = 'pending'"
        )
        await self._database.write(lambda tx: tx.execute(sql, values))


def _approval(row: Row) -> Approval:
    return Approval(**{**row, "args": jsontext.loads(str(row["args"]).encode())})
