"""A database on a PostgreSQL server: threads with a connection each. Several programs may share it.

Each piece of work is one transaction: reads on one state of the database, writes as PostgreSQL does by itself (READ
COMMITTED). A connection that breaks takes the work with it that was under way, which is not repeated; the next work
gets a new connection. A server that went away and came back while nobody asked is not noticed at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg.rows import dict_row

from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError
from trunkline.store.database import Conflict, DatabaseGone, Dialect, Row, Work
from trunkline.store.database import form as forms
from trunkline.store.database.form import Form
from trunkline.store.database.worker_pool import Job, WorkerPool

#: Connections. PostgreSQL puts the commits of several together; more threads than this only wait for Python.
WRITERS = 4
READERS = 4
#: How long a server may take to accept a connection.
CONNECT_SECONDS = 10
#: How long one statement may take, and how long it may wait for another transaction. As with SQLite.
STATEMENT_SECONDS = 20
LOCK_SECONDS = 10
#: How long data may lie unconfirmed on a network that lost the server, before the connection counts as broken.
UNHEARD_SECONDS = 15
#: Translated statements that are kept; there are some two hundred.
_STATEMENTS = 1024

#: `synchronous_commit`, whatever the server's own setting is: an answer to a write promises that it is on the disk.
_SETTINGS = f"""
    SET statement_timeout = {STATEMENT_SECONDS * 1000};
    SET lock_timeout = {LOCK_SECONDS * 1000};
    SET idle_in_transaction_session_timeout = {STATEMENT_SECONDS * 1000};
    SET synchronous_commit = on
"""
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

#: What passes, maybe. The last: a server that only follows another one, until it takes over.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction)

ServerConnection = psycopg.Connection[dict[str, Any]]

T = TypeVar("T")


class PostgresDatabase:
    """An open database. Belongs to the event loop in which it was opened."""

    def __init__(self, url: str, owner: str) -> None:
        """Take over a database that `open_postgres` has made ready."""
        self._writers = WorkerPool(f"{owner}-writer", [_ServerWorker(url, BEGIN_WRITE) for _ in range(WRITERS)])
        self._readers = WorkerPool(f"{owner}-reader", [_ServerWorker(url, _BEGIN_READ) for _ in range(READERS)])

    @property
    def dialect(self) -> Dialect:
        return "postgresql"

    async def read(self, work: Work[T]) -> T:
        return await self._readers.do(work)

    async def write(self, work: Work[T]) -> T:
        return await self._writers.do(work)

    async def close(self) -> None:
        await self._readers.close()
        await self._writers.close()


async def open_postgres(url: str, form: Form) -> PostgresDatabase:
    """Connect to a database, and make its tables where they are missing.

    Raises:
        ConfigError: it cannot be reached, or is of a newer version.
    """
    await asyncio.to_thread(prepare, url, form)
    return PostgresDatabase(url, form.owner)


def prepare(url: str, form: Form, schema: str = "") -> None:
    """Make the tables of a database where they are missing, in a schema of their own if one is named. Waits for the
    server.

    Raises:
        ConfigError: it cannot be reached, or is of a newer version.
    """
    try:
        password = str(psycopg.conninfo.conninfo_to_dict(url).get("password") or "")
    except psycopg.Error:
        # What the library says about it quotes the place, which may be the password.
        raise ConfigError(
            "The URL of the PostgreSQL database cannot be read.",
            hint="It has the form `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; write special characters as `%XX`.",
        ) from None
    try:
        with connect(url, schema) as connection:
            if schema and connection.execute("SELECT 1 WHERE to_regnamespace(%s) IS NULL", (schema,)).fetchone():
                # Not by `IF NOT EXISTS` alone: of two that make it at once, that lets one fail.
                with suppress(psycopg.errors.UniqueViolation):
                    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
            forms.postgres(connection, form)
    except psycopg.Error as error:
        said = Redactor((password,)).text(str(error).strip())
        raise ConfigError(
            f"The PostgreSQL database cannot be used: {said}.",
            hint="Check that the server runs, that the URL is right, and that its user may make tables.",
            retryable=isinstance(error, AWAY),
        ) from None


def connect(url: str, schema: str = "") -> ServerConnection:
    """A connection with our settings, in autocommit mode. `schema`: where the tables are, if not where new ones usually
    are.

    Raises:
        psycopg.Error: it cannot be had.
    """
    connection: ServerConnection = psycopg.connect(
        url,
        autocommit=True,
        row_factory=dict_row,
        connect_timeout=CONNECT_SECONDS,
        tcp_user_timeout=UNHEARD_SECONDS * 1000,
        application_name="trunkline",
        client_encoding="UTF8",
    )
    try:
        connection.execute(_SETTINGS)
        if schema:
            connection.execute(f"SET search_path TO {schema}".encode())
    except BaseException:
        connection.close()
        raise
    return connection


@lru_cache(_STATEMENTS)
def translated(sql: str) -> bytes:
    """A statement in the words of the library: `%s` for each `?`."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


class PostgresTransaction:
    """One piece of work on a connection. After a statement has failed it is over: each further one fails likewise."""

    __slots__ = ("_connection", "_failure")

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._failure: Exception | None = None

    @property
    def dialect(self) -> Dialect:
        return "postgresql"

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return max(0, self._run(sql, parameters).rowcount)

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        return self._run(sql, parameters).fetchone()

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return [*self._run(sql, parameters)]

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self, sql: str, parameters: Sequence[Any]) -> psycopg.Cursor[dict[str, Any]]:
        # The whole answer is fetched here: nothing can fail later.
        self.check()
        try:
            return self._connection.execute(translated(sql), parameters)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        self._failure = _meaning(error)
        if self._failure is error:
            raise error
        raise self._failure from error


def _meaning(error: Exception) -> Exception:
    """What an error of PostgreSQL means to those who use the database. Defects stay what they are."""
    if isinstance(error, psycopg.IntegrityError):
        return Conflict(first_line(error))
    if isinstance(error, psycopg.DataError):
        return ValueError(first_line(error))
    if isinstance(error, AWAY):
        return DatabaseGone(first_line(error))
    return error


def first_line(error: psycopg.Error) -> str:
    """The first line: what follows quotes the values."""
    return str(error).strip().partition("\n")[0]


class _ServerWorker:
    """One thread's connection, made when it is needed."""

    def __init__(self, url: str, begin: str) -> None:
        self._url = url
        self._begin = begin
        self._connection: ServerConnection | None = None

    def run(self, jobs: Sequence[Job[Any]]) -> None:
        for job in jobs:
            try:
                self._one(job)
            finally:
                if self._connection is not None and self._connection.closed:
                    self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _one(self, job: Job[Any]) -> None:
        try:
            connection = self._begun()
        except psycopg.Error as error:
            job.error = DatabaseGone(first_line(error))
            return
        done = job.run(PostgresTransaction(connection))
        try:
            connection.execute("COMMIT" if done else "ROLLBACK")
        except psycopg.Error as error:
            self.close()
            if done:
                job.error = DatabaseGone(f"it is not known whether this was written: {first_line(error)}")

    def _begun(self) -> ServerConnection:
        if self._connection is not None:
            try:
                self._connection.execute(self._begin)
                return self._connection
            except psycopg.Error:
                # It broke while nobody used it. Nothing was asked of it yet: another one will do.
                self.close()
        self._connection = connect(self._url)
        self._connection.execute(self._begin)
        return self._connection
