"""What a command in the sandbox may write to: the workspace and its temporary files, apart from what runs programs.

In the workspace stay as they are: of each repository that is there, the hooks and the configuration, which name
programs that git runs, wherever the configuration says that they are, that of the user, of a repository around the
workspace and of one whose git directory is elsewhere included; at its top, and in a home that lies in it, the
files that make programs run (`core.guarded`), as far as they exist; and our own configuration, sessions and code. With
each of them stays the way to it: a directory or a link that could be renamed would take the wall along, and leave its
place to another.

Nothing is made or changed here: this runs outside of the sandbox, in a
directory in which a command may have put links.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

from trunkline.base.paths import is_within
from trunkline.base.values import Value
from trunkline.core.guarded import starts_programs
from trunkline.tools.sandbox.git_config import NAMED, text_of, users_configuration
from trunkline.tools.sandbox.launcher import SAYS

#: How far below the workspace repositories are looked for, and in how many directories, the nearest first: once in a
#: session, which may take 100 ms, and before every command.
NESTED_DEPTH = 8
NESTED_DIRECTORIES = 2_000
NESTED_NEAR = 100
#: How deep the names of modules are, which may have slashes.
MODULES_DEPTH = 3
#: Repositories, modules and worktrees whose parts are told apart; nothing of further ones can be written.
MOST_PARTS = 200
#: Walls that are built, which takes some 0.3 ms each, before every command. Where there would be more, nothing in the
#: workspace can be written.
MOST_WALLS = 5_000
#: As many links lead from one to the next, as for the kernel.
MOST_LINKS = 40
#: Files that configurations include which are read before every command. With more, nothing in the workspace can be
#: written.
MOST_INCLUDED = 200

#: Of a git directory: what names programs.
_CONFIG, _HOOKS, _WORKTREE_CONFIG, _COMMON = _NAMING = ("config", "hooks", "config.worktree", "commondir")
#: Other systems' directories, and what in them names programs. The rest of them changes with every commit.
_OTHERS = {".hg": ("hgrc",), ".jj": ("repo/config.toml",), ".svn": ()}
#: What others have installed: thousands of directories, and nobody's repository.
_NOT_LOOKED_INTO = frozenset({".git", "node_modules"})
#: A repository whose files are elsewhere, says its configuration.
_WORK_TREE = re.compile(r"^[ \t]*(?:\[core\][ \t]*)?worktree[ \t]*=[ \t]*\"?([^\"\n]*)", re.IGNORECASE | re.MULTILINE)
#: What a `.git` that is a file says.
_GIT_FILE = re.compile(r"\Agitdir:[ \t]*([^\r\n]+)")
#: What makes programs run when somebody logs in, or types a name, where the workspace is or holds a home.
_AT_HOME = frozenset({".config", ".local", ".pam_environment", ".xprofile", ".xinitrc", ".xsession", "bin"})
#: Names on the guarded list that are everybody's at the top of a workspace.
_NOT_AT_THE_TOP = frozenset({"head", "site-packages", ".bin"})


class Walls(Value):
    """Paths for the launcher, below the workspace and in the order in which they are built."""

    keep: tuple[str, ...] = ()
    """Directories that must stay where they are."""
    read: tuple[str, ...] = ()
    """What may only be read, if it is there; links among them stay as they are."""
    make: tuple[str, ...] = ()
    """What has to be there: what is not cannot be kept from being written. A directory ends with a slash."""
    point: tuple[str, ...] = ()
    """Files that have to be there and to say `.`, with which git stays in its own directory."""
    whole: bool = False
    """There is too much to be told apart: nothing in the workspace can be written."""


def nested_repositories(workspace: str, most: int = NESTED_DIRECTORIES) -> list[str]:
    """The `.git` of repositories below the workspace, as far as we look: in at most so many directories."""
    found: list[str] = []
    level, seen = [workspace], 0
    for depth in range(NESTED_DEPTH):
        below: list[str] = []
        for directory in level:
            seen += 1
            if seen > most:
                return found
            for entry in _entries(directory):
                if entry.name == ".git" and depth:
                    found.append(entry.path)
                elif entry.name not in _NOT_LOOKED_INTO and _is_directory(entry):
                    below.append(entry.path)
        level = below
    return found


def walls(workspace: str, nested: Iterable[str] = (), ours: Iterable[str] = (), reserved: Iterable[str] = ()) -> Walls:
    """What stays as it is; `nested` are repositories that were found below, and `ours` directories of our own.

    `reserved` are names at the top of the workspace that nothing may get which is not there yet.
    """
    found = _Found(workspace)
    found.top(reserved)
    found.around()
    if _is_git_directory(workspace):
        found.git_parts(workspace, workspace)
    for git in dict.fromkeys((*nested, *nested_repositories(workspace, NESTED_NEAR))):
        if os.path.lexists(git):
            found.git(git)
    for path in ours:
        found.reads(path)
    found.other_names()
    return found.walls()


class _Found:
    """What was found so far, as `Walls` has it."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._parts: set[str] = set()
        self._included: set[tuple[str, str]] = set()
        self._users_files, self._users_hooks = users_configuration()
        self._several: set[tuple[int, int]] = set()
        """Files with several names, as hard links give them."""
        # In the order in which they were found.
        self._keep: dict[str, None] = {}
        self._read: dict[str, None] = {}
        self._make: dict[str, None] = {}
        self._point: dict[str, None] = {}

    def walls(self) -> Walls:
        """All of it, the outermost first: what lies in something that may only be read needs no wall of its own."""
        keep = sorted(path for path in self._keep if not self._is_covered(path) and path not in self._read)
        read = sorted(path for path in self._read if not self._is_covered(path))
        if len(keep) + len(read) > MOST_WALLS or len(self._included) > MOST_INCLUDED:
            return Walls(read=(self._workspace,), whole=True)
        return Walls(tuple(keep), tuple(read), tuple(self._make), tuple(self._point))

    def keeps(self, path: str) -> None:
        """A directory, and the way to it."""
        way, end, _ = self._way(path)
        self._keep.update(dict.fromkeys((*way, end) if end else way))

    def reads(self, path: str) -> None:
        """What may only be read, if it is there, and the way to it."""
        way, end, missing = self._way(path)
        if not missing:
            self._keep.update(dict.fromkeys(way))
            self._read.update({end: None} if end else {})
            self._note_several(end or path)

    def stays(self, path: str, *, directory: bool = False) -> None:
        """The same; what is missing of it is made."""
        self.reads(path)
        way, _, missing = self._way(path)
        if missing:
            # Nothing can be put into a directory that is empty and may only be read.
            self._make[os.path.join(missing[0], "") if directory or len(missing) > 1 else missing[0]] = None
            self._keep.update(dict.fromkeys(way))
            self._read[missing[0]] = None

    def top(self, reserved: Iterable[str]) -> None:
        """What lies at the top of the workspace, or of a home in it; and what must not lie there."""
        for entry in _entries(self._workspace):
            name = entry.name.casefold()
            if name == ".git":
                self.git(entry.path)
            elif name in _OTHERS and _is_directory(entry):
                self.keeps(entry.path)
                for part in _OTHERS[name]:
                    self.reads(os.path.join(entry.path, part))
            elif starts_programs([entry.name]) and name not in _NOT_AT_THE_TOP:
                self.reads(entry.path)
        for name in reserved:
            path = os.path.join(self._workspace, name)
            self.stays(path, directory=True)
            if os.path.splitext(name)[1] and os.path.isdir(path):
                # The name of a file: somebody was killed who should have removed it, or still works here.
                self._make[os.path.join(path, "")] = None
        home = os.path.realpath(os.path.expanduser("~"))
        if is_within(home, self._workspace):
            for entry in _entries(home):
                if _starts_programs_at_home(entry.name):
                    self.reads(entry.path)

    def around(self) -> None:
        """What is said outside of the workspace of hooks, and of configuration, that may lie in it."""
        for file in self._users_files:
            self.reads(file)
        for hooks in filter(os.path.isabs, self._users_hooks):
            self._hooks(hooks)
        top = self._workspace
        while top != (top := os.path.dirname(top)):
            git = os.path.join(top, ".git")
            if named := _GIT_FILE.match(text_of(git)):
                git = os.path.join(top, named[1].strip())
            if os.path.isdir(git):
                self._named_outside(git, top)

    def other_names(self) -> None:
        """The other names of what may only be read, as far as we look. In the sandbox, none can be made."""
        waiting, seen = [self._workspace], 0
        while waiting and self._several and seen < NESTED_DIRECTORIES:
            directory, *waiting = waiting
            seen += 1
            for entry in _entries(directory):
                if _is_directory(entry):
                    waiting += [] if entry.name in _NOT_LOOKED_INTO else [entry.path]
                elif _file_with_several_names(entry.path) in self._several:
                    self.reads(entry.path)

    def _note_several(self, path: str) -> None:
        if (found := _file_with_several_names(path)) is not None:
            self._several.add(found)

    def git(self, path: str) -> None:
        """A `.git`."""
        config = text_of(os.path.join(path, _CONFIG))
        odd = os.path.islink(path) or not _is_git_directory(path) or _has_links(path)
        # One that says itself where its files are would not be heard beside a `commondir`.
        if not odd and not _WORK_TREE.search(config):
            self.git_parts(path, os.path.dirname(path))
            return
        # A file that names the directory, or something odd: nothing of it changes, nor of what its links lead to.
        self.reads(path)
        for name in _NAMING:
            self.reads(os.path.join(path, name))
        self._links_in(os.path.join(path, _HOOKS))
        self._named(config, path, os.path.dirname(path))
        self._users(os.path.dirname(path))
        if named := _GIT_FILE.match(text_of(path)):
            self._elsewhere(os.path.join(os.path.dirname(path), named[1].strip()), os.path.dirname(path))

    def _elsewhere(self, git: str, top: str) -> None:
        """The git directory that a file names, or, if that is a worktree's, the one which it belongs to."""
        said = git
        if not _is_git_directory(git):
            git = os.path.join(git, text_of(os.path.join(git, _COMMON)).strip())
        git = os.path.realpath(git)
        if not _is_git_directory(git):
            return
        if not _is_below(git, self._workspace):
            self._named_outside(said, top)
        elif _has_links(git):
            self.git(git)
        else:
            # Each worktree has hooks of its own where their place is said from its top.
            self.git_parts(git, top)

    def git_parts(self, git: str, top: str = "") -> None:
        """A git directory, its modules and its worktrees. `top`: where its files are, if its configuration does not say
        so."""
        config = os.path.join(git, _CONFIG)
        said = text_of(config)
        top = top or _work_tree(said, git)
        self._named(said, git, top)
        self._users(top)
        if git in self._parts:
            return
        worktrees = _entries(os.path.join(git, "worktrees"))
        self._parts.update((git, *(worktree.path for worktree in worktrees)))
        if len(self._parts) > MOST_PARTS:
            self.reads(git)
            return
        self.keeps(git)
        per_worktree = "worktreeconfig" in said.lower()
        self.stays(config)
        self._hooks(os.path.join(git, _HOOKS))
        common = os.path.join(git, _COMMON)
        if not os.path.lexists(common) or text_of(common) == SAYS.decode():
            # (Somebody was killed who should have removed it, or still works here.)
            self._point[common] = None
        self._read[common] = None
        self._worktree_config(git, top, make=per_worktree)
        for module in _modules(os.path.join(git, "modules")):
            if _is_git_directory(module):
                self.git_parts(module)
            else:
                self.reads(module)
        for worktree in worktrees:
            for name in (_COMMON, "gitdir"):
                self.reads(os.path.join(worktree.path, name))
            self._worktree_config(worktree.path, top, make=per_worktree)

    def _hooks(self, place: str) -> None:
        """A directory of hooks."""
        self.stays(place, directory=True)
        self._links_in(place)

    def _links_in(self, place: str) -> None:
        """What the links in a directory lead to."""
        for entry in _entries(place):
            if entry.is_symlink():
                self.reads(entry.path)
            self._note_several(entry.path)

    def _worktree_config(self, place: str, top: str, *, make: bool) -> None:
        path = os.path.join(place, _WORKTREE_CONFIG)
        self._named(text_of(path), place, top)
        # Where git would read it, a command would make it.
        (self.stays if make else self.reads)(path)

    def _named_outside(self, git: str, top: str) -> None:
        """What a repository whose git directory lies outside names in the workspace."""
        common = os.path.join(git, text_of(os.path.join(git, _COMMON)).strip())
        for place in (git, common):
            for name in (_CONFIG, _WORKTREE_CONFIG):
                self._named(text_of(os.path.join(place, name)), place, top)
        self._users(top)

    def _users(self, top: str) -> None:
        """The hooks that the user's own configuration names, seen from the top of what git works on."""
        for hooks in self._users_hooks:
            self._hooks(os.path.join(top, hooks))

    def _named(self, config: str, place: str, top: str) -> None:
        """What a configuration names: hooks from the top of what git works on, files from where it lies itself, and
        what these name."""
        for key, quoted, plain in NAMED.findall(config):
            named = os.path.expanduser(quoted or plain.strip())
            if key.lower() != "path":
                self._hooks(os.path.join(top, named))
                continue
            file = os.path.join(place, named)
            self.stays(file)
            if (file, top) not in self._included and len(self._included) <= MOST_INCLUDED:
                self._included.add((file, top))
                self._named(text_of(file), os.path.dirname(file), top)

    def _way(self, path: str) -> tuple[list[str], str, list[str]]:
        """The directories below the workspace that lead to a path, where it ends, if that is there and below, and what
        is missing of it. Links on the way may only be read: nothing can be put in their place."""
        way: list[str] = []
        place, rest, links = os.sep, path.split(os.sep), 0
        while rest:
            name = rest.pop(0)
            if name in ("", os.curdir):
                continue
            if name == os.pardir:
                place = os.path.dirname(place)
                continue
            if _is_below(place, self._workspace):
                way.append(place)
            place = os.path.join(place, name)
            inside = _is_below(place, self._workspace)
            try:
                if not stat.S_ISLNK(os.lstat(place).st_mode):
                    continue
                target = os.readlink(place)
            except FileNotFoundError:
                return way, "", [place, *rest] if inside else []
            except (OSError, ValueError):
                return way, "", []
            if inside:
                self._read[place] = None
            links += 1
            if links > MOST_LINKS:
                return way, "", []
            place = os.sep if os.path.isabs(target) else os.path.dirname(place)
            rest = [*target.split(os.sep), *rest]
        return way, place if _is_below(place, self._workspace) else "", []

    def _is_covered(self, path: str) -> bool:
        while (path := os.path.dirname(path)) != self._workspace and path != os.sep:
            if path in self._read:
                return True
        return False


