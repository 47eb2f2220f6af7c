"""The list of what was fetched into a models folder: `downloads.json`.

Each record has the `name` of a model, the `folder` of its `files`, the `source` they came from and their `sha256`.
Those of earlier versions have neither of the last two.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from trunkline.base import jsontext

LEDGER = "downloads.json"
#: The longest list of downloads that is read.
MAX_LEDGER_BYTES = 1 << 20

Record = dict[str, Any]


class Downloads:
    """The list of one folder, which is named from the root on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._path = os.path.join(folder, LEDGER)
        # The list as it was when its file was in that state: it is asked for with every model.
        self._read: list[Record] = []
        self._read_state: tuple[int, ...] = ()

    def all(self) -> list[Record]:
        """What is listed. A list that cannot be read is empty."""
        try:
            found = os.stat(self._path)
            state = (found.st_mtime_ns, found.st_size, found.st_ino)
            if state != self._read_state:
                with open(self._path, "rb") as file:
                    listed = jsontext.loads(file.read(MAX_LEDGER_BYTES))
                entries = listed.get("entries") if isinstance(listed, dict) else None
                self._read = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
                self._read_state = state
        except (OSError, ValueError):
            return []
        return self._read

    def named(self, name: str) -> list[Record]:
        """What is listed under a name, whatever the name means by now."""
        return [each for each in self.all() if each.get("name") == name]

    def replace(self, name: str, *records: Record) -> None:
        """List this under a name, instead of all that was."""
        self.write([*(each for each in self.all() if each.get("name") != name), *records])

    def write(self, records: list[Record]) -> None:
        """List this, and nothing else."""
        with open(f"{self._path}.new", "wb") as file:
            file.write(jsontext.dumps({"entries": records}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{self._path}.new", self._path)

    def remove_files(self, records: Iterable[Record]) -> None:
        """Remove the files of what is not listed any more, unless they are also those of something that is."""
        kept = {path for record in self.all() for path in self._files(record)}
        for record in records:
            for path in self._files(record):
                if path not in kept:
                    # Also a name that no file can have is not there.
                    with suppress(FileNotFoundError, ValueError):
                        os.remove(path)
                    remove_empty(os.path.join(self.folder, record["folder"]))

    def _files(self, record: Record) -> list[str]:
        """Where the files of a record are. Whatever it says, they are in a folder of the models folder."""
        folder, files = record.get("folder"), record.get("files")
        if not isinstance(folder, str) or not isinstance(files, list) or folder in ("", ".", "..") or "/" in folder:
            return []
        place = os.path.join(self.folder, folder)
        found = [os.path.normpath(os.path.join(place, file)) for file in files if isinstance(file, str)]
        return [path for path in found if path.startswith(place + os.sep)]


def remove_empty(folder: str) -> None:
    """Remove a folder, and those in it, as far as nothing is there."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(path)
