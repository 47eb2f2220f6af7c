"""The Markdown files of one kind that users and workspaces have: commands, output styles, agents.

Each is known by its name: `review.md` is `review`, and `git/commit.md` is `git:commit`. Of two with the same name the
first one found counts. A file that has not changed since it was looked at is not read again. A link that leads out of a
workspace which nobody trusts is not followed: such a workspace does not get to show the model the rest of the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from trunkline.agents.coder.extending.broken import BrokenFiles
from trunkline.agents.coder.extending.folders import ExtensionFolder, folders, is_below, is_new, names_in
from trunkline.agents.coder.extending.markdown import NAME, MarkdownFile, head, stamp, unusable
from trunkline.base.values import Value

ENDING = ".md"
#: Folders in folders.
MAX_DEPTH = 3
#: Files of one kind; nobody has so many, and each is read.
MOST_FILES = 1_000


class ShelfFile(Value):
    """One file, as far as it was read: its beginning."""

    name: str
    path: str
    own: bool
    """It is the user's, and not a workspace's."""
    trusted: bool
    """What it allows counts."""
    contents: MarkdownFile


class MarkdownShelf:
    """The files of one kind, as they are on the disk."""

    def __init__(
        self,
        kind: str,
        workspace: str,
        environ: Mapping[str, str] = os.environ,
        *,
        trusted: bool = False,
        needs_matter: bool = False,
    ) -> None:
        """`needs_matter`: a file of this kind has to say in a front matter what it is."""
        self._kind = kind
        self._needs_matter = needs_matter
        self._workspace = workspace
        self._environ = environ
        self._trusted = trusted
        self._known: dict[str, tuple[object, ShelfFile]] = {}
        self._broken = BrokenFiles(kind.capitalize().replace("-", " "))
        self.files: Mapping[str, ShelfFile] = {}
        """By name, as they were when somebody looked last; those too that cannot be used."""

    def look(self) -> Mapping[str, ShelfFile]:
        """Look again. The same object, if nothing has changed. Blocks for as long as the disk needs."""
        known: dict[str, tuple[object, ShelfFile]] = {}
        for place in folders(self._kind, self._workspace, self._environ):
            for name, path in _walk(place.path, (), set()):
                if len(known) < MOST_FILES:
                    known[path] = self._looked_at(place, name, path)
        if known != self._known or list(known) != list(self._known):
            self._known = known
            files: dict[str, ShelfFile] = {}
            for _, file in known.values():
                files.setdefault(file.name, file)
            self.files = files
        return self.files

    def news(self) -> list[str]:
        """What people should be told of the files that were found last, once: those that cannot be used."""
        found = ((file.path, file.contents.problem) for file in self.files.values())
        return self._broken.news({path: problem for path, problem in found if problem})

    def _looked_at(self, place: ExtensionFolder, name: str, path: str) -> tuple[object, ShelfFile]:
        now = (stamp(path), os.path.realpath(path))
        before = self._known.get(path)
        if before is not None and before[0] == now:
            return before
        trusted = place.own or (self._trusted and place.here)
        if not trusted and not is_below(path, place.root):
            contents = unusable("it is a link that leaves the workspace")
        else:
            contents = head(path)
        if self._needs_matter and not contents.problem and not contents.matter.given:
            contents = unusable("it has no front matter")
        return now, ShelfFile(name, path, place.own, trusted, contents)


def _walk(directory: str, within: tuple[str, ...], seen: set[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    if not is_new(directory, seen):
        return
    for name, is_folder in names_in(directory)[:MOST_FILES]:
        path = os.path.join(directory, name)
        if is_folder and len(within) + 1 < MAX_DEPTH:
            yield from _walk(path, (*within, name), seen)
        elif name.endswith(ENDING) and not is_folder:
            called = ":".join((*within, name.removesuffix(ENDING)))
            if NAME.fullmatch(called):
                yield called, path
