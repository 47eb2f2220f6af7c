"""Files that come with messages, and files that go out with answers.

In: each conversation has a folder of its own in the state directory, for this user alone, with one for each message. A
file there has what is harmless of its sender's name for it; its size is limited; old ones are removed.

Out: a file goes with an answer when the answer shows it as Markdown shows a picture, `![caption](path)`, and it lies in
the workspace. Nothing outside of it goes, nothing hidden (`.env`, `.git/`), no link that leads there, and no more than
`MOST_FILES`. What goes is a copy, so that it stays what it was when the answer was given.
"""

from __future__ import annotations

import binascii
import errno
import hashlib
import logging
import os
import re
import stat
import time
from base64 import b64decode
from typing import BinaryIO, Literal
from urllib.parse import unquote

from trunkline.base import paths
from trunkline.base.values import Value
from trunkline.chat.platform import FileType, InboundFile, Platform, SendFailed

logger = logging.getLogger(__name__)

#: More than people attach to one message, and more than anybody wants to get with one answer.
MOST_FILES = 10
#: As long as file systems allow with room for what we put before it.
LONGEST_NAME = 80
#: A file that came is read in the turn that it came with, or in one of the next days.
KEPT_DAYS = 14
#: How much of an answer is searched for files: as much as is shown of it.
MOST_SEARCHED = 200_000

_DAY = 24 * 3600.0
#: A file is copied in pieces: it may be as large as a platform takes.
_CHUNK = 1024 * 1024
_PRIVATE_FILE = 0o600
_UNSAFE = re.compile(r"[^\w.-]+")
# A title behind the path is allowed, as in Markdown; spaces in a path are not, unless it is in angle brackets. No part
# can run over the beginning of another picture, so that a text of nothing but beginnings is read once, and not once
# for each of them.
_PICTURE = re.compile(r"""!\[[^\[\]\n]*\]\(\s*(?:<([^<>\n]+)>|([^\s()<>]+))(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)""")
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)

_TYPES: dict[str, FileType] = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp"), "image"),
    **dict.fromkeys(("mp3", "ogg", "oga", "wav", "m4a", "flac"), "audio"),
    **dict.fromkeys(("mp4", "webm", "mov", "mkv"), "video"),
}


class OutgoingFile(Value):
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

    async def fetch(self, platform: Platform, file: InboundFile, number: int) -> str:
        """Save a file that came; gives its path. `number` is that of its message.

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

    def picture(self, data: str, number: int) -> OutgoingFile | None:
        """Keep a picture that a tool gave, in base64; None if it is none.

        Raises:
            SendFailed: it cannot be kept. The text is for people.
        """
        from trunkline.tools import pictures

        try:
            raw = b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return None
        kind = pictures.media_type(raw)
        if kind is None:
            return None
        name = f"picture.{kind.rpartition('/')[2]}"
        try:
            return OutgoingFile(self._write("out", number, name, raw), "image", name)
        except OSError as error:
            raise SendFailed(f"it cannot be kept: {error.strerror or error}") from error

    def text(self, text: str, name: str) -> OutgoingFile:
        """Keep a text that is too long for messages.

        Raises:
            SendFailed: it cannot be kept. The text is for people.
        """
        try:
            return OutgoingFile(self._write("out", 0, name, text.encode("utf-8", "replace")), "file", name)
        except OSError as error:
            raise SendFailed(f"it cannot be kept: {error.strerror or error}") from error

    def copy(self, source: str, number: int, most: int) -> OutgoingFile | None:
        """Keep a copy of a file to send; None if it cannot be read, or is not a regular file. May take a while.

        Raises:
            SendFailed: it is too large, or cannot be kept. The text is for people.
        """
        try:
            # Opening must not wait for a pipe's other end, nor make a terminal ours.
            handle = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        name = os.path.basename(source)
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            os.close(handle)
            return None
        with open(handle, "rb") as reading:
            if found.st_size > most:
                raise SendFailed(f"it has {found.st_size} bytes, and {most} is the limit")
            try:
                path = self._place("out", number, name)
                _pour(reading, path, most)
            except OSError as error:
                raise SendFailed(f"it cannot be kept: {error.strerror or error}") from error
        return OutgoingFile(path, file_type(name), name)

    def prune(self, now: float | None = None) -> None:
        """Remove what came or went long ago."""
        oldest = (time.time() if now is None else now) - KEPT_DAYS * _DAY
        for side in ("in", "out"):
            for directory, _, names in os.walk(os.path.join(self.path, side), topdown=False):
                try:
                    _remove_old(directory, names, oldest)
                except OSError as error:
                    logger.warning("an old file cannot be removed: %s", error)

    def _place(self, side: Literal["in", "out"], number: int, name: str) -> str:
        """Where a file of a message goes: a place that is free."""
        directory = os.path.join(self.path, side, str(number))
        paths.ensure_dir(directory)
        clean = safe_name(name)
        stem, dot, ending = clean.rpartition(".")
        path, count = os.path.join(directory, clean), 1
        while os.path.lexists(path):
            count += 1
            path = os.path.join(directory, f"{stem}-{count}.{ending}" if dot else f"{clean}-{count}")
        return path

    def _write(self, side: Literal["in", "out"], number: int, name: str, data: bytes) -> str:
        path = self._place(side, number, name)
        with _private(path) as file:
            file.write(data)
        return path


def _private(path: str) -> BinaryIO:
    """A new file, for this user alone."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE), "wb")


def _pour(reading: BinaryIO, path: str, most: int) -> None:
    """Copy a file piece by piece. One that grows meanwhile, or says that it is empty and is not, has its limit, too."""
    copied = 0
    with _private(path) as writing:
        while piece := reading.read(_CHUNK):
            copied += len(piece)
            if copied > most:
                os.unlink(path)
                raise SendFailed(f"it has more than {most} bytes, which is the limit")
            writing.write(piece)


def _remove_old(directory: str, names: list[str], oldest: float) -> None:
    """Remove the old files of a directory, and the directory of a message when nothing is left in it."""
    for name in names:
        path = os.path.join(directory, name)
        found = os.stat(path, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode) and found.st_mtime < oldest:
            os.unlink(path)
    if os.path.basename(directory).isdecimal():
        try:
            os.rmdir(directory)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise


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
    """The files of the workspace that an answer shows, each once. They exist; what else is in it is left alone.

    May take a while: each name that the answer shows is looked for.
    """
    root = os.path.realpath(workspace)
    found: dict[str, None] = {}
    for match in _PICTURE.finditer(_FENCED.sub("", text[:MOST_SEARCHED])):
        path = _inside(root, match[1] or match[2])
        if path is not None:
            found[path] = None
            if len(found) == MOST_FILES:
                break
    return list(found)


def _inside(root: str, named: str) -> str | None:
    if "://" in named:
        return None
    try:
        path = os.path.realpath(os.path.join(root, unquote(named)))
    except ValueError:
        # A NUL, or half a character: no file is called so.
        return None
    below = os.path.relpath(path, root)
    if below.startswith(os.pardir) or any(part.startswith(".") for part in below.split(os.sep)):
        return None
    return path if os.path.isfile(path) else None
