"""The picture on the clipboard, by the programs that systems have for it. Terminals paste text alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress

from trunkline.base import paths
from trunkline.base.process_errors import SpawnError
from trunkline.base.programs import find_program
from trunkline.core.faults import ConfigError
from trunkline.core.ids import new_id
from trunkline.tools import pictures
from trunkline.tools.helper import collect

#: Somebody waits for it; a program whose clipboard's owner hangs would never come back.
SECONDS = 3.0
#: Pictures that are kept for conversations that are gone on with; older ones go.
MOST_KEPT = 100
_PRIVATE_FILE = 0o600

_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


async def picture(environ: Mapping[str, str] = os.environ) -> str:
    """Save the picture on the clipboard; gives the path of the file.

    Raises:
        ConfigError: there is none, or no program to ask for it.
    """
    is_asked = False
    for argv in _programs(environ):
        is_asked = True
        data = await _output(argv)
        found = pictures.inspect(data)
        if found is None:
            continue
        if why_not := pictures.problem(found, len(data)):
            raise ConfigError(f"The picture on the clipboard cannot be attached: {why_not}.")
        return _saved(data, _ENDINGS[found.media_type])
    if not is_asked:
        raise ConfigError(
            "There is no program here that reads pictures from the clipboard.",
            hint="Install `wl-clipboard`, `xclip` or `pngpaste`, or attach a file with `@path`.",
        )
    raise ConfigError("There is no picture on the clipboard.", hint="`@path` attaches a file.")


def _programs(environ: Mapping[str, str]) -> Iterator[list[str]]:
    """What to run, the likeliest first."""
    wanted = []
    if sys.platform == "darwin":
        wanted.append(["pngpaste", "-"])
    for kind in ("image/png", "image/jpeg"):
        if environ.get("WAYLAND_DISPLAY"):
            wanted.append(["wl-paste", "--no-newline", "--type", kind])
        if environ.get("DISPLAY"):
            wanted.append(["xclip", "-selection", "clipboard", "-target", kind, "-out"])
    for name, *arguments in wanted:
        program = find_program(name, environ)
        if program is not None:
            yield [program, *arguments]


async def _output(argv: list[str]) -> bytes:
    """What a program prints, as far as it could be a picture; nothing if it has none to give."""
    data = bytearray()

    def take(piece: bytes) -> bool:
        data.extend(piece)
        return len(data) <= pictures.LARGEST_PICTURE

    try:
        ended = await collect(argv, "/", take, SECONDS)
    except SpawnError:
        return b""
    return b"" if ended.timed_out else bytes(data)


def _saved(data: bytes, ending: str) -> str:
    folder = os.path.join(paths.state_dir(), "pasted")
    path = os.path.join(folder, new_id() + ending)
    try:
        paths.ensure_dir(folder)
        _forget_old(folder)
        # It may show anything: it is theirs alone.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except OSError as error:
        raise ConfigError(f"The picture cannot be saved in `{folder}`: {os.strerror(error.errno or 0)}.") from None
    return path


def _forget_old(folder: str) -> None:
    """Their names begin with the time at which they were made."""
    for name in sorted(os.listdir(folder))[: 1 - MOST_KEPT]:
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))
