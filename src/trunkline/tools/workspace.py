"""The directory that an agent works in: what a path means there, and whether it leads out.

A path is made absolute by its text alone (`a/../b` is `b`, whatever `a` is) and that text is what is judged and what
is opened. Whether it leads out is judged by what it is on the disk: a symbolic link inside that points outside counts
as outside.

Known limit: this is a question to be asked before a tool runs, not a fence around it. It is asked again right before
that; what replaces a directory by a link in the very moment between is not noticed.
"""

from __future__ import annotations

import os

from trunkline.core.guarded import starts_programs


class Workspace:
    """One directory, which need not exist."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self._real_root = os.path.realpath(self.root)

    def __repr__(self) -> str:
        return f"Workspace({self.root!r})"

    def resolve(self, path: str) -> str:
        """The absolute path: relative ones start at the root, `~` is the user's home."""
        return os.path.normpath(os.path.join(self.root, os.path.expanduser(path)))

    def outside(self, path: str) -> bool:
        """Whether the path is outside of the root, or leads there through symbolic links. It need not exist."""
        place = self.place(path)
        # A NUL, half a character: no file can have that name, so it leads nowhere.
        return bool(place) and not _is_within(place, self._real_root)

    def guards(self, path: str) -> bool:
        """Whether a change of the file counts as outside: it leads there, or to a file that makes programs run."""
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

    def relative(self, path: str) -> str:
        """For people: from the root where the path is below it, else absolute."""
        absolute = self.resolve(path)
        return os.path.relpath(absolute, self.root) if _is_within(absolute, self.root) else absolute


def printable(text: str) -> str:
    """A name or a text from the disk as it can be shown: bytes that are no UTF-8 are replaced by the usual mark."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _below(path: str, root: str) -> list[str]:
    return os.path.relpath(path, root).split(os.sep) if path and _is_within(path, root) else []


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
