"""A PostgreSQL database as one file, and back, by PostgreSQL's own programs.

Passwords go to them by their environment, which only this user can read; command lines can be read by everybody.
"""

from __future__ import annotations

import asyncio
import glob
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trunkline.base.process import SpawnError, child_env
from trunkline.base.process_async import spawn_async
from trunkline.base.programs import find_program
from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError
from trunkline.store.database.postgres import CONNECT_SECONDS, connect, first_line

#: Where Debian has the programs of each version. What it has on the `PATH` chooses among servers of this machine.
_DEBIAN = "/usr/lib/postgresql/*/bin"
_DEBIAN_CHOOSER = "pg_wrapper"

#: How often is looked how much there is.
LOOK_SECONDS = 0.25

#: What a URL can hold that nobody else may see, and that the programs take only from the command line.
_SECRETS = ("sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")


async def dump_database(url: str, path: str, done: Callable[[int], None] = lambda count: None) -> None:
    """Write a database, as it is at one moment, to a file that exists. Others may use it meanwhile.

    Raises:
        ConfigError: `pg_dump` is missing or fails. The text has no password in it.
    """
    # Into one that exists: then its permissions are ours to choose.
    arguments = ["--format=custom", "--no-password", f"--file={path}"]
    await _run("pg_dump", arguments, url, lambda: done(_size(path)))
    done(_size(path))


async def restore_database(url: str, path: str) -> None:
    """Put what was dumped in the place of the tables of the same names: all of it or, if it fails, nothing.

    They belong to the user of the URL, who need not be the one of before.

    Raises:
        ConfigError: `pg_restore` is missing or fails. The text has no password in it.
    """
    arguments = ["--clean", "--if-exists", "--single-transaction", "--no-owner", "--no-privileges", "--no-password"]
    await _run("pg_restore", arguments, url, lambda: None, path)


def find_tools() -> None:
    """See that the programs are here, before anything is changed.

    Raises:
        ConfigError: one is missing.
    """
    for name in ("pg_dump", "pg_restore"):
        _program(name)


async def count_rows(url: str, table: str) -> int:
    """How many rows a table has; none if there is no such table.

    Raises:
        ConfigError: the database cannot be used. The text has no password in it.
    """
    return await asyncio.to_thread(_count, url, table)


def _count(url: str, table: str) -> int:
    _, password = _address(url)
    try:
        with connect(url) as connection:
            if connection.execute("SELECT 1 WHERE to_regclass(%s) IS NOT NULL", (table,)).fetchone() is None:
                return 0
            row = connection.execute(f"SELECT count(*) AS rows FROM {table}").fetchone()  # noqa: S608  (a name of ours)
            return int(row["rows"]) if row else 0
    except psycopg.Error as error:
        told = Redactor((password,)).text(first_line(error))
        raise ConfigError(
            f"The PostgreSQL database cannot be used: {told.rstrip('.')}.",
            hint="Check that the server runs, and that the URL is right.",
        ) from None


async def _run(name: str, arguments: Sequence[str], url: str, look: Callable[[], None], *more: str) -> None:
    address, password = _address(url)
    program = _program(name)
    try:
        child = await spawn_async(
            [program, *arguments, f"--dbname={address}", *more], env=_environment(password), stdout="null"
        )
    except SpawnError as error:
        raise ConfigError(f"`{name}` cannot be run: {error.message}.", hint=error.hint) from None
    async with child:
        said = child.keep_stderr_tail()
        ending = asyncio.ensure_future(child.wait())
        try:
            while not (await asyncio.wait({ending}, timeout=LOOK_SECONDS))[0]:
                look()
        finally:
            ending.cancel()
        await child.drained()
    if code := ending.result():
        told = Redactor((password,)).text(" ".join(said.text().split())) or f"exit code {code}"
        raise ConfigError(
            f"`{name}` failed: {told.rstrip('.')}.",
            hint=f"It must be of the server's version or a newer one; this one is `{program}`.",
        )


def _program(name: str) -> str:
    found = find_program(name)
    if found is not None and os.path.basename(os.path.realpath(found)) != _DEBIAN_CHOOSER:
        return found
    versions = [path for path in glob.glob(os.path.join(_DEBIAN, name)) if os.access(path, os.X_OK)]
    newest = max(versions, key=lambda path: [int(number) for number in re.findall(r"\d+", path)], default=found)
    if newest is None:
        raise ConfigError(
            f"There is no `{name}` here.",
            hint="Install PostgreSQL's client programs, such as Debian's package `postgresql-client`.",
        )
    return newest


def _address(url: str) -> tuple[str, str]:
    """The database without its password, for a command line; and the password."""
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        # What the library says about it quotes the place, which may be the password.
        raise ConfigError("The URL of the PostgreSQL database cannot be read.") from None
    password = str(parts.pop("password", None) or "")
    if secret := next((each for each in _SECRETS if parts.get(each)), None):
        raise ConfigError(
            f"The URL of the PostgreSQL database holds `{secret}`, which `pg_dump` would show to everybody here.",
            hint="Name the database by a URL without it for this command.",
        )
    return make_conninfo(**parts), password


def _environment(password: str) -> Mapping[str, str]:
    # In English, for whoever reads the error, or asks others about it.
    extra = {"PGCONNECT_TIMEOUT": str(CONNECT_SECONDS), "PGAPPNAME": "trunkline", "LC_ALL": "C"}
    return child_env(extra=extra | ({"PGPASSWORD": password} if password else {}))


def _size(path: str) -> int:
    with suppress(OSError):
        return os.path.getsize(path)
    return 0
