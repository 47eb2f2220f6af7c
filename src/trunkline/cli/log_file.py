"""The file of a log. Apart, since its base class brings sockets and queues along, and most have no such file."""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler

from trunkline.cli import serving


class LogFile(WatchedFileHandler):
    """A file that nobody else reads, and that others may move away. Without room for more, that is told once."""

    _told = False

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # its name in `logging`
        if not self._told:
            self._told = True
            serving.told(f"The log can no longer be written to `{self.baseFilename}`.")
