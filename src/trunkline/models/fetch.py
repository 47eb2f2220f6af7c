"""Pulling a model into the cache.

Only what has the pinned hash gets there, and it gets there whole: everything is put together in `KEY.partial` beside
the model's place, checked, and then moved. Whatever interrupts a pull, the next one goes on where it was. Two pulls of
one model at once wait for each other. Of a wheel only its data is read; its code is never run, nor unpacked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from trunkline.base import paths
from trunkline.base.extras import adding, install_hint
from trunkline.core.faults import ConfigError
from trunkline.models import catalog, fetch_files, fetch_http, fetch_index
from trunkline.models.catalog import Entry, File, Packaged, Part
from trunkline.models.fetch_http import Broken
from trunkline.models.fetch_index import Link, Places, shown

if TYPE_CHECKING:
    import httpx

R = TypeVar("R")

#: Called with what is being done, and how many of how many bytes are there.
Report = Callable[[str, int, int], None]

#: How often a pull looks whether another one of the same model is over.
LOCK_POLL_SECONDS = 0.2
#: Room on the disk beyond the model itself: a wheel that is being read, and some air.
SPARE_BYTES = 256 * 1024 * 1024


class PullFailed(ConfigError):
    """The model could not be had. The text says what was tried, and how to go on."""


async def pull(entry: Entry, report: Report | None = None, given: Sequence[str] = ()) -> str:
    """See to it that a model is there; gives the path of its first file.

    Args:
        entry: which.
        report: is told how it goes.
        given: files and directories to take it from, instead of an index: its wheels, or the finished files.

    Raises:
        PullFailed: it cannot be had.
        OSError: it cannot be written.
    """
    if entry.packaged is not None:
        return await _in_thread(_checked, entry.name, entry.packaged)
    if (path := catalog.installed(entry.name)) is not None:
        return path
    paths.ensure_dir(catalog.models_dir())
    work = _Pull(entry, report or (lambda what, done, total: None), given)
    async with _held(entry, work.report):
        if (path := catalog.installed(entry.name)) is not None:
            return path
        await work.run()
    return os.path.join(catalog.place(entry), entry.files[0].name)


async def remove(entry: Entry) -> bool:
    """Take a model from the cache, and what a broken pull left of it. Says whether there was anything.

    Raises:
        PullFailed: it is being pulled, or came with a package.
        OSError: it cannot be removed.
    """
    if entry.packaged is not None and entry.packaged.path() is not None:
        package = entry.packaged.package
        raise PullFailed(
            f"`{entry.name}` is a part of the package `{package}`.", hint=f"`pip uninstall {package}` removes it."
        )
    if not (_is_there(catalog.place(entry)) or partial(entry)):
        return False
    async with _held(entry, None):
        await _in_thread(fetch_files.remove, catalog.place(entry))
        await _in_thread(fetch_files.remove, _stage(entry))
    return True


def partial(entry: Entry) -> bool:
    """Whether a pull was begun and not finished."""
    return _is_there(_stage(entry))


def _is_there(folder: str) -> bool:
    return os.path.isdir(folder)


class _Pull:
    """One run of `pull`, under the lock."""

    def __init__(self, entry: Entry, report: Report, given: Sequence[str]) -> None:
        self.entry = entry
        self.report = report
        self.given = given
        self.stage = _stage(entry)
        self.places = fetch_index.places()
        self.client: httpx.AsyncClient | None = None
        # Bytes of the wheels that are done with, and which those are.
        self.fetched = 0
        self.counted: set[str] = set()
        # Wheels that hold more than one part: their hashes, and where they are kept until all are taken.
        self.shared = _shared(entry)
        self.kept: dict[str, str] = {}
        # Why finished files that were given are not the ones.
        self.refused: list[str] = []

    async def run(self) -> None:
        paths.ensure_dir(self.stage)
        self._see_to_room()
        try:
            for file in self.entry.files:
                await self._build(file)
        finally:
            if self.client is not None:
                await self.client.aclose()
        await _in_thread(
            fetch_files.publish, self.stage, catalog.place(self.entry), [file.name for file in self.entry.files]
        )

    def _see_to_room(self) -> None:
        import shutil

        there = sum(item.stat().st_size for item in os.scandir(self.stage))
        free = shutil.disk_usage(self.stage).free
        if free < (needed := self.entry.size + SPARE_BYTES - there):
            raise PullFailed(
                f"`{self.entry.name}` needs {needed // 10**6} MB in `{catalog.models_dir()}`, and {free // 10**6} MB "
                "are free.",
                hint="Make room, or set `TRUNKLINE_CACHE` to a directory elsewhere.",
            )

    async def _build(self, file: File) -> None:
        path = os.path.join(self.stage, file.name)
        if not await _in_thread(fetch_files.take_whole, file, path, self.given, self.refused):
            done = fetch_files.parts_done(file, path)
            self._count(file.parts[:done])
            for part in file.parts[done:]:
                await self._add(part, path)
        self._say("checking")
        digest = await _in_thread(fetch_files.sha256, path)
        if digest != file.sha256:
            os.remove(path)
            raise PullFailed(
                f"What was put together for `{file.name}` has the SHA-256 {digest}, not {file.sha256}; it was deleted.",
                hint="Try again.",
            )

    async def _add(self, part: Part, path: str) -> None:
        kept = self.kept.get(part.wheel_sha256)
        wheel, is_ours = (kept, True) if kept is not None else await self._wheel(part)
        self._count((part,))
        self._say("unpacking")
        try:
            await _in_thread(fetch_files.append, wheel, part, path)
        except ValueError as error:
            raise PullFailed(str(error)) from None
        if is_ours and part.wheel_sha256 in self.shared:
            # It goes with all else that is left when the model is whole.
            self.kept[part.wheel_sha256] = wheel
        elif is_ours:
            os.remove(wheel)

    def _count(self, parts: Sequence[Part]) -> None:
        """Take note that the wheels of some parts are done with."""
        for part in parts:
            if part.wheel_sha256 not in self.counted:
                self.counted.add(part.wheel_sha256)
                self.fetched += part.wheel_size

    def _say(self, what: str) -> None:
        self.report(what, min(self.fetched, self.entry.download), self.entry.download)

    async def _wheel(self, part: Part) -> tuple[str, bool]:
        """The path of a wheel that has the pinned hash, and whether it is ours to remove."""
        tried = [*self.refused]
        folders = self.given or [place for place in self.places.find_links if "://" not in place]
        for path in fetch_files.candidates(part, folders):
            digest = await _in_thread(fetch_files.sha256, path)
            if digest == part.wheel_sha256:
                return path, False
            tried.append(fetch_files.other(path, digest, part.wheel_sha256))
        if not self.given:
            for place, is_index in _addresses(self.places):
                url = fetch_index.page(place, part.package) if is_index else place
                try:
                    return await self._fetched(part, url), True
                except Broken as error:
                    tried.append(f"{shown(url)}: {error}")
        raise self._failed(part, tried)

    async def _fetched(self, part: Part, page: str) -> str:
        """Fetch a wheel that a page lists."""
        if self.client is None:
            self.client = _client(self.places)
        link = _choose(part, *await fetch_http.get_page(self.client, page))
        path = os.path.join(self.stage, f"{part.wheel_sha256[:16]}.whl")
        begun = await _in_thread(os.path.exists, path)
        digest = await self._downloaded(self.client, part, link, path)
        if digest != part.wheel_sha256 and begun:
            # What was there before may be to blame, and not what came now.
            digest = await self._downloaded(self.client, part, link, path)
        if digest != part.wheel_sha256:
            raise Broken(f"`{link.name}` has the SHA-256 {digest}, not {part.wheel_sha256}; it was deleted")
        return path

    async def _downloaded(self, client: httpx.AsyncClient, part: Part, link: Link, path: str) -> str:
        """Complete a wheel at `path`; gives its hash. If that is the wrong one, the file is gone."""
        before = self.fetched
        what = f"fetching {part.wheel}"

        def arrived(done: int) -> None:
            self.report(what, before + done, self.entry.download)

        await fetch_http.download(client, link.url, path, part.wheel_size, arrived)
        digest = await _in_thread(fetch_files.sha256, path)
        if digest != part.wheel_sha256:
            os.remove(path)
        return digest

    def _failed(self, part: Part, tried: list[str]) -> PullFailed:
        name = self.entry.name
        if self.given and not tried:
            return PullFailed(
                f"`{part.wheel}` is not among the files given for `{name}`.", hint="Give all its wheels, or none."
            )
        if self.given:
            return PullFailed(
                f"`{name}` cannot be taken from what was given: {'; '.join(tried)}.",
                hint="Get the file again, or leave `--from` out.",
            )
        said = "; ".join(tried) or "no index is configured (`no-index`)"
        return PullFailed(
            f"`{name}` could not be fetched. Tried: {said}.",
            hint="Check the network, the proxy and pip's settings (`pip config list`) and try again, or get "
            f"`{part.wheel}` some other way and run `trunkline models pull {name} --from FILE`.",
            retryable=True,
        )


def _shared(entry: Entry) -> set[str]:
    """The hashes of wheels that hold more than one part of a model."""
    wheels = [part.wheel_sha256 for file in entry.files for part in file.parts]
    return {wheel for wheel in wheels if wheels.count(wheel) > 1}


def _checked(name: str, packaged: Packaged) -> str:
    """The path of a model that came with a package, if it is what it should be."""
    folder, path = packaged.folder(), packaged.path()
    if folder is None or path is None:
        raise PullFailed(
            f"`{name}` is a part of the package `{packaged.package}`, which is not installed.",
            hint=adding(packaged.extra),
        )
    for member, expected in packaged.pins:
        digest = fetch_files.sha256(os.path.join(folder, member))
        if digest != expected:
            raise PullFailed(
                f"`{name}`: {fetch_files.other(os.path.join(folder, member), digest, expected)}.",
                hint=f"Install `{packaged.package}` again: `{install_hint(packaged.extra)}`.",
            )
    return path


def _client(places: Places) -> httpx.AsyncClient:
    try:
        return fetch_http.make_client(places)
    except ValueError as error:
        raise PullFailed(str(error)) from None


def _addresses(places: Places) -> list[tuple[str, bool]]:
    """Where to ask, and whether that is an index; else it is a page that lists files."""
    pages = [(place, False) for place in places.find_links if "://" in place]
    return pages + [(index, True) for index in places.indexes]


def _choose(part: Part, body: bytes, content_type: str, url: str) -> Link:
    """The link to the pinned wheel; where a page tells no hashes, that of the right name."""
    try:
        links = fetch_index.links(body, content_type, url)
    except ValueError as error:
        raise Broken(str(error)) from None
    for link in links:
        if link.sha256 == part.wheel_sha256:
            return link
    named = [link for link in links if link.name == part.wheel]
    if not named:
        raise Broken(f"`{part.wheel}` is not listed")
    if named[0].sha256 is not None:
        raise Broken(f"`{part.wheel}` is listed with the SHA-256 {named[0].sha256}, not {part.wheel_sha256}")
    return named[0]


def _stage(entry: Entry) -> str:
    return catalog.place(entry) + ".partial"


@asynccontextmanager
async def _held(entry: Entry, report: Report | None) -> AsyncIterator[None]:
    """The lock of a model. Its file stays: to remove it would let in somebody who has opened it already.

    Without somebody to report to, it is not waited for.
    """
    import fcntl

    fd = os.open(catalog.place(entry) + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if report is None:
                    raise PullFailed(f"`{entry.name}` is being pulled.", hint="Stop that first.") from None
                report("waiting for another pull of the same model", 0, entry.download)
            await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(fd)


async def _in_thread(function: Callable[..., R], *arguments: object) -> R:
    """Run it in a thread; cancelled or not, it is over when this returns, so that the lock is not given up too soon."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
