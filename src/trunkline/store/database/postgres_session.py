"""One connection to a PostgreSQL database for callers in threads, who come one after the other.

For what waits for its answer in a thread anyway, as files do: `PostgresDatabase` serves callers in an event loop.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from trunkline.store.database import DatabaseGone
from trunkline.store.database.postgres import BEGIN_WRITE, PostgresTransaction, ServerConnection, connect, first_line


class PostgresSession:
    """The connection, made when it is first needed, and anew after it broke. Not for the thread of an event loop."""

    def __init__(self, url: str, schema: str = "") -> None:
        """Take over a database that `open_postgres` has made ready. `schema`: where its tables are, if not where new
        ones usually are."""
        self._url = url
        self._schema = schema
        self._turn = threading.Lock()
        self._connection: ServerConnection | None = None

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        """What is done within is kept whole, or not at all.

        Raises:
            Conflict: a key forbids it.
            DatabaseGone: it could not be written, or it is not known whether it was; the text says so.
        """
        with self._turn:
            connection = self._begun()
            transaction = PostgresTransaction(connection)
            try:
                yield transaction
                transaction.check()
            except BaseException:
                self._undo(connection)
                raise
            try:
                connection.execute("COMMIT")
            except psycopg.Error as error:
                self._let_go()
                raise DatabaseGone(f"it is not known whether this was written: {first_line(error)}") from None

    def break_off(self) -> None:
        """Have what is under way fail as if the server had gone. For another thread, which will not wait any longer."""
        connection = self._connection
        if connection is not None and not connection.closed:
            # The library must not be used by two threads at once; the system's socket may be.
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
                shared.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection, after what is under way. May be called again, and used again."""
        with self._turn:
            self._let_go()

    def _undo(self, connection: ServerConnection) -> None:
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            # The server undoes what a connection leaves behind.
            self._let_go()

    def _begun(self) -> ServerConnection:
        if self._connection is not None:
            try:
                self._connection.execute(BEGIN_WRITE)
                return self._connection
            except psycopg.Error:
                # It broke while nobody used it.
                self._let_go()
        try:
            self._connection = connect(self._url, self._schema)
            self._connection.execute(BEGIN_WRITE)
        except psycopg.Error as error:
            self._let_go()
            raise DatabaseGone(first_line(error)) from None
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
