"""AGENTS.md: what the user and the project tell every agent. Where a directory has none, `CLAUDE.md` or `.aionrs.md`
stands for it.

The user's own comes first (`AGENTS.md` beside the configuration file), then each one from the root of the repository
down to the workspace, so that the nearest has the last word. Without a repository only the workspace's counts; a home
directory that is one, as people have it for their settings, is not the project's.

A line that is nothing but `@path` stands for that file, seen from the file that has the line. What is included must be
text by its name, and lie in the workspace, or beside the user's own file, links considered: a repository that somebody
else wrote does not get to show the model, and whoever runs it, the rest of the disk. A line in a code fence stands for
itself. In `CLAUDE.md` a line may have other words, too (`See @docs/style.md`): it stays, and what it names follows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from trunkline.base import paths
from trunkline.base.printable import printable_line
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.values import Value

NAME = "AGENTS.md"
#: What a directory may have, the one that counts first. Other agents read the others.
NAMES = (NAME, "CLAUDE.md", ".aionrs.md")

#: How deep includes may stand in one another.
MAX_DEPTH = 5
#: A file of instructions that a model can keep in mind is far smaller.
MAX_FILE_BYTES = 64 * 1024
#: All of them together: a tenth of a large model's window.
MAX_CHARS = 80_000
#: Files in all, includes counted as often as they stand there: ten that each include ten more are soon a million.
MAX_FILES = 50
#: Directories between a repository's root and the workspace; no real one is so deep.
MAX_LEVELS = 64

SUFFIXES = (".md", ".txt", ".json", ".yaml", ".yml", ".toml")

_MENTION = re.compile(rf"(?:^|\s)@(\S+?(?:{'|'.join(map(re.escape, SUFFIXES))}))(?!\w)")
_CODE = re.compile(r"`[^`]*`")

_PREAMBLE = (
    "# Instructions\n\n"
    "The user and the project give these instructions. Follow them; where they contradict each other, the later ones "
    "count, and what the user says in the conversation counts most."
)


class Instructions(Value):
    """The section for the system prompt, empty if there is none; the files it was made of; and what went wrong."""

    text: str = ""
    files: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def load(workspace: str, environ: Mapping[str, str] = os.environ) -> Instructions:
    """Read all that applies to a workspace. Blocks for as long as the disk needs; it is little."""
    reader = _Reader()
    own = paths.config_dir(environ)
    reader.add(_in(own), "the user's own", ())
    directories = project_directories(workspace, environ)
    for directory in directories:
        reader.add(_in(directory), "project instructions", directories[-1:])
    return reader.result()


def _in(directory: str) -> str:
    """The file of a directory that counts; it need not be there."""
    found = (path for name in NAMES if os.path.lexists(path := os.path.join(directory, name)))
    return next(found, os.path.join(directory, NAME))


def project_directories(workspace: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The directories whose instructions count, the outermost first and the workspace last."""
    here = os.path.realpath(workspace)
    home = os.path.realpath(environ.get("HOME") or os.path.expanduser("~"))
    found = [here]
    # What holds the home directory is no project either.
    while len(found) < MAX_LEVELS and not _inside(home, found[-1:]):
        # A worktree or a submodule has a file of that name.
        if os.path.lexists(os.path.join(found[-1], ".git")):
            return tuple(reversed(found))
        parent = os.path.dirname(found[-1])
        if parent == found[-1]:
            break
        found.append(parent)
    return (here,)


