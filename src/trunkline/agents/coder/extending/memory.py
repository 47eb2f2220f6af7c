"""What an agent keeps about a workspace from one session to the next: `MEMORY.md`, and files beside it.

    TRUNKLINE_HOME/memory/PROJECT/MEMORY.md

It is the user's own, and never in the workspace: nothing of it is committed. Agents write it with their tools for
files, people with `#` and `/memory`. Its first lines are in the system prompt of the sessions that follow. No secret is
kept there that is known as one, or looks like one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from trunkline.base import paths
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.secret_shapes import masked
from trunkline.core.faults import ConfigError

FILE = "MEMORY.md"
#: What of it is in the system prompt; the rest is there to be read.
MOST_LINES = 200
MOST_BYTES = 64 * 1024
#: A line that somebody adds; longer ones are texts, and belong in a file.
MOST_LINE_CHARS = 2_000
#: The file itself: beyond this nothing is added by us.
LARGEST_BYTES = 1024 * 1024

_RULES = (
    "Keep there what the next session in this workspace should know and cannot see in its files: decisions, "
    "conventions, what the user prefers, what went wrong. Short lines, each with its date; long notes in files of "
    "their own beside it, each named in MEMORY.md with what it is about. Correct what is no longer so. Never write "
    "passwords, keys or other secrets there."
)


def directory(workspace: str, environ: Mapping[str, str] = os.environ) -> str:
    """Where the memory of a workspace is. It need not exist."""
    return os.path.join(paths.state_dir(environ), "memory", paths.project(os.path.realpath(workspace)))


def file(workspace: str, environ: Mapping[str, str] = os.environ) -> str:
    """Its `MEMORY.md`."""
    return os.path.join(directory(workspace, environ), FILE)


class ProjectMemory:
    """The memory of one workspace."""

    def __init__(
        self,
        workspace: str,
        environ: Mapping[str, str] = os.environ,
        clean: Callable[[str], str] = str,
        *,
        today: Callable[[], str] = lambda: time.strftime("%Y-%m-%d"),
    ) -> None:
        """`clean` takes those secrets out of a text that are known."""
        self.directory = directory(workspace, environ)
        self.file = os.path.join(self.directory, FILE)
        self._clean = clean
        self._today = today

    def text(self) -> str:
        """All of it, without secrets; nothing if there is none. Blocks for as long as the disk needs."""
        return self._read(LARGEST_BYTES)[0]

    def section(self) -> str:
        """What the system prompt says of it. Blocks for as long as the disk needs."""
        lines = ["# Memory", "", f"Your memory of this workspace is `{self.file}`. {_RULES}"]
        text, is_cut = self._read(MOST_BYTES)
        kept = text.splitlines()
        is_cut = is_cut or len(kept) > MOST_LINES
        if text.strip():
            lines += ["", f"{FILE}, last changed on {self._changed()}; what it says may have changed since:", ""]
            lines += kept[:MOST_LINES]
        if is_cut:
            lines.append(f"[... the rest was cut. Read `{self.file}` to see it, and keep it short.]")
        return "\n".join(lines)

    def fit(self, text: str) -> str:
        """A text as it may be kept: without secrets."""
        return masked(self._clean(text))

    def add(self, line: str) -> str:
        """Keep one more line, with today's date; gives the line as it is kept. Blocks for as long as the disk needs.

        Raises:
            OSError: it cannot be written.
            ConfigError: it is too long, or there is too much already.
        """
        words = self.fit(" ".join(line.split()))
        if len(words) > MOST_LINE_CHARS:
            raise ConfigError(
                f"A line of the memory has at most {MOST_LINE_CHARS} characters, and this one has {len(words)}.",
                hint=f"Put longer texts into a file next to `{self.file}`.",
            )
        text = f"- {self._today()}: {words}\n"
        paths.ensure_dir(self.directory)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(self.file, flags, 0o600)
        try:
            size = os.fstat(handle).st_size
            if size > LARGEST_BYTES:
                raise ConfigError(
                    f"`{self.file}` has {size} bytes already.", hint="Remove from it what is not needed any more."
                )
            if size and os.pread(handle, 1, size - 1) != b"\n":
                text = f"\n{text}"
            os.write(handle, text.encode("utf-8", "replace"))
        finally:
            os.close(handle)
        return text.strip()

    def _read(self, most: int) -> tuple[str, bool]:
        """The beginning, in whole lines, and whether there is more."""
        try:
            contents = read_regular(self.file, most)
        except NotRegular:
            return f"[`{self.file}` is not a file. Nothing is remembered.]", False
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            return ("" if missing else f"[`{self.file}` cannot be read: {os.strerror(error.errno or 0)}.]"), False
        text = contents.data.decode("utf-8-sig", "replace")
        if contents.cut:
            text = text.rpartition("\n")[0]
        return self.fit(text), contents.cut

    def _changed(self) -> str:
        try:
            return time.strftime("%Y-%m-%d", time.localtime(os.stat(self.file).st_mtime))
        except OSError:
            return self._today()
