"""The bridge's memory on a PostgreSQL server that several machines share: one of them serves a platform at a time.

Which one, somebody else decides (a cluster), and gives it a fence: a pair of numbers that is higher than that of
whoever had it before. Each transaction sees that its fence is still the highest, and holds it for that moment. So what
a machine writes that was suspended, and does not know that another has taken over, is refused.

A bridge writes between two steps of its event loop, as to a disk. A server that does not answer is not waited for
longer than `ANSWER_SECONDS`, and not again before it has answered. What was not written then is tried again, as on a
full disk. Only if it is not known whether something was written, the run of the bridge is over, and the next one reads
what is there: that is `ChatStoreLost`, and so is a fence that is not the highest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any, NoReturn, TypeVar

import psycopg

from trunkline.chat.delivery.database import Fence
from trunkline.chat.delivery.store import ChatStoreLost, blob
from trunkline.core.faults import ConfigError
from trunkline.store.database import Conflict, DatabaseError, DatabaseGone, Dialect, Row
from trunkline.store.database.form import SERIAL_KEY, Form
from trunkline.store.database.postgres import PostgresTransaction, connect, first_line, prepare
from trunkline.store.database.postgres_session import PostgresSession

#: How long the answers to a transaction may take. The event loop waits for them: less than any lease lasts.
ANSWER_SECONDS = 2.0
#: What one of them gets in any case.
LEAST_SECONDS = 0.1

#: Where the tables are: the other tables of the database are an exchange's.
SCHEMA = "trunkline_chat"

FORM = Form(
    "chat",
    b"TLch",
    (
        (
            f"""
            CREATE TABLE notes (
                key {SERIAL_KEY},
                platform BYTEA NOT NULL,
                id BYTEA NOT NULL,
                chat BYTEA NOT NULL,
                item BYTEA,
                state TEXT NOT NULL,
                noted DOUBLE PRECISION NOT NULL,
                UNIQUE (platform, id)
            )
            """,
            "CREATE INDEX notes_open ON notes (platform, state) WHERE state IN ('waiting', 'running')",
            "CREATE INDEX notes_noted ON notes (noted)",
            """
            CREATE TABLE conversations (
                platform BYTEA NOT NULL,
                chat BYTEA NOT NULL,
                kept BYTEA NOT NULL,
                PRIMARY KEY (platform, chat)
            )
            """,
            f"""
            CREATE TABLE outbox (
                key {SERIAL_KEY},
                platform BYTEA NOT NULL,
                chat BYTEA NOT NULL,
                token TEXT NOT NULL,
                body BYTEA NOT NULL,
                shown BYTEA,
                reply_to BYTEA,
                state TEXT NOT NULL,
                message BYTEA,
                renewed INTEGER NOT NULL DEFAULT 0,
                problem TEXT NOT NULL DEFAULT '',
                told INTEGER NOT NULL DEFAULT 0,
                created DOUBLE PRECISION NOT NULL,
                changed DOUBLE PRECISION NOT NULL
            )
            """,
            "CREATE INDEX outbox_unsent ON outbox (platform, state) WHERE state <> 'sent'",
            "CREATE INDEX outbox_stale ON outbox (platform) WHERE state = 'sent' AND shown IS DISTINCT FROM body",
            "CREATE INDEX outbox_changed ON outbox (changed)",
            "CREATE INDEX outbox_untold ON outbox (platform, chat) WHERE state <> 'sent' AND told = 0",
            # Who serves a platform, and what that platform itself needs to go on where it was.
            """
            CREATE TABLE platforms (
                platform BYTEA PRIMARY KEY,
                epoch BIGINT NOT NULL,
                fence BIGINT NOT NULL,
                state BYTEA
            )
            """,
        ),
    ),
)

T = TypeVar("T")

_TAKEN = "Another node serves this platform now."
_CLOSED = "The chat database was closed."
_IN_DOUBT = "The chat database went away, and it is not known whether it has the last that was written."


def forget_fences(url: str) -> None:
    """Let anybody claim the platforms: the stream that numbered the fences is another one. Waits for the server.

    Raises:
        ConfigError: it cannot be reached.
    """
    try:
        with connect(url, SCHEMA) as connection:
            if connection.execute("SELECT 1 WHERE to_regclass('platforms') IS NOT NULL").fetchone() is not None:
                connection.execute("UPDATE platforms SET epoch = 0, fence = 0")
    except psycopg.Error as error:
        raise _away(first_line(error)) from None


class SharedResult:
    """What a statement gave, all of it."""

    def __init__(self, rowcount: int, rows: list[Row]) -> None:
        self.rowcount = rowcount
        self._rows = [tuple(row.values()) for row in rows]

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows, []
        return rows


class SharedChat:
    """A `ChatDatabase` for one platform. Made by `opened`, in a thread; belongs to an event loop then."""

    dialect: Dialect = "postgresql"
    where = "the cluster's database"

    def __init__(self, session: PostgresSession, platform: str, fence: Fence) -> None:
        self._session = session
        self._platform = platform
        self._fence = fence
        self._thread = ThreadPoolExecutor(1, "chat-database")
        self._late: Future[Any] | None = None
        """What was not waited for any longer."""
        self._open: ExitStack | None = None
        """The transaction that was begun."""
        self._transaction: PostgresTransaction | None = None
        self.lost = ""
        """Why this run of the bridge is over; empty while it is not."""
        self._is_closed = False
        self._until = 0.0
        """When the transaction must be over."""

    @classmethod
    def opened(cls, url: str, platform: str, fence: Fence) -> SharedChat:
        """Make what is missing there, and claim the platform. Waits for the server.

        Raises:
            ConfigError: the server cannot be reached.
            ChatStoreLost: another machine serves it.
        """
        prepare(url, FORM, SCHEMA)
        made = cls(PostgresSession(url, SCHEMA), platform, fence)
        try:
            made.claim(platform)
        except BaseException:
            made.close()
            raise
        return made

    # Statements.

    def execute(self, statement: str, *parameters: object) -> SharedResult:
        if (transaction := self._transaction) is not None:
            return self._do(lambda: _result(transaction, statement, parameters))
        self.begin()
        try:
            found = self.execute(statement, *parameters)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        return found

    def begin(self) -> None:
        self._until = time.monotonic() + ANSWER_SECONDS
        self._transaction, self._open = self._do(self._begin)

    def commit(self) -> None:
        opened, self._open, self._transaction = self._open, None, None
        if opened is None:
            return
        try:
            self._do(opened.close)
        except ConfigError as error:
            self._lose(f"{_IN_DOUBT} {error}")

    def rollback(self) -> None:
        opened, self._open, self._transaction = self._open, None, None
        if opened is not None:
            # The server undoes what nobody commits; whether that was heard does not matter.
            self._thread.submit(_undo, opened)

    def claim(self, platform: str) -> None:
        self._until = time.monotonic() + ANSWER_SECONDS
        taken = self._do(self._claim)
        if not taken:
            self._lose(_TAKEN)

    def version(self) -> int:
        # Nobody else may write here.
        return 0

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._session.break_off()
            self._thread.submit(self._session.close)
            self._thread.shutdown(wait=False)

    def lose(self, why: str) -> None:
        """Write nothing from now on: the platform may be another machine's."""
        self.lost = self.lost or why

    # What a platform needs to go on where it was.

    def recall(self) -> bytes:
        """What was remembered last; nothing at first. Raises as `execute` does."""
        found = self.execute("SELECT state FROM platforms WHERE platform = ?", blob(self._platform)).fetchall()
        return bytes(found[0][0] or b"") if found else b""

    def remember(self, state: bytes) -> None:
        """Keep this instead. Raises as `execute` does."""
        self.execute("UPDATE platforms SET state = ? WHERE platform = ?", state, blob(self._platform))

    # In the thread.

    def _begin(self) -> tuple[PostgresTransaction, ExitStack]:
        with ExitStack() as stack:
            transaction = stack.enter_context(self._session.transaction())
            held = transaction.one(
                "SELECT 1 FROM platforms WHERE platform = ? AND epoch = ? AND fence = ? FOR SHARE",
                (blob(self._platform), self._fence.epoch, self._fence.number),
            )
            if held is None:
                raise _Deposed
            return transaction, stack.pop_all()

    def _claim(self) -> bool:
        with self._session.transaction() as transaction:
            changed = transaction.execute(
                "INSERT INTO platforms (platform, epoch, fence) VALUES (?, ?, ?) ON CONFLICT (platform) DO UPDATE"
                " SET epoch = excluded.epoch, fence = excluded.fence"
                " WHERE (platforms.epoch, platforms.fence) <= (excluded.epoch, excluded.fence)",
                (blob(self._platform), self._fence.epoch, self._fence.number),
            )
        return changed == 1

    # In the event loop.

    def _do(self, work: Callable[[], T]) -> T:
        """Have it done, and wait for that; not for long.

        Raises:
            ConfigError: the server does not answer.
            ChatStoreLost: the platform is another machine's.
        """
        if self.lost or self._is_closed:
            raise ChatStoreLost(self.lost or _CLOSED, retryable=True)
        if self._late is not None and not self._late.done():
            raise _away("it has not answered yet")
        doing = self._thread.submit(work)
        self._late = doing
        try:
            # All of a transaction together, or many statements would keep the loop for longer than a lease lasts.
            return doing.result(max(LEAST_SECONDS, self._until - time.monotonic()))
        except _Deposed:
            self._lose(_TAKEN)
        except TimeoutError:
            self._session.break_off()
            doing.add_done_callback(_too_late)
            raise _away(f"no answer for {ANSWER_SECONDS:g} s") from None
        except (DatabaseGone, Conflict) as error:
            raise _away(str(error)) from None
        except psycopg.Error as error:
            # A right that was taken away, say. Not a defect of the message: that must not be confirmed.
            raise _away(first_line(error)) from None

    def _lose(self, why: str) -> NoReturn:
        self.lose(why)
        raise ChatStoreLost(why, retryable=True)


class _Deposed(DatabaseError):
    """Another fence is in force."""


def _result(transaction: PostgresTransaction, statement: str, parameters: tuple[object, ...]) -> SharedResult:
    if statement.lstrip().startswith("SELECT") or "RETURNING" in statement:
        rows = transaction.all(statement, parameters)
        return SharedResult(len(rows), rows)
    return SharedResult(transaction.execute(statement, parameters), [])


def _too_late(doing: Future[Any]) -> None:
    """A transaction that was begun when nobody waited for it any longer."""
    if doing.exception() is None and isinstance(begun := doing.result(), tuple):
        _undo(begun[1])


def _undo(opened: ExitStack) -> None:
    # However that goes: the server undoes what a connection leaves behind.
    with suppress(Exception):
        opened.__exit__(_Deposed, _Deposed(), None)


def _away(why: str) -> ConfigError:
    return ConfigError(f"The chat database cannot be used now: {why}.", retryable=True)
