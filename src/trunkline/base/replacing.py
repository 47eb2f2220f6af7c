"""A file of ours with another content, in one step: whoever looks sees the old one or the new one, and never half."""

from __future__ import annotations

import os
import re
from contextlib import suppress

#: What is kept here is the user's alone.
PRIVATE_FILE = 0o600

_DRAFT = re.compile(r"\.new\.[0-9]+\.[0-9a-f]{8}\Z")


def draft(path: str) -> str:
    """A path beside another for what is to take its place: another process, or thread, has another."""
    return f"{path}.new.{os.getpid()}.{os.urandom(4).hex()}"


def is_draft(name: str) -> bool:
    """Whether a file is called so: then somebody is at it, or was killed meanwhile."""
    return _DRAFT.search(name) is not None


def replace_private(path: str, data: bytes) -> None:
    """Give a file this content. It belongs to its owner alone, whatever it was before; its directory is there.

    Not forced to the disk: after a power cut the old content may be back.

    Raises:
        OSError: it cannot be written. The old one is as it was.
    """
    new = draft(path)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with open(fd, "wb") as file:
            file.write(data)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
