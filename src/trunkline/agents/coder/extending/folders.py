"""Where users and workspaces keep what they extend the agent with: a folder for each kind, in several places.

    the user's   `skills` beside the configuration file, `~/.trunkline/skills`, `~/.claude/skills`, and aionrs' own
    workspaces'  `.trunkline/skills`, `.aionrs/skills`, `.claude/skills`, in the workspace and in the directories above
                 it that belong to the same repository

and likewise `commands`, `agents` and `output-styles`. The first place counts most: the words of a workspace, which may
be somebody else's, do not take the place of the user's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from trunkline.agents.coder.instructions import project_directories
from trunkline.base import paths
from trunkline.base.values import Value

#: Folders of a directory, the one that counts most first. Hosts and other agents use the last two.
NAMES = (".trunkline", ".aionrs", ".claude")
#: Folders that are looked into for one kind: a link to the root of the disk must not keep anybody waiting.
MOST_FOLDERS = 20_000


class ExtensionFolder(Value):
    """One place. `own`: it is the user's, and not a workspace's."""

    path: str
    own: bool
    here: bool = False
    """It is in the workspace itself, and not above it."""
    root: str = ""
    """The directory of the workspace that has it."""


def folders(kind: str, workspace: str, environ: Mapping[str, str] = os.environ) -> tuple[ExtensionFolder, ...]:
    """The places for one kind, such as `skills`, the one that counts most first. They need not exist."""
    found: dict[str, ExtensionFolder] = {}
    for place in (*_users(kind, environ), *_workspaces(kind, workspace, environ)):
        # Who works in the home directory has the user's own there, and nothing else.
        found.setdefault(os.path.abspath(place.path), place)
    return tuple(found.values())


def _users(kind: str, environ: Mapping[str, str]) -> Iterator[ExtensionFolder]:
    home = environ.get("HOME", "")
    try:
        yield ExtensionFolder(os.path.join(paths.config_dir(environ), kind), own=True)
    except paths.HomeUnknown:
        # Where files belong is for those to say who cannot do without.
        return
    if os.path.isabs(home):
        yield ExtensionFolder(os.path.join(home, NAMES[0], kind), own=True)
        yield ExtensionFolder(os.path.join(home, NAMES[2], kind), own=True)
    config = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):
        config = os.path.join(home, ".config")
    if os.path.isabs(config):
        yield ExtensionFolder(os.path.join(config, "aionrs", kind), own=True)


def _workspaces(kind: str, workspace: str, environ: Mapping[str, str]) -> Iterator[ExtensionFolder]:
    directories = project_directories(workspace, environ)
    for number, directory in enumerate(reversed(directories)):
        for name in NAMES:
            yield ExtensionFolder(os.path.join(directory, name, kind), own=False, here=number == 0, root=directory)


def is_below(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, both with their links resolved."""
    return paths.is_within(os.path.realpath(path), os.path.realpath(folder))


def is_new(directory: str, seen: set[tuple[int, int]]) -> bool:
    """Whether a folder is there and was not looked into before, wherever links lead; there is an end to them."""
    try:
        found = os.stat(directory)
    except (OSError, ValueError):
        return False
    number = (found.st_dev, found.st_ino)
    if number in seen or len(seen) >= MOST_FOLDERS:
        return False
    seen.add(number)
    return True


def names_in(directory: str) -> list[tuple[str, bool]]:
    """The names in a folder, in order, and whether each is a folder. Hidden ones are left out."""
    try:
        with os.scandir(directory) as entries:
            return sorted((entry.name, _is_folder(entry)) for entry in entries if not entry.name.startswith("."))
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself.
        return False
