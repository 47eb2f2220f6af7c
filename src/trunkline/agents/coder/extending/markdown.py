"""One Markdown file that extends the agent: read within bounds, whatever lies there under its name."""

from __future__ import annotations

import os
import re

from trunkline.agents.coder.extending import front_matter
from trunkline.agents.coder.extending.front_matter import FrontMatter
from trunkline.base.printable import printable_line, without_controls
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError

#: What is read to know what a file says of itself: its front matter is at its beginning.
HEAD_BYTES = 16 * 1024
#: The largest file: what a model can keep in mind, and more than any that people share. The rest belongs beside it.
MAX_BYTES = 100_000
#: What is kept of a description. The format that agents share allows as much.
MAX_DESCRIPTION = 1_024
#: What a name may be: it stands in lists and behind a slash.
NAME = re.compile(r"\w(?:[\w.: -]{0,62}[\w.:-])?")
NAME_RULE = "a name has at most 64 letters, digits, blanks, `-`, `_`, `.` and `:`"


class MarkdownFile(Value):
    """A file and what it says of itself, or why it cannot be used."""

    matter: FrontMatter
    problem: str = ""

    @property
    def description(self) -> str:
        """In one line."""
        return one_line(self.matter.text("description"), MAX_DESCRIPTION)


def head(path: str) -> MarkdownFile:
    """What a file says of itself; its text may be cut. Blocks for as long as the disk needs."""
    return _read(path, HEAD_BYTES)


def whole(path: str) -> MarkdownFile:
    """All of a file. Blocks for as long as the disk needs."""
    return _read(path, MAX_BYTES)


def usable(path: str) -> FrontMatter:
    """All of a file that can be used. Blocks for as long as the disk needs.

    Raises:
        ConfigError: it cannot.
    """
    found = whole(path)
    if found.problem:
        raise ConfigError(f"`{path}` cannot be used: {found.problem}.")
    return found.matter


def _read(path: str, limit: int) -> MarkdownFile:
    try:
        contents = read_regular(path, limit)
    except NotRegular:
        return unusable("it is not a regular file")
    except OSError as error:
        return unusable(f"it cannot be read: {os.strerror(error.errno or 0)}")
    if contents.size > MAX_BYTES:
        return unusable(
            f"it has {contents.size} bytes, and at most {MAX_BYTES} are read; put the rest in files beside it"
        )
    if b"\0" in contents.data:
        return unusable("it is binary, and no text")
    matter = front_matter.read(without_controls(contents.data.decode("utf-8-sig", "replace").replace("\r\n", "\n")))
    if matter.problem and contents.cut:
        return MarkdownFile(matter, f"its front matter has no end within {HEAD_BYTES} bytes")
    return MarkdownFile(matter, matter.problem)


def unusable(problem: str) -> MarkdownFile:
    """A file that cannot be used, and why."""
    return MarkdownFile(FrontMatter({}, ""), problem)


def one_line(text: str, most: int) -> str:
    """A text of somebody else's for a list: one line, and not more than so many characters."""
    line = printable_line(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 3].rstrip()}..."


def typed(name: str) -> str:
    """A name as people type it: in small letters, and a blank is a hyphen."""
    return name.strip().lower().replace(" ", "-")


def first_line(body: str) -> str:
    """What a text is about, where it does not say so itself."""
    return next((line.strip("# ") for line in body.splitlines() if line.strip("# ")), "")


def stamp(path: str) -> tuple[int, ...] | None:
    """What changes when a file does; None if it is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode
