"""The files of models: where they are, how they get there, and how they go.

Built-in models lie in the cache that `trunkline models pull` fills. Others are fetched into a folder of their own,
`OWNER--REPOSITORY`, in the models folder; `downloads.json` there lists what was fetched, from where, and the SHA-256 of
its files. What it lists is whole: files are put together in a folder that ends in `.partial`, checked, and then moved.
A download that broke off goes on from there. What was fetched for an entry that has another source, other files or
other hashes by now is as good as not here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.catalog import OPENAI, ModelEntry
from trunkline.base import jsontext, paths
from trunkline.core.faults import Fault
from trunkline.models import catalog, fetch, fetch_http, fetch_index
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import InferenceEngine, ModelStatus

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

#: Called with the bytes that are there, and the bytes that there will be.
Progress = Callable[[int, int], None]

LEDGER = "downloads.json"
#: The longest list of downloads that is read.
MAX_LEDGER_BYTES = 1 << 20

#: Where repositories are, unless `HF_ENDPOINT` names a mirror.
HUB = "https://huggingface.co"

_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')
_UNSAFE = re.compile(r"[^\w.-]+")


class Weights:
    """The files of all models of a server."""

    def __init__(self, folder: str) -> None:
        # Clients are told it, and know nothing of the folder that the server was started in.
        self.folder = os.path.abspath(folder)
        # The list of downloads as it was when its file was in that state: it is asked for with every model.
        self._read: list[dict[str, Any]] = []
        self._read_state: tuple[int, ...] = ()

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
        if not entry.source or not any(_is_of(each, entry) for each in self._ledger()):
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

    # Fetching.

    async def fetch(self, entry: ModelEntry, progress: Progress) -> None:
        """See to it that a model is here.

        Raises:
            TryllError: 6002, nobody has it; 6003, no room; 6001, it did not work.
        """
        if self.path(entry) is not None:
            return
        if entry.built_in is None and not entry.source:
            raise TryllError(6002, f"The model `{entry.name}` has no source to download it from.")
        try:
            if entry.built_in is not None:
                await self._pull(entry.built_in, progress)
            else:
                try:
                    await self._fetch(entry, progress)
                finally:
                    # What was fetched for nothing is gone, and so are its folders.
                    _remove_empty(self._stage(entry))
        except (Fault, fetch_http.Broken, ValueError) as error:
            raise TryllError(6001, f"The model `{entry.name}` could not be downloaded: {error}") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TryllError(6001, f"The model `{entry.name}` could not be written: {reason}.") from None

    async def _pull(self, wanted: catalog.Entry, progress: Progress) -> None:
        paths.ensure_dir(catalog.models_dir())
        _see_to_room(wanted.name, catalog.models_dir(), wanted.size)
        try:
            await fetch.pull(wanted, lambda what, done, total: progress(done, total))
        finally:
            # A pull that got nothing leaves an empty folder, which would look like one that was begun.
            _remove_empty(catalog.place(wanted) + ".partial")

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
                digests.append(await asyncio.to_thread(_sha256, path))
                if expected and digests[-1] != expected:
                    os.remove(path)
                    raise ValueError(f"`{file}` has not the SHA-256 {expected}; it was deleted.")
                before += size
                progress(before, total)
        await asyncio.to_thread(_publish, stage, place, entry.files)
        self._list(entry, total, digests)

    async def delete(self, entry: ModelEntry) -> None:
        """Remove what was fetched.

        Raises:
            TryllError: 6002, nothing was, or it is not ours to remove; 6001, it cannot be removed.
        """
        status = self.status(entry)
        if status == ModelStatus.LOCAL:
            raise TryllError(6002, f"The model `{entry.name}` was not downloaded, and is not deleted.")
        if status == ModelStatus.ABSENT:
            raise TryllError(6002, f"The model `{entry.name}` is not here.")
        try:
            if entry.built_in is not None:
                await fetch.remove(entry.built_in)
                return
            self._unlist(entry)
            for file in entry.files:
                os.remove(os.path.join(self._place(entry), file))
            _remove_empty(self._place(entry))
        except Fault as error:
            raise TryllError(6004, str(error)) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TryllError(6001, f"The model `{entry.name}` could not be deleted: {reason}.") from None

    # The list of what was fetched.

    def _ledger(self) -> list[dict[str, Any]]:
        path = os.path.join(self.folder, LEDGER)
        try:
            found = os.stat(path)
            state = (found.st_mtime_ns, found.st_size, found.st_ino)
            if state != self._read_state:
                with open(path, "rb") as file:
                    listed = jsontext.loads(file.read(MAX_LEDGER_BYTES))
                entries = listed.get("entries") if isinstance(listed, dict) else None
                self._read = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
                self._read_state = state
        except (OSError, ValueError):
            return []
        return self._read

    def adopt(self, entries: Mapping[str, ModelEntry]) -> None:
        """Add source and hashes to what was listed without them, by earlier versions. Reads those files: not for an
        event loop, and only once."""
        known, adopted = self._ledger(), False
        for record in known:
            entry = entries.get(str(record.get("name")))
            if entry is None or "sha256" in record:
                continue
            place = self._place(entry)
            if (record.get("folder"), record.get("files")) != (os.path.basename(place), list(entry.files)):
                continue
            logger.info("`%s` was downloaded by an earlier version; its files are read once", entry.name)
            with suppress(OSError):
                digests = [_sha256(os.path.join(place, file)) for file in entry.files]
                record |= {"source": entry.source, "sha256": digests}
                adopted = True
        if adopted:
            # In a folder that nobody may write to, it is done each time.
            with suppress(OSError):
                self._write(known)

    def _list(self, entry: ModelEntry, total: int, digests: list[str]) -> None:
        record = {
            "name": entry.name,
            "engine": InferenceEngine.LLAMA_CPP,
            "folder": os.path.basename(self._place(entry)),
            "source": entry.source,
            "files": list(entry.files),
            "sha256": digests,
            "total_bytes": total,
        }
        self._write([each for each in self._ledger() if each.get("name") != entry.name] + [record])

    def _unlist(self, entry: ModelEntry) -> None:
        self._write([each for each in self._ledger() if each.get("name") != entry.name])

    def _write(self, entries: list[dict[str, Any]]) -> None:
        path = os.path.join(self.folder, LEDGER)
        with open(f"{path}.new", "wb") as file:
            file.write(jsontext.dumps({"entries": entries}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)


def _is_of(record: dict[str, Any], entry: ModelEntry) -> bool:
    """Whether a download is what an entry means today."""
    same = (record.get("name"), record.get("source"), record.get("files")) == (
        entry.name, entry.source, list(entry.files)
    )  # fmt: skip
    return same and (not entry.sha256 or record.get("sha256") == list(entry.sha256))


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
        raise TryllError(
            6003, f"The model `{name}` needs {size // 10**6} MB in `{folder}`, and {free // 10**6} MB are free."
        )


def _publish(stage: str, place: str, files: tuple[str, ...]) -> None:
    """Move files to their place. Another entry may have some of the same repository there already."""
    import shutil

    for file in files:
        target = os.path.join(place, file)
        paths.ensure_dir(os.path.dirname(target))
        os.replace(os.path.join(stage, file), target)
    shutil.rmtree(stage)


def _sha256(path: str) -> str:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove_empty(folder: str) -> None:
    """Remove a folder, and those in it, as far as nothing is there."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(path)