def _starts_programs_at_home(name: str) -> bool:
    return starts_programs([name]) or name in _AT_HOME


def _file_with_several_names(path: str) -> tuple[int, int] | None:
    """Which file it is, if it is one with several names."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 else None


def _work_tree(config: str, git: str) -> str:
    """Where the files of a repository are."""
    said = _WORK_TREE.search(config)
    return os.path.join(git, said[1].strip()) if said else os.path.dirname(git)


def _has_links(git: str) -> bool:
    """A link cannot be kept in its place, and what it names could be named by another."""
    return any(os.path.islink(os.path.join(git, name)) for name in _NAMING)


def _is_git_directory(path: str) -> bool:
    return all(os.path.lexists(os.path.join(path, name)) for name in ("HEAD", "objects"))


def _modules(directory: str) -> list[str]:
    """The git directories of modules, whose names may have slashes; all that is too much or too deep, as a whole."""
    found: list[str] = []
    level, seen = [directory], 0
    for _ in range(MODULES_DEPTH):
        below: list[str] = []
        for place in level:
            entries = [entry.path for entry in _entries(place) if _is_directory(entry)]
            seen += len(entries)
            if seen > NESTED_DIRECTORIES:
                return [directory]
            for path in entries:
                (found if _is_git_directory(path) else below).append(path)
        level = below
    return found + level


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_below(path: str, workspace: str) -> bool:
    return path != workspace and is_within(path, workspace)