class _Reader:
    """Collects files and their includes, within the bounds."""

    def __init__(self) -> None:
        self._sections: list[str] = []
        self._files: list[str] = []
        self._notices: list[str] = []
        self._room = MAX_CHARS

    def add(self, path: str, what: str, roots: Sequence[str]) -> None:
        """One AGENTS.md, if it is there. Without `roots` it is the user's own, and may lie anywhere."""
        if not os.path.lexists(path):
            return
        real = os.path.realpath(path)
        if roots and not _inside(real, (os.path.dirname(path),)):
            self._notices.append(f"`{path}` is a link that leaves its directory. It is ignored.")
            return
        allowed = tuple(roots) or (os.path.realpath(os.path.dirname(path)), os.path.dirname(real))
        text = "\n".join(self._lines(path, real, allowed, ())).strip()
        if text:
            self._append(f"Contents of {path} ({what}):\n\n{text}")

    def result(self) -> Instructions:
        """The whole section."""
        text = "\n\n".join([_PREAMBLE, *self._sections]) if self._sections else ""
        return Instructions(text, tuple(self._files), tuple(map(printable_line, self._notices)))

    def _append(self, section: str) -> None:
        if not self._room:
            return
        if len(section) > self._room:
            self._notices.append(
                f"The instructions in {NAME} files are longer than {MAX_CHARS} characters. The rest is ignored."
            )
            section = section[: self._room] + "\n[... the rest was cut: it is too long]"
        self._room = max(0, self._room - len(section))
        self._sections.append(section)

    def _lines(self, path: str, real: str, roots: tuple[str, ...], within: tuple[str, ...]) -> list[str]:
        """A file's lines, those of its includes in their places."""
        text = self._read(real)
        if text is None:
            return []
        self._files.append(path)
        lines: list[str] = []
        mentions = os.path.basename(path) == NAMES[1]
        fence = ""
        for line in text.splitlines():
            fence = _fence_after(line, fence)
            included = None if fence else _included(line)
            if included is None:
                lines.append(line)
            else:
                lines += self._include(included, real, roots, (*within, real))
                continue
            for name in _mentioned(line) if mentions and not fence else ():
                lines += self._include(name, real, roots, (*within, real))
        return lines

    def _include(self, name: str, includer: str, roots: tuple[str, ...], within: tuple[str, ...]) -> list[str]:
        path = os.path.join(os.path.dirname(includer), os.path.expanduser(name))
        real = os.path.realpath(path)
        problem = None
        if not real.lower().endswith(SUFFIXES):
            problem = f"only {', '.join(SUFFIXES)} files can be included"
        elif not _inside(real, roots):
            problem = (
                "it is outside of the workspace" if len(roots) == 1 else "it is not in the directory of the user's file"
            )
        elif real in within:
            problem = "it would include itself"
        elif len(self._files) >= MAX_FILES:
            problem = f"there are more than {MAX_FILES} files of instructions"
        elif len(within) > MAX_DEPTH:
            problem = f"includes are nested more than {MAX_DEPTH} deep"
        elif not os.path.exists(real):
            problem = "there is no such file"
        if problem is None:
            return self._lines(path, real, roots, within)
        self._notices.append(f"`@{name}` in `{includer}` is left out: {problem}.")
        return []

    def _read(self, path: str) -> str | None:
        try:
            contents = read_regular(path, MAX_FILE_BYTES)
        except NotRegular:
            self._notices.append(f"`{path}` is not a file. It is ignored.")
            return None
        except OSError as error:
            self._notices.append(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}. It is ignored.")
            return None
        if contents.cut:
            self._notices.append(f"`{path}` is longer than {MAX_FILE_BYTES} bytes. The rest is ignored.")
        return contents.data.decode("utf-8-sig", "replace")


def _inside(real: str, roots: Sequence[str]) -> bool:
    return any(paths.is_within(real, root) for root in roots)


def _included(line: str) -> str | None:
    """The path of a line that is an include."""
    path = line.strip()
    if len(path) < 2 or not path.startswith("@") or "\0" in path or any(map(str.isspace, path)):
        return None
    # `@someone` is a person; a path has a directory or an ending.
    return path[1:] if "/" in path or "." in path else None


def _mentioned(line: str) -> list[str]:
    """The paths that a line of other words includes. What stands in backticks is code."""
    return _MENTION.findall(_CODE.sub("", line))


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line; empty if none is."""
    stripped = line.strip()
    mark = stripped[:3]
    if fence:
        closing = stripped.startswith(fence) and not stripped.strip(fence[0])
        return "" if closing else fence
    if mark not in ("```", "~~~"):
        return ""
    return mark[0] * (len(stripped) - len(stripped.lstrip(mark[0])))
