"""The files of a server's models: where they are, how they get there, and how they go.

What is fetched goes into the cache that `trunkline models pull` fills, and is the same for both. What lies in the
models folder is used where it is: what an entry names there, and what was fetched into a folder `OWNER--REPOSITORY` of
it, by another server or an earlier version, as far as `downloads.json` there lists it. Nothing of that is deleted.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from trunkline.base import jsontext
from trunkline.core.faults import DownloadActive, DownloadFailed, Fault, ModelError, NoSpace
from trunkline.core.graph.ordinals import ModelStatus
from trunkline.models import catalog, fetch
from trunkline.models.catalog_entry import OPENAI, CatalogEntry

logger = logging.getLogger(__name__)

#: Called with the bytes that are there, and the bytes that there will be.
Progress = Callable[[int, int], None]

LEDGER = "downloads.json"
#: The longest list of downloads that is read.
MAX_LEDGER_BYTES = 1 << 20


class Weights:
    """The files of all models of a server. `folder`: the models folder, if there is one."""

    def __init__(self, folder: str | None) -> None:
        # The log tells it to those who do not know the folder that the server was started in.
        self.folder = os.path.abspath(folder or os.devnull)
        self._listed = _listed(os.path.join(self.folder, LEDGER))

    def path(self, entry: CatalogEntry) -> str | None:
        """The file that an engine is pointed at; None when it is not here. The other files are beside it."""
        return self._local(entry) or catalog.path(entry) or self._kept(entry) or self._legacy(entry)

    def status(self, entry: CatalogEntry) -> int:
        """Whether it is here, and who brought it."""
        if entry.engine == OPENAI:
            return ModelStatus.LOCAL
        path = self.path(entry)
        if path is None:
            return ModelStatus.ABSENT
        # What came with the package of its engine, or lies in the folder, is not deleted.
        fetched = entry.packaged is None and path == catalog.path(entry)
        return ModelStatus.DOWNLOADED if fetched else ModelStatus.LOCAL

    def size(self, entry: CatalogEntry) -> int:
        """Bytes on the disk."""
        first = self.path(entry)
        if first is None:
            return 0
        if entry.packaged is not None:
            return entry.size
        folder = first.removesuffix(entry.files[0].name) if entry.files else os.path.dirname(first)
        others = [os.path.join(folder, file.name) for file in entry.files[1:]]
        return sum(os.path.getsize(path) for path in (first, *others) if os.path.isfile(path))

    def _local(self, entry: CatalogEntry) -> str | None:
        if not entry.local_path:
            return None
        path = self._place(entry)
        return path if os.path.isfile(path) else None

    def _place(self, entry: CatalogEntry) -> str:
        """Where the file of one with a `local_path` is to be."""
        path = os.path.join(self.folder, entry.local_path)
        return os.path.join(path, entry.files[0].name) if entry.files and os.path.isdir(path) else path

    def _shown(self, path: str) -> str:
        """A path for clients, who may know the models folder from inside, and nothing else of this machine."""
        relative = os.path.relpath(path, self.folder)
        return os.path.basename(path) if relative.startswith(os.pardir) else relative

    def _legacy(self, entry: CatalogEntry) -> str | None:
        path = os.path.join(self.folder, entry.path)
        return path if entry.path and os.path.isfile(path) else None

    def _kept(self, entry: CatalogEntry) -> str | None:
        """What was fetched into the folder, and is what the entry means today."""
        names = [file.name for file in entry.files]
        if not entry.repository or not names:
            return None
        kept = entry.repository.replace("/", "--")
        for record in self._listed:
            same = (record.get("name"), record.get("folder"), record.get("files")) == (entry.name, kept, names)
            if same and _has_hashes(record, entry):
                files = [os.path.join(self.folder, kept, name) for name in names]
                return files[0] if all(map(os.path.isfile, files)) else None
        return None

    async def fetch(self, entry: CatalogEntry, progress: Progress) -> None:
        """See to it that a model is here.

        Raises:
            ModelError: nobody has it.
            NoSpace: there is no room for it.
            DownloadFailed: it did not work.
        """
        if self.path(entry) is not None:
            return
        has_source = entry.files and (entry.origin or entry.files[0].parts)
        if not has_source and (entry.local_path or entry.path):
            place = self._place(entry) if entry.local_path else os.path.join(self.folder, entry.path)
            logger.warning("the model `%s` is not here: there is no file `%s`", entry.name, place)
            raise ModelError(
                f"The model `{entry.name}` is not here: there is no file `{self._shown(place)}`, whose whole path is "
                "in the log. Put it there, or name another in `models.json`."
            )
        if not has_source:
            raise ModelError(f"The model `{entry.name}` has no source to download it from.")
        # Somebody may have fetched the very files into the folder: they are known by their hashes.
        given = [os.path.join(self.folder, entry.repository.replace("/", "--"))] if entry.repository else []
        try:
            await fetch.pull(entry, lambda what, done, total: progress(done, total), given)
        except NoSpace as error:
            raise NoSpace(f"The model `{entry.name}`: {error}") from None
        except Fault as error:
            raise DownloadFailed(f"The model `{entry.name}` could not be downloaded: {error}") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DownloadFailed(f"The model `{entry.name}` could not be written: {reason}.") from None

    async def delete(self, entry: CatalogEntry) -> None:
        """Remove what was fetched.

        Raises:
            ModelError: nothing was, or it is not ours to remove.
            DownloadActive: it is being fetched.
            DownloadFailed: it cannot be removed.
        """
        if self.status(entry) == ModelStatus.LOCAL:
            raise ModelError(f"The model `{entry.name}` was not downloaded, and is not deleted.")
        try:
            removed = await fetch.remove(entry)
        except DownloadActive:
            raise
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DownloadFailed(f"The model `{entry.name}` could not be deleted: {reason}.") from None
        if not removed:
            raise ModelError(f"The model `{entry.name}` is not here.")


def _listed(path: str) -> list[dict[str, Any]]:
    """What a list of downloads has. One that cannot be read is empty."""
    try:
        with open(path, "rb") as file:
            listed = jsontext.loads(file.read(MAX_LEDGER_BYTES))
    except (OSError, ValueError):
        return []
    entries = listed.get("entries") if isinstance(listed, dict) else None
    return [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []


def _has_hashes(record: dict[str, Any], entry: CatalogEntry) -> bool:
    """Whether a record has the hashes of an entry, as far as it has any."""
    wanted = [file.sha256 for file in entry.files]
    return not any(wanted) or record.get("sha256") == wanted
