"""A backup of a cluster: a directory with the rows, the events, and a manifest that makes it one.

    manifest.json     what it is of, when, and the SHA-256 of the others; written last
    rows.dump         the PostgreSQL database, as `pg_dump` writes it
    events.snapshot   the stream, as JetStream's servers write it

The two stores are not read at the same moment, so the order counts: the rows first, the events after them. Rows that
are behind their log are corrected when a session is opened (`SessionOpening.take_up`): what the log has and they do not
is added to them. Rows that are ahead of it are not: they would tell of turns that no log knows.

Restored in the same order, for another reason: the database takes all of it or nothing, and fails before anything is
lost; the stream must be removed first.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal

from trunkline.base import jsontext, paths, replacing, shapes
from trunkline.base.values import Value
from trunkline.chat.delivery.shared import forget_fences
from trunkline.core.faults import ConfigError, StoreUnavailable
from trunkline.exchange.cluster.nodes import ClusterNode, Nodes
from trunkline.exchange.settings import ClusterSettings
from trunkline.store import durable
from trunkline.store.database import dumping
from trunkline.store.jetstream.errors import StreamError
from trunkline.store.jetstream.snapshot import StreamSnapshot, restore_stream, save_stream, stream_size
from trunkline.store.jetstream.stream import LEASE_SECONDS, SessionStream

#: Of the directory's form. A newer one is refused.
VERSION = 1

MANIFEST, ROWS, EVENTS = "manifest.json", "rows.dump", "events.snapshot"
#: A manifest is a few hundred bytes; what is longer is not one.
MOST_MANIFEST_BYTES = 1 << 20

Part = Literal["rows", "events"]
#: Told what is being done, how many bytes of it are done, and of how many about; 0: nobody knows.
Report = Callable[[Part, int, int], None]


class BackupFile(Value):
    """One of the files."""

    bytes: int
    sha256: str


class ClusterBackup(Value):
    """The manifest."""

    version: int
    cluster: str
    """The name of the cluster: the stream is called after it."""
    made_at: str
    rows: BackupFile
    events: BackupFile
    config: Mapping[str, Any]
    """The stream's, as the servers say it."""
    state: Mapping[str, Any]

    @property
    def snapshot(self) -> StreamSnapshot:
        """What the servers want to hear when the stream is restored."""
        return StreamSnapshot(self.config, self.state)


async def back_up(
    settings: ClusterSettings, directory: str, report: Report = lambda part, done, total: None
) -> ClusterBackup:
    """Write a backup into a directory, which is made. The exchanges may run meanwhile. What fails leaves nothing.

    Raises:
        ConfigError: there is something in the directory, a server does not answer, or `pg_dump` fails.
        StreamGone, StreamRefused: the stream cannot be read.
        OSError: the directory cannot be written.
    """
    dumping.find_tools()
    made = _emptied(directory)
    rows, events, manifest = (os.path.join(directory, name) for name in (ROWS, EVENTS, MANIFEST))
    try:
        found = await _save(settings, rows, events, report)
        backup = ClusterBackup(
            VERSION,
            settings.name,
            datetime.now(UTC).isoformat(timespec="seconds"),
            await asyncio.to_thread(_described, rows),
            await asyncio.to_thread(_described, events),
            found.config,
            found.state,
        )
        # Last, and in one step: without it, the rest is not a backup.
        await asyncio.to_thread(_write_manifest, manifest, backup)
    except BaseException:
        for path in (manifest, rows, events):
            with suppress(OSError):
                os.unlink(path)
        for path in reversed(made):
            with suppress(OSError):
                os.rmdir(path)
        raise
    return backup


async def _save(settings: ClusterSettings, rows: str, events: str, report: Report) -> StreamSnapshot:
    """Both files, the rows first: see above."""
    async with SessionStream.opened(settings.nats, name=settings.name) as stream:
        _new(rows).close()
        await dumping.dump_database(settings.postgres, rows, lambda done: report("rows", done, 0))
        _, total = await stream_size(stream)
        with _new(events) as file:
            found = await save_stream(stream, file, lambda done: report("events", done, total))
            file.flush()
            await asyncio.to_thread(durable.sync_data, file.fileno())
    return found


