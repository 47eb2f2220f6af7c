"""The files of models: where they are, how they get there, and how they go.

Built-in models lie in the cache that `trunkline models pull` fills. Others are fetched into a folder of their own,
`OWNER--REPOSITORY`, in the models folder; `downloads.json` there lists what was fetched, from where, and the SHA-256 of
its files. What it lists is whole: files are put together in a folder that ends in `.partial`, checked, and then moved.
A download that broke off goes on from there. What was fetched for an entry that has another source, other files or
other hashes by now is as good as not here: it goes when something else is fetched in its place, or is deleted.

What earlier versions have listed has neither source nor hashes. Its folder tells the repository, but no address. Where
the entry has hashes, its files count as right until somebody needs them: then a thread reads them, once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.catalog import OPENAI, ModelEntry
from trunkline.agents.graph.downloads import Downloads, Record, remove_empty
from trunkline.base import paths
from trunkline.core.faults import DownloadActive, DownloadFailed, Fault, ModelError, NoSpace
from trunkline.core.graph.ordinals import InferenceEngine, ModelStatus
from trunkline.models import catalog, fetch, fetch_http, fetch_index

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

#: Called with the bytes that are there, and the bytes that there will be.
Progress = Callable[[int, int], None]

#: Bytes that are read at once for a hash: after each it is seen whether somebody still waits for it.
HASHED_AT_ONCE = 1 << 20

#: Where repositories are, unless `HF_ENDPOINT` names a mirror.
HUB = "https://huggingface.co"

_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')
_UNSAFE = re.compile(r"[^\w.-]+")


class Weights:
    """The files of all models of a server."""

    def __init__(self, folder: str) -> None:
        # Clients are told it, and know nothing of the folder that the server was started in.
        self.folder = os.path.abspath(folder)
        self._downloads = Downloads(self.folder)
        # The hashes of what was listed without, by the name of the model: the list may be one that cannot be written.
        self._hashed: dict[str, list[str]] = {}

    def path(self, entry: ModelEntry) -> str | None:
        """The file that an engine is pointed at; None when it is not here. The other files are beside it."""
        if entry.built_in is not None:
            return catalog.installed(entry.name)
        return self._local(entry) or self._downloaded(entry) or self._legacy(entry)

    def status(self, entry: ModelEntry) -> int:
        """Whether it is here, and who brought it."""
        if entry.engine == OPENAI:
            return ModelStatus.LOCAL
        if entry.built_in is not None:
            # What came with the package of its engine was not downloaded, and is not deleted.
            here = ModelStatus.LOCAL if entry.built_in.packaged is not None else ModelStatus.DOWNLOADED
            return here if self.path(entry) else ModelStatus.ABSENT
        if not self._local(entry) and self._downloaded(entry):
            return ModelStatus.DOWNLOADED
        return ModelStatus.LOCAL if self.path(entry) else ModelStatus.ABSENT

    def size(self, entry: ModelEntry) -> int:
        """Bytes on the disk."""
        first = self.path(entry)
        if first is None:
            return 0
        if entry.built_in is not None:
            return entry.built_in.size
        others = [os.path.join(os.path.dirname(first), os.path.basename(file)) for file in entry.files[1:]]
        return sum(os.path.getsize(path) for path in (first, *others) if os.path.isfile(path))

    def _local(self, entry: ModelEntry) -> str | None:
        if not entry.local_path:
            return None
        path = os.path.join(self.folder, entry.local_path)
        if entry.files and os.path.isdir(path):
            path = os.path.join(path, entry.files[0])
        return path if os.path.isfile(path) else None

    def _legacy(self, entry: ModelEntry) -> str | None:
        path = os.path.join(self.folder, entry.path)
        return path if entry.path and os.path.isfile(path) else None

    def _downloaded(self, entry: ModelEntry) -> str | None:
        if self._record(entry) is None:
            return None
        files = [os.path.join(self._place(entry), file) for file in entry.files]
        return files[0] if all(map(os.path.isfile, files)) else None

    def _place(self, entry: ModelEntry) -> str:
        """The folder of what is fetched for an entry."""
        if "://" not in entry.source:
            return os.path.join(self.folder, entry.source.replace("/", "--"))
        return os.path.join(self.folder, f"url--{_safe(entry.name)}")

    def _stage(self, entry: ModelEntry) -> str:
        """The folder in which that is put together. Two entries may have files of one repository."""
        return f"{self._place(entry)}.{_safe(entry.name)}.partial"

    def _record(self, entry: ModelEntry) -> Record | None:
        """What is listed of an entry as it is today."""
        if entry.built_in is not None or not entry.source:
            return None
        return next((each for each in self._downloads.all() if self._is_of(each, entry)), None)

    def _is_of(self, record: Record, entry: ModelEntry) -> bool:
        if (record.get("name"), record.get("files")) != (entry.name, list(entry.files)):
            return False
        if "source" in record:
            same = bool(record["source"] == entry.source)
        elif "://" in entry.source:
            # Only its hashes can tell whether it came from there.
            same = bool(entry.sha256)
        else:
            same = bool(record.get("folder") == os.path.basename(self._place(entry)))
        hashes = self._hashes(record)
        return same and (not entry.sha256 or hashes is None or hashes == list(entry.sha256))

    def _hashes(self, record: Record) -> Any:
        return record["sha256"] if "sha256" in record else self._hashed.get(str(record.get("name")))

    # Fetching.

    async def verify(self, entry: ModelEntry) -> None:
        """Before files are used that were listed without their hashes: see whether they are those of the entry."""
        record = self._record(entry)
        if record is None or not entry.sha256 or self._hashes(record) is not None:
            return
        logger.info("`%s` was downloaded by an earlier version; its files are read once", entry.name)
        try:
            hashes = [await _hash(os.path.join(self._place(entry), file)) for file in entry.files]
        except OSError:
            # They cannot be loaded either, and whoever tries says why.
            return
        self._hashed[entry.name] = hashes
        more = {"sha256": hashes} | ({"source": entry.source} if hashes == list(entry.sha256) else {})
        with suppress(OSError):
            self._downloads.write([each | more if each == record else each for each in self._downloads.all()])

    async def fetch(self, entry: ModelEntry, progress: Progress) -> None:
        """See to it that a model is here.

        Raises:
            ModelError: nobody has it.
            DownloadFailed: there is no room, or it did not work.
        """
        await self.verify(entry)
        if self.path(entry) is not None:
            return
        if entry.built_in is None and not entry.source:
            raise ModelError(f"The model `{entry.name}` has no source to download it from.")
        try:
            if entry.built_in is not None:
                await self._pull(entry.built_in, progress)
            else:
                try:
                    await self._fetch(entry, progress)
                finally:
                    # What was fetched for nothing is gone, and so are its folders.
                    remove_empty(self._stage(entry))
        except (Fault, fetch_http.Broken, ValueError) as error:
            raise DownloadFailed(f"The model `{entry.name}` could not be downloaded: {error}") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DownloadFailed(f"The model `{entry.name}` could not be written: {reason}.") from None

    async def _pull(self, wanted: catalog.Entry, progress: Progress) -> None:
        paths.ensure_dir(catalog.models_dir())
        _see_to_room(wanted.name, catalog.models_dir(), wanted.size)
        try:
            await fetch.pull(wanted, lambda what, done, total: progress(done, total))
        finally:
            # A pull that got nothing leaves an empty folder, which would look like one that was begun.
            remove_empty(catalog.place(wanted) + ".partial")

    async def _fetch(self, entry: ModelEntry, progress: Progress) -> None:
        place, stage = self._place(entry), self._stage(entry)
        async with fetch_http.make_client(fetch_index.Places(())) as client:
            addresses = [_address(entry, file) for file in entry.files]
            offered = [await _offered(client, address) for address in addresses]
            total = sum(size for size, _ in offered)
            paths.ensure_dir(stage)
            _see_to_room(entry.name, stage, total)
            before = 0
            digests = []
            for number, (file, address, (size, digest)) in enumerate(zip(entry.files, addresses, offered, strict=True)):
                path = os.path.join(stage, file)
                paths.ensure_dir(os.path.dirname(path))
                await fetch_http.download(client, address, path, size, _after(before, total, progress))
                expected = entry.sha256[number] if entry.sha256 else digest
                digests.append(await _hash(path))
                if expected and digests[-1] != expected:
                    os.remove(path)
                    raise ValueError(f"`{file}` has not the SHA-256 {expected}; it was deleted.")
                before += size
                progress(before, total)
        await asyncio.to_thread(_publish, stage, place, entry.files)
        before_now = self._downloads.named(entry.name)
        record = {
            "name": entry.name,
            "engine": InferenceEngine.LLAMA_CPP,
            "folder": os.path.basename(place),
            "source": entry.source,
            "files": list(entry.files),
            "sha256": digests,
            "total_bytes": total,
        }
        self._downloads.replace(entry.name, record)
        # What was here under the name is not to be had any more.
        await asyncio.to_thread(self._downloads.remove_files, before_now)

    async def delete(self, entry: ModelEntry) -> None:
        """Remove what was fetched, also if the entry means something else by now.

        Raises:
            ModelError: nothing was, or it is not ours to remove.
            DownloadFailed: it cannot be removed.
        """
        status = self.status(entry)
        if status == ModelStatus.LOCAL:
            raise ModelError(f"The model `{entry.name}` was not downloaded, and is not deleted.")
        records = self._downloads.named(entry.name)
        if status == ModelStatus.ABSENT and (entry.built_in is not None or not records):
            raise ModelError(f"The model `{entry.name}` is not here.")
        try:
            if entry.built_in is not None:
                await fetch.remove(entry.built_in)
                return
            self._downloads.replace(entry.name)
            await asyncio.to_thread(self._downloads.remove_files, records)
        except Fault as error:
            raise DownloadActive(str(error)) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DownloadFailed(f"The model `{entry.name}` could not be deleted: {reason}.") from None


def _safe(name: str) -> str:
    """A name as part of a path. No two names are the same there."""
    from zlib import crc32

    return f"{_UNSAFE.sub('-', name).strip('.')}-{crc32(name.encode('utf-8', 'replace')):08x}"


def _after(before: int, total: int, progress: Progress) -> fetch_http.Arrived:
    """Progress of one file after others."""
    return lambda done: progress(before + done, total)


def _address(entry: ModelEntry, file: str) -> str:
    """Where a file of an entry is."""
    from urllib.parse import quote

    if "://" not in entry.source:
        hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
        return f"{hub}/{entry.source}/resolve/main/{quote(file)}"
    if len(entry.files) == 1 and not entry.source.endswith("/"):
        return entry.source
    return f"{entry.source.rstrip('/')}/{quote(file)}"


async def _offered(client: httpx.AsyncClient, address: str) -> tuple[int, str]:
    """The size of a file, and its hash where the server tells it.

    Raises:
        ValueError: it is not offered, or nobody says how long it is.
    """
    import httpx

    shown = fetch_index.shown(address)
    try:
        response = await client.head(address)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(f"{shown}: {str(error) or type(error).__name__}.") from None
    if response.status_code != 200:
        raise ValueError(f"{shown}: HTTP status {response.status_code}.")
    # A hub tells the hash where it sends us on to the file.
    headers = [each.headers for each in (*response.history, response)]
    sizes = [header["x-linked-size"] for header in headers if "x-linked-size" in header]
    size = (sizes or [response.headers.get("content-length", "")])[0]
    if not (size.isascii() and size.isdecimal()):
        raise ValueError(f"{shown}: the server does not say how long the file is.")
    digests = [found[1] for header in headers if (found := _SHA256.fullmatch(header.get("x-linked-etag", "")))]
    return int(size), (digests or [""])[0]


def _see_to_room(name: str, folder: str, size: int) -> None:
    import shutil

    free = shutil.disk_usage(folder).free
    if free < size + fetch.SPARE_BYTES:
        raise NoSpace(f"The model `{name}` needs {size // 10**6} MB in `{folder}`, and {free // 10**6} MB are free.")


def _publish(stage: str, place: str, files: tuple[str, ...]) -> None:
    """Move files to their place. Another entry may have some of the same repository there already."""
    import shutil

    for file in files:
        target = os.path.join(place, file)
        paths.ensure_dir(os.path.dirname(target))
        os.replace(os.path.join(stage, file), target)
    shutil.rmtree(stage)


async def _hash(path: str) -> str:
    """The SHA-256 of a file, read in a thread. It stops reading when nobody waits: else the end of a server would."""
    left = Event()
    try:
        return await asyncio.to_thread(_sha256, path, left)
    except asyncio.CancelledError:
        left.set()
        raise


def _sha256(path: str, left: Event) -> str:
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while not left.is_set() and (data := file.read(HASHED_AT_ONCE)):
            digest.update(data)
    return digest.hexdigest()
