"""The directory that an agent works in: what a path means there, and whether it leads out.

A path is made absolute by its text alone (`a/../b` is `b`, whatever `a` is) and that text is what is judged and what
is opened. Whether it leads out is judged by what it is on the disk: a symbolic link inside that points outside counts
as outside.

Known limit: this is a question to be asked before a tool runs, not a fence around it. It is asked again right before
that; what replaces a directory by a link in the very moment between is not noticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from trunkline.base.paths import is_within
from trunkline.core.guarded import starts_programs
from trunkline.core.rules import Rules, hidden_from_searches, no_rules


class Workspace:
    """One directory, which need not exist, and what the rules say of the files in it."""

    def __init__(self, root: str | os.PathLike[str], rules: Callable[[], Rules] = no_rules) -> None:
        """`rules` are asked for each time: people change them."""
        self._rules = rules
        self.root = os.path.abspath(os.fspath(root))
        self._real_root = os.path.realpath(self.root)
        self.readable: tuple[str, ...] = ()
        """Folders that may be read, wherever they are: those of skills. Links are resolved."""
        self.kept: str = ""
        """The agent's own folder elsewhere, its memory: neither reading nor writing there counts as outside."""
        self.clean: Callable[[str], str] = str
        """Takes secrets out of what is written there."""
        self.wary: Callable[[], bool] = lambda: False
        """Whether words of others may be behind a search: then it leaves out credentials, unless it names them."""

    def __repr__(self) -> str:
        return f"Workspace({self.root!r})"

    def resolve(self, path: str) -> str:
        """The absolute path: relative ones start at the root, `~` is the user's home."""
        return os.path.normpath(os.path.join(self.root, os.path.expanduser(path)))

    def outside(self, path: str) -> bool:
        """Whether the path is outside of the root, or leads there through symbolic links. It need not exist."""
        place = self.place(path)
        # A NUL, half a character: no file can have that name, so it leads nowhere.
        return bool(place) and not is_within(place, self._real_root)

    def reads_outside(self, path: str) -> bool:
        """Whether reading the file or the folder counts as outside. A link that leads out of a folder does."""
        return self.outside(path) and not self.keeps(path) and not self.is_lent(path)

    def is_lent(self, path: str) -> bool:
        """Whether the path leads into one of the folders that may be read wherever they are."""
        place = self.place(path) if self.readable else ""
        return any(is_within(place, folder) for folder in self.readable)

    def keeps(self, path: str) -> bool:
        """Whether the path leads into the agent's own folder."""
        return bool(self.kept) and is_within(self.place(path), self.kept)

    def fit_to_keep(self, path: str, text: str) -> str:
        """A text as it may be written there: in the agent's own folder without the secrets that are known."""
        return self.clean(text) if self.keeps(path) else text

    def guards(self, path: str) -> bool:
        """Whether a change of the file counts as outside: it leads there, or to a file that makes programs run."""
        if self.keeps(path):
            return False
        if self.outside(path):
            return True
        ways = ((self.resolve(path), self.root), (self.place(path), self._real_root))
        return any(starts_programs(_below(way, root)) for way, root in ways)

    def place(self, path: str) -> str:
        """What the path leads to on the disk as it is now; nothing if no file can have that name."""
        try:
            return os.path.realpath(self.resolve(path))
        except (OSError, ValueError):
            return ""

    def hidden_below(self, path: str, tool: str) -> Callable[[str], bool] | None:
        """Which files a search with this tool that begins there leaves out, as the rules want it; None: none."""
        return hidden_from_searches(self._rules(), tool, self.root, self.resolve(path))

    def relative(self, path: str) -> str:
        """For people: from the root where the path is below it, else absolute."""
        absolute = self.resolve(path)
        return os.path.relpath(absolute, self.root) if is_within(absolute, self.root) else absolute


def printable(text: str) -> str:
    """A name or a text from the disk as it can be shown: bytes that are no UTF-8 are replaced by the usual mark."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _below(path: str, root: str) -> list[str]:
    return os.path.relpath(path, root).split(os.sep) if path and is_within(path, root) else []