async def restore(
    settings: ClusterSettings,
    directory: str,
    *,
    force: bool = False,
    report: Report = lambda part, done, total: None,
) -> ClusterBackup:
    """Put a backup in the place of what the cluster has. No exchange may run. Turns that were in progress when it was
    made end `unknown` when their sessions are next opened: their owners are not alive any more.

    Args:
        force: also if there are sessions, which are lost.

    Raises:
        ConfigError: it is not a whole backup of this cluster, an exchange runs, or there are sessions; nothing has
            changed. Or a server does not answer, or `pg_restore` fails: then the rows have not changed.
        StoreUnavailable: the rows are restored, and the events are not.
    """
    backup = await asyncio.to_thread(read_backup, directory)
    if backup.cluster != settings.name:
        raise ConfigError(
            f"This is a backup of the cluster `{backup.cluster}`, and the file names `{settings.name}`.",
            hint="Set `name` in the section `[cluster]`: the stream is called after it.",
        )
    dumping.find_tools()
    async with SessionStream.opened(settings.nats, name=settings.name) as stream:
        await _check_stopped(stream)
        if not force:
            await _check_empty(settings, stream)
        report("rows", 0, backup.rows.bytes)
        await dumping.restore_database(settings.postgres, os.path.join(directory, ROWS))
        report("rows", backup.rows.bytes, backup.rows.bytes)
        with _existing(os.path.join(directory, EVENTS)) as file:
            try:
                await restore_stream(
                    stream, file, backup.snapshot, lambda done: report("events", done, backup.events.bytes)
                )
                # The database may know of higher ones.
                await asyncio.to_thread(forget_fences, settings.postgres)
            except (StreamError, OSError, ConfigError) as error:
                raise StoreUnavailable(
                    f"The rows are restored, and the events are not: {error}",
                    hint="Start no exchange before you have run this again with `--force`.",
                ) from error
    return backup


def read_backup(directory: str) -> ClusterBackup:
    """The manifest of a backup that is whole: its files are what was written. Reads all of them.

    Raises:
        ConfigError: it is not.
    """
    path = os.path.join(directory, MANIFEST)
    try:
        with open(path, "rb") as file:
            data = jsontext.loads(file.read(MOST_MANIFEST_BYTES))
        # Before the rest: a newer form may have another.
        version = data.get("version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise ConfigError(f"The backup `{directory}` was made by a newer version.", hint="Upgrade Trunkline.")
        backup = shapes.decode(ClusterBackup, data)
    except FileNotFoundError:
        raise ConfigError(
            f"There is no backup in `{directory}`: `{MANIFEST}` is missing.", hint="It is written last."
        ) from None
    except ValueError as error:
        raise ConfigError(f"The manifest `{path}` cannot be read: {error}.") from None
    for name, told in ((ROWS, backup.rows), (EVENTS, backup.events)):
        try:
            found = _described(os.path.join(directory, name))
        except FileNotFoundError:
            raise ConfigError(f"The backup is not whole: `{name}` is missing.") from None
        if found != told:
            raise ConfigError(
                f"The backup is damaged: `{name}` is not what was written.", hint="Use another copy of it."
            )
    return backup


# What must be so before anything is restored.


async def _check_stopped(stream: SessionStream) -> None:
    nodes = Nodes(stream, ClusterNode("", ""))
    await nodes.look()
    if nodes.others:
        names = ", ".join(f"`{name}`" for name in sorted(nodes.others))
        raise ConfigError(
            f"Exchanges of this cluster are running: {names}.",
            hint=f"Stop all of them. One that was killed counts as running for {LEASE_SECONDS:.0f} seconds.",
        )


async def _check_empty(settings: ClusterSettings, stream: SessionStream) -> None:
    rows = await dumping.count_rows(settings.postgres, "session")
    messages, _ = await stream_size(stream)
    if rows or messages:
        raise ConfigError(
            f"This cluster has sessions already: {rows:,} in PostgreSQL, and {messages:,} messages in NATS.",
            hint="Back them up, and use `--force` to replace them.",
        )


# Files.


def _emptied(directory: str) -> tuple[str, ...]:
    """A private directory with nothing in it; gives those that had to be made."""
    made = paths.ensure_dir(directory)
    if os.listdir(directory):
        raise ConfigError(f"There is something in `{directory}` already.", hint="Name a new directory.")
    # One of somebody who shares it with us keeps its permissions; the files are private in any case.
    with suppress(PermissionError):
        os.chmod(directory, paths.PRIVATE_DIR)
    return made


def _new(path: str) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, replacing.PRIVATE_FILE), "wb")


def _existing(path: str) -> BinaryIO:
    return open(path, "rb")


def _described(path: str) -> BackupFile:
    with open(path, "rb") as file:
        return BackupFile(os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _write_manifest(path: str, backup: ClusterBackup) -> None:
    directory = os.path.dirname(path)
    durable.sync_directory(directory)
    replacing.replace_private(path, jsontext.dumps(shapes.encode(backup)) + b"\n")
    durable.sync_directory(directory)
