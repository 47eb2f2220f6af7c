"""A command run in this process, with files for its standard streams: for commands that write to descriptors."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click


class Invoked(NamedTuple):
    """What came of it."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both, for messages."""
        return self.stdout + self.stderr


def invoke(command: click.Command, *arguments: str, typed: str | None = None) -> Invoked:
    """Run it. `typed` is what is piped in; without it there is nothing."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as source:
        source.write((typed or "").encode())
        source.seek(0)
        with open(os.devnull, "rb") as nothing, _streams(nothing if typed is None else source, out, err):
            code: Any = 0
            try:
                command.main(list(arguments), prog_name="trunkline")
            except SystemExit as left:
                code = left.code
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        return Invoked(int(code or 0), *texts)


@contextmanager
def _streams(source: Any, out: Any, err: Any) -> Iterator[None]:
    kept = [os.dup(fd) for fd in (0, 1, 2)]
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        for fd, file in enumerate((source, out, err)):
            os.dup2(file.fileno(), fd)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # closed by nobody, as the real one
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdin, sys.stdout, sys.stderr = before
        for fd, copy in enumerate(kept):
            os.dup2(copy, fd)
            os.close(copy)
