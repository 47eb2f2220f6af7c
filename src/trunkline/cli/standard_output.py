"""Standard output that remembers why it could not be written.

Whoever meets an error of the system can tell by it whether the output is at fault or a file.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

_FD = 1


class _RememberingFile(io.FileIO):
    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


def watch() -> None:
    """Put one that remembers in the place of `sys.stdout`. A closed one cannot be written from then on, either.

    Else the next file that is opened would take its number, and what is meant for people would end up in it.
    """
    own = sys.stdout
    if own is None:
        null = os.open(os.devnull, os.O_RDONLY)
        if null != _FD:
            os.dup2(null, _FD)
            os.close(null)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_file()), encoding="utf-8")
    elif type(own) is io.TextIOWrapper and own.fileno() == _FD:
        # As Python makes it: with `-u`, without a buffer.
        sys.stdout = io.TextIOWrapper(
            _file() if own.write_through else io.BufferedWriter(_file()),
            encoding=own.encoding,
            errors=own.errors,
            line_buffering=own.line_buffering,
            write_through=own.write_through,
        )


def _file() -> _RememberingFile:
    return _RememberingFile(_FD, "w", closefd=False)


def lost() -> OSError | None:
    """What has kept standard output from being written, if anything has."""
    buffer = getattr(sys.stdout, "buffer", None)
    file = getattr(buffer, "raw", buffer)
    return file.error if isinstance(file, _RememberingFile) else None


def unwritten(error: OSError) -> str:
    """Say that standard output cannot be written, and why."""
    if error.errno == errno.EBADF:
        return "Standard output is closed."
    return f"Standard output cannot be written: {error.strerror or error}."
