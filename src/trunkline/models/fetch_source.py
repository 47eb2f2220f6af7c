"""Fetching a model whose files are on a hub, or at an address: as they are, checked against the hash that is known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trunkline.base import paths
from trunkline.core.faults import DownloadFailed
from trunkline.models import catalog, catalog_pulled, fetch_files, fetch_http, hub, local_gguf
from trunkline.models.catalog_entry import CatalogEntry, ModelFile
from trunkline.models.fetch_files import Report, in_thread
from trunkline.models.fetch_http import RequestFailed
from trunkline.models.fetch_index import IndexSettings, shown

if TYPE_CHECKING:
    import httpx


class SourceFetch:
    """One run, in the folder `stage`. `listed`: something was pulled from there before."""

    def __init__(self, entry: CatalogEntry, stage: str, report: Report, given: Sequence[str], *, listed: bool) -> None:
        self.entry = entry
        self.stage = stage
        self.report = report
        self.given = given
        self.listed = listed
        self.headers = hub.headers(entry)
        # Of small files of a hub, which have no SHA-256 there: the number that Git has for each.
        self.blobs: dict[str, str] = {}
        # Bytes of the files that are done with.
        self.fetched = 0

    async def run(self) -> CatalogEntry:
        """Fetch all files; gives the entry with all that is known of them now.

        Raises:
            DownloadFailed: it cannot be had.
            OSError: it cannot be written.
        """
        try:
            client = fetch_http.make_client(IndexSettings(()))
        except ValueError as error:
            raise DownloadFailed(str(error)) from None
        async with client:
            self.entry = self.entry.replace(
                files=tuple([await self._offered(client, each) for each in self.entry.files])
            )
            if self.entry.key and not self.listed:
                # So that what was begun can be seen, and removed.
                catalog_pulled.write(catalog.models_dir(), self.entry)
            fetch_files.see_to_room(self.entry.name, self.stage, self.entry.size)
            files = tuple([await self._fetched(client, each) for each in self.entry.files])
        return self._read(self.entry.replace(files=files))

    async def _offered(self, client: httpx.AsyncClient, file: ModelFile) -> ModelFile:
        """A file with what its server says of it. What the entry says of it comes first."""
        if file.sha256 and file.length:
            return file
        url = hub.address(self.entry, file)
        try:
            length, digest = await fetch_http.offered(client, url, self.headers)
        except RequestFailed as error:
            raise self._broken(error, url) from None
        if len(digest) == fetch_files.BLOB_DIGITS:
            if self.entry.repository:
                self.blobs[file.name] = digest
            digest = ""
        return file.replace(length=length, sha256=file.sha256 or digest)

    async def _fetched(self, client: httpx.AsyncClient, file: ModelFile) -> ModelFile:
        path = os.path.join(self.stage, file.name)
        paths.ensure_dir(os.path.dirname(path))
        begun = await in_thread(os.path.exists, path)
        taken: bool = bool(file.sha256) and await in_thread(fetch_files.take_whole, file, path, self.given, [])
        digest = file.sha256
        if not taken:
            digest = await self._downloaded(client, file, path)
            if file.sha256 not in ("", digest) and begun:
                # What was there before may be to blame, and not what came now.
                digest = await self._downloaded(client, file, path)
        if file.sha256 not in ("", digest):
            raise DownloadFailed(
                f"`{self.entry.name}`: what came for `{file.name}` has the SHA-256 {digest}, not {file.sha256}; "
                "it was deleted.",
                hint="Try again.",
            )
        self.fetched += file.length
        return file.replace(sha256=digest)

    async def _downloaded(self, client: httpx.AsyncClient, file: ModelFile, path: str) -> str:
        """Complete a file; gives its hash. If that is the wrong one, the file is gone."""
        url = hub.address(self.entry, file)
        before, total = self.fetched, self.entry.download

        def arrived(done: int) -> None:
            self.report(f"fetching {file.name}", before + done, total)

        try:
            await fetch_http.download(client, url, path, file.length, arrived, self.headers)
        except RequestFailed as error:
            raise self._broken(error, url) from None
        self.report("checking", before + file.length, total)
        blob = self.blobs.get(file.name)
        if blob is not None and (found := await in_thread(fetch_files.git_blob, path)) != blob:
            os.remove(path)
            raise DownloadFailed(
                f"`{self.entry.name}`: what came for `{file.name}` has the number {found} in Git, not {blob}; "
                "it was deleted.",
                hint="Try again.",
            )
        digest = await in_thread(fetch_files.sha256, path)
        if file.sha256 not in ("", digest):
            os.remove(path)
        return digest

    def _broken(self, error: RequestFailed, url: str) -> DownloadFailed:
        if self.entry.repository and error.status in (401, 403):
            return hub.refused(error, self.entry.repository)
        return DownloadFailed(f"{shown(url)}: {error}.", retryable=True)

    def _read(self, entry: CatalogEntry) -> CatalogEntry:
        """An entry with what its file says of itself, where nobody else did."""
        if not entry.files[0].name.endswith(".gguf"):
            return entry
        try:
            facts = local_gguf.facts(os.path.join(self.stage, entry.files[0].name))
        except (OSError, ValueError):
            return entry
        context = entry.context if entry.context is not None else facts.context
        return entry.replace(context=context, kv_bytes=entry.kv_bytes or facts.kv_bytes or 0)
