"""Files that come with messages, and files that go out with answers.

In: each conversation has a folder of its own in the state directory, for this user alone. A file's name there is ours,
with what is harmless of the sender's name behind it; its size is limited; old ones are removed.

Out: a file goes with an answer when the answer shows it as Markdown shows a picture, `![caption](path)`, and it lies in
the workspace. Nothing outside of it goes, nothing hidden (`.env`, `.git/`), no link that leads there, and no more than
`MOST_FILES`. What goes is a copy, so that it stays what it was when the answer was given.
"""

from __future__ import annotations

import binascii
import hashlib
import logging
import os
import re
import stat
import time
from base64 import b64decode
from typing import Literal
from urllib.parse import unquote

from trunkline.base import paths
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.values import Value
from trunkline.chat.platform import File, FileType, Platform, SendFailed

logger = logging.getLogger(__name__)

#: More than people attach to one message, and more than anybody wants to get with one answer.
MOST_FILES = 10
#: As long as file systems allow with room for what we put before it.
LONGEST_NAME = 80
#: A file that came is read in the turn that it came with, or in one of the next days.
KEPT_DAYS = 14

_DAY = 24 * 3600.0
_PRIVATE_FILE = 0o600
_UNSAFE = re.compile(r"[^\w.-]+")
# A title behind the path is allowed, as in Markdown; spaces in a path are not, unless it is in angle brackets.
_PICTURE = re.compile(r"""!\[[^\]\n]*\]\(\s*(?:<([^<>\n]+)>|([^\s()<>]+))(?:\s+["'][^\n]*["'])?\s*\)""")
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)

_TYPES: dict[str, FileType] = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp"), "image"),
    **dict.fromkeys(("mp3", "ogg", "oga", "wav", "m4a", "flac"), "audio"),
    **dict.fromkeys(("mp4", "webm", "mov", "mkv"), "video"),
}


class Outgoing(Value):
    """A file that goes with an answer."""

    path: str
    type: FileType
    name: str


class Folder:
    """Where the files of one conversation lie."""

    def __init__(self, root: str, platform: str, chat: str) -> None:
        # The id of a chat is the platform's, and may hold anything.
        digest = hashlib.sha256(chat.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self.path = os.path.join(root, platform, digest)

    async def fetch(self, platform: Platform, file: File, number: int) -> str:
        """Save a file that came; gives its path. `number` tells those of one conversation apart.

        Raises:
            SendFailed: it could not be had, is too large, or cannot be kept. The text is for people.
        """
        most = platform.limits.file_bytes
        if file.size is not None and file.size > most:
            raise SendFailed(f"it has {file.size} bytes, and {most} is the limit")
        try:
            path = self._place("in", number, file.name or file.type)
            await platform.fetch(file, path)
            size = os.stat(path).st_size
        except OSError as error:
            raise SendFailed(f"it cannot be kept: {error.strerror or error}") from error
        if size > most:
            os.unlink(path)
            raise SendFailed(f"it has more than {most} bytes")
        return path

    def picture(self, data: str, number: int) -> Outgoing | None:
        """Keep a picture that a tool gave, in base64; None if it is none."""
        from trunkline.tools import pictures

        try:
            raw = b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return None
        kind = pictures.media_type(raw)
        if kind is None:
            return None
        name = f"picture.{kind.rpartition('/')[2]}"
        return Outgoing(self._write("out", number, name, raw), "image", name)

    def copy(self, source: str, number: int, most: int) -> Outgoing | None:
        """Keep a copy of a file to send; None if it cannot be read, is no regular file, or is too large."""
        try:
            contents = read_regular(source, most)
        except (OSError, NotRegular):
            return None
        if contents.cut:
            return None
        name = os.path.basename(source)
        return Outgoing(self._write("out", number, name, contents.data), file_type(name), name)

    def prune(self, now: float | None = None) -> None:
        """Remove what came or went long ago."""
        oldest = (time.time() if now is None else now) - KEPT_DAYS * _DAY
        for side in ("in", "out"):
            directory = os.path.join(self.path, side)
            try:
                entries = list(os.scandir(directory))
            except OSError:
                continue
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) and found.st_mtime < oldest:
                        os.unlink(entry.path)
                except OSError as error:
                    logger.warning("an old file cannot be removed: %s", error)

    def _place(self, side: Literal["in", "out"], number: int, name: str) -> str:
        directory = os.path.join(self.path, side)
        paths.ensure_dir(directory)
        return os.path.join(directory, f"{number}-{time.time_ns():x}-{safe_name(name)}")

    def _write(self, side: Literal["in", "out"], number: int, name: str, data: bytes) -> str:
        path = self._place(side, number, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE), "wb") as file:
            file.write(data)
        return path


def safe_name(name: str) -> str:
    """What can be a file's name of a name that somebody chose: no directories, nothing hidden, not too long."""
    last = re.split(r"[/\\]", name)[-1]
    clean = _UNSAFE.sub("_", last).lstrip(".-")
    stem, dot, ending = clean.rpartition(".")
    if len(clean) > LONGEST_NAME and dot and len(ending) < LONGEST_NAME // 2:
        clean = f"{stem[: LONGEST_NAME - len(ending) - 1]}.{ending}"
    # The limit of file systems is in bytes, and a letter may have four.
    return clean[:LONGEST_NAME].encode()[: LONGEST_NAME * 2].decode("utf-8", "ignore") or "file"


def file_type(name: str) -> FileType:
    """What kind of file a name says it is."""
    return _TYPES.get(name.rpartition(".")[2].lower(), "file")


def shown(text: str, workspace: str) -> list[str]:
    """The files of the workspace that an answer shows, each once. They exist; what else is in it is left alone."""
    root = os.path.realpath(workspace)
    found: dict[str, None] = {}
    for match in _PICTURE.finditer(_FENCED.sub("", text)):
        path = _inside(root, match[1] or match[2])
        if path is not None:
            found[path] = None
    return list(found)[:MOST_FILES]


def _inside(root: str, named: str) -> str | None:
    if "://" in named or "\0" in named:
        return None
    path = os.path.realpath(os.path.join(root, unquote(named)))
    below = os.path.relpath(path, root)
    if below.startswith(os.pardir) or any(part.startswith(".") for part in below.split(os.sep)):
        return None
    return path if os.path.isfile(path) else None
