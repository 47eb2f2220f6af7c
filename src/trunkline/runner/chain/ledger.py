"""What a wallet did on a chain: every transaction from before it is sent until its end is known.

One book (`book`) for each chain and address, shared by all runners that use the wallet. Each method is one transaction,
and kept when it returns. Who writes in a book is alone with it: that keeps two processes from taking one nonce, or from
spending one allowance twice. `reserve` does all of that at once.

A transaction's states:

    awaiting   a person is to decide        approved   and said yes: to be sent
    rejected   and said no                  expired    and said nothing
    signed     being sent, until a time     unknown    was sent, maybe
    pending    a node has it                refused    no node has it, and none will
    mined      it worked                    reverted   the contract undid it
    replaced   another one has its nonce    abandoned  nobody knows, and nobody looks any more
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.runner.chain.book import Book
from trunkline.runner.chain.caps import DAY_MS, Spent
from trunkline.runner.chain.outcome import Receipt
from trunkline.runner.chain.planning import CallPlan
from trunkline.runner.chain.wallet import Signed

#: How long finished transactions are kept, for people who look.
KEEP_MS = 90 * DAY_MS

#: Signed, and its end not known.
OPEN = ("signed", "unknown", "pending")
#: It has a place in a block.
DONE = ("mined", "reverted")
#: Told at once. More would drown an agent; the rest follows when these were received.
MOST_TOLD = 100

#: Worth telling the agent when it was not told yet. (`pending` was told when it was sent.)
TOLD = (*DONE, "unknown", "refused", "rejected", "expired", "replaced", "abandoned")

_FIELDS = "id, agent, state, told, plan, gas, nonce, hash, until, pid, reserved, receipt, problem, created"


class TransactionRow(Value):
    """One transaction. Times are milliseconds since 1970."""

    id: int
    agent: str
    state: str
    told: str | None
    """The state that the agent was told last."""
    plan: CallPlan
    gas: int | None
    nonce: int | None
    hash: str | None
    until: int
    """A `signed` one is being sent until then, at most."""
    pid: int
    """The process that sends it, or whatever its book calls it."""
    reserved: int
    """When it was signed; 0: it was not."""
    receipt: Receipt | None
    problem: str
    created: int


class Ledger:
    """One wallet's book on one chain. May be used by several threads. Close it when done."""

    def __init__(self, book: Book) -> None:
        """Take over a book.

        Raises:
            Fault: it cannot be used.
        """
        self.book = book
        with book.writing():
            book.change("DELETE FROM transactions WHERE changed < ? AND told IS state", self.clock() - KEEP_MS)

    def clock(self) -> int:
        """The time, in milliseconds since 1970."""
        return self.book.clock()

    def reserve(
        self,
        agent: str,
        plan: CallPlan,
        quote: tuple[int, int],
        *,
        row: TransactionRow | None,
        floor: int,
        free: Iterable[int],
        seconds: float,
        allow: Callable[[Spent], None],
        sign: Callable[[int], Signed],
    ) -> tuple[TransactionRow, bytes] | None:
        """Take a nonce, sign with it, and write both down: from now on the transaction may be sent, for `seconds`.

        Args:
            quote: the gas and the fee that it may cost.
            row: the one that was approved, or that is to be signed anew, as it was read last; None: a new one.
            floor: the first nonce that the chain would take.
            free: rows whose nonces can be used again, since no node has their transactions.
            allow: raises if too much was spent.
            sign: signs with a nonce.

        Returns:
            The row, and the bytes to send; None if the row has changed: somebody else takes care of it.
        """
        with self.book.writing():
            if row is not None and not self._is_as_read(row):
                return None
            id = None if row is None else row.id
            # What is signed anew is not spent twice.
            allow(self._spent(besides=id))
            nonce = self._nonce(floor, frozenset(free))
            signed = sign(nonce)
            until = self.clock() + int(seconds * 1000)
            if id is None:
                id = self._insert(agent, "signed", plan, quote[1])
            self.book.change(
                "UPDATE transactions SET state = 'signed', told = NULL, problem = '', fee = ?, gas = ?, nonce = ?,"
                " hash = ?, raw = ?, until = ?, pid = ?, reserved = ?, changed = ? WHERE id = ?",
                str(quote[1]), quote[0], nonce, signed.hash, signed.raw, until, self.book.sender, self.clock(),
                self.clock(), id,
            )  # fmt: skip
            return self._one(id), signed.raw

    def ask(self, agent: str, plan: CallPlan, fee: int) -> int:
        """A person is to decide about this."""
        with self.book.writing():
            return self._insert(agent, "awaiting", plan, fee)

    def decide(self, row: int, approve: bool) -> bool:
        """A person decided. False: there was nothing to decide."""
        with self.book.writing():
            return self._move(row, ("awaiting",), "approved" if approve else "rejected")

    def expire(self, before: int) -> None:
        """What nobody decided about since that time is over."""
        with self.book.writing():
            self.book.change(
                "UPDATE transactions SET state = 'expired', changed = ? WHERE state = 'awaiting' AND created < ?",
                self.clock(), before,
            )  # fmt: skip

    def move(self, row: int, states: tuple[str, ...], to: str, problem: str = "") -> bool:
        """Note another state, if it is in one of those. False: it is not."""
        with self.book.writing():
            return self._move(row, states, to, problem)

    def finish(self, row: int, receipt: Receipt, fee: int, problem: str = "") -> None:
        """It is in a block. One that reverted moved no value."""
        content = jsontext.dumps({field: getattr(receipt, field) for field in Receipt.__fields__})
        with self.book.writing():
            self.book.change(
                "UPDATE transactions SET state = ?, receipt = ?, fee = ?, problem = ?, changed = ?,"
                " value = CASE WHEN ? THEN value ELSE '0' END WHERE id = ?",
                "mined" if receipt.status else "reverted", content, str(fee), problem, self.clock(),
                bool(receipt.status), row,
            )  # fmt: skip

    def tell(self, rows: Iterable[tuple[int, str]]) -> None:
        """The agent was told that these rows are in these states."""
        with self.book.writing():
            for row, state in rows:
                self.book.change("UPDATE transactions SET told = ? WHERE id = ?", state, row)

    def row(self, id: int) -> TransactionRow:
        """One transaction."""
        with self.book.reading():
            return self._one(id)

    def fee(self, id: int) -> int:
        """What a transaction costs, or may cost, besides its value."""
        with self.book.reading():
            return int(self.book.rows("SELECT fee FROM transactions WHERE id = ?", id)[0][0])

    def rows(self, agent: str | None, *states: str, limit: int = 100) -> list[TransactionRow]:
        """The transactions in these states, oldest first; of one agent, or of all."""
        marks = ", ".join("?" * len(states))
        condition, parameters = f"state IN ({marks})", list[object](states)
        if agent is not None:
            condition, parameters = f"{condition} AND agent = ?", [*parameters, agent]
        with self.book.reading():
            return self._select(f"{condition} ORDER BY id LIMIT {limit:d}", *parameters)

    def untold(self, agent: str) -> list[TransactionRow]:
        """What the agent does not know yet: the oldest `MOST_TOLD`."""
        marks = ", ".join("?" * len(TOLD))
        with self.book.reading():
            # The words of the index, so that the many that it knows are not even looked at.
            return self._select(
                f"agent = ? AND state IN ({marks}) AND told IS NOT state ORDER BY id LIMIT {MOST_TOLD:d}", agent, *TOLD
            )

    def claims(self, floor: int, limit: int) -> list[TransactionRow]:
        """Those that hold a nonce from `floor` on, and are not being sent right now: the chain can say whether they
        still do."""
        with self.book.reading():
            found = self._select(
                "nonce >= ? AND state IN ('signed', 'unknown', 'pending', 'mined', 'reverted')"
                f" ORDER BY nonce LIMIT {limit:d}",
                floor,
            )
        return [row for row in found if not self.is_being_sent(row)]

    def is_being_sent(self, row: TransactionRow) -> bool:
        """Whether a process is about to send it, or waits for the answer. May wait."""
        return row.state == "signed" and row.until >= self.clock() and self.book.sends(row.agent, row.pid)

    def has_successor(self, row: TransactionRow) -> bool:
        """Whether one that was signed later is in a block with its nonce: then it never will be."""
        with self.book.reading():
            found = self.book.rows(
                "SELECT 1 FROM transactions WHERE nonce = ? AND reserved >= ? AND id <> ?"
                " AND state IN ('mined', 'reverted') LIMIT 1",
                row.nonce, row.reserved, row.id,
            )  # fmt: skip
            return bool(found)

    def close(self) -> None:
        """Let go of the database. May be called again."""
        self.book.close()

    def _nonce(self, floor: int, free: frozenset[int]) -> int:
        """The lowest one that nobody holds: so a gap, which stops all that come after it, is closed first."""
        found = self.book.rows(
            "SELECT id, nonce FROM transactions WHERE nonce >= ?"
            " AND state IN ('signed', 'unknown', 'pending', 'mined', 'reverted')",
            floor,
        )
        taken = {nonce for row, nonce in found if row not in free}
        while floor in taken:
            floor += 1
        return floor

    def _spent(self, besides: int | None) -> Spent:
        since = self.clock() - DAY_MS
        found = self.book.rows(
            "SELECT value, fee FROM transactions WHERE reserved >= ? AND id IS NOT ?"
            " AND state IN ('signed', 'unknown', 'pending', 'mined', 'reverted', 'abandoned')",
            since, besides,
        )  # fmt: skip
        return Spent(sum(int(value) for value, _ in found), sum(int(fee) for _, fee in found))

    def _insert(self, agent: str, state: str, plan: CallPlan, fee: int) -> int:
        now = self.clock()
        added = self.book.rows(
            "INSERT INTO transactions (agent, state, plan, value, fee, created, changed) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " RETURNING id",
            agent, state, plan.dumped(), str(plan.value), str(fee), now, now,
        )  # fmt: skip
        return int(added[0][0])

    def _move(self, row: int, states: tuple[str, ...], to: str, problem: str = "") -> bool:
        marks = ", ".join("?" * len(states))
        moved = self.book.change(
            f"UPDATE transactions SET state = ?, problem = ?, changed = ? WHERE id = ? AND state IN ({marks})",  # noqa: S608 - marks
            to, problem, self.clock(), row, *states,
        )  # fmt: skip
        return moved > 0

    def _is_as_read(self, row: TransactionRow) -> bool:
        return self.book.rows("SELECT state, hash FROM transactions WHERE id = ?", row.id) == [(row.state, row.hash)]

    def _one(self, row: int) -> TransactionRow:
        return self._select("id = ?", row)[0]

    def _select(self, condition: str, *parameters: object) -> list[TransactionRow]:
        # The condition is one of this file's own.
        found = self.book.rows(f"SELECT {_FIELDS} FROM transactions WHERE {condition}", *parameters)  # noqa: S608
        return [_row(*fields) for fields in found]


def _row(
    id: int, agent: str, state: str, told: str | None, plan: bytes, gas: int | None, nonce: int | None,
    hash: str | None, until: int, pid: int, reserved: int, receipt: bytes | None, problem: str, created: int,
) -> TransactionRow:  # fmt: skip
    found = Receipt(**jsontext.loads(receipt)) if receipt else None
    return TransactionRow(
        id, agent, state, told, CallPlan.loaded(plan), gas, nonce, hash, until, pid, reserved, found, problem, created
    )
