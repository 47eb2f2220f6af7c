"""Skills: folders with a `SKILL.md`, which says in its front matter what it is for and in its text how it is done.

    ---
    name: release
    description: How to make a release of this project.
    allowed-tools: Bash(git:*), Read
    ---
    1. ...

Models are told names and descriptions, and read the text when they need it. A folder may lie in another one, and be a
link: hosts link theirs. Of two skills with the same name the first one found counts; the other one is shadowed.

Nothing is read twice: a file that has not changed since it was looked at is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from trunkline.agents.coder.extending.folders import ExtensionFolder, folders, is_below, is_new, names_in
from trunkline.agents.coder.extending.markdown import (
    MAX_DESCRIPTION,
    NAME,
    NAME_RULE,
    head,
    one_line,
    stamp,
    typed,
    usable,
)
from trunkline.base.printable import printable_line
from trunkline.base.values import Value

FILE = "SKILL.md"
#: Folders in folders below `skills`.
MAX_DEPTH = 3
#: Skills in all: a disk full of them must not keep anybody waiting.
MOST_SKILLS = 10_000

#: All that a model is told of all skills, in characters.
LIST_CHARS = 20_000
#: What a description is shortened to, at the least, where not all fit. Of shorter ones a model learns nothing.
LEAST_DESCRIPTION = 100

_INTRODUCTION = (
    "# Skills\n\n"
    "A skill holds instructions for one kind of task. When a task is what one of these describes, call Skill with its "
    "name before you begin, and do what it says. The user may also ask for one as `/name`.\n"
)


class Skill(Value):
    """One skill. `folder` is where it was found, which may be a link."""

    name: str
    description: str
    folder: str
    own: bool
    """It is the user's, and not a workspace's."""
    when: str = ""
    allowed: tuple[str, ...] = ()
    """The rules of `allowed-tools`, as they stand there."""
    granted: tuple[str, ...] = ()
    """Those that count: what a workspace says counts where it is trusted."""
    hidden: bool = False
    """Models are not told of it, and cannot call it; people can."""
    hint: str = ""
    """What arguments look like."""
    flaw: str = ""
    """What is wrong with it that does not keep anybody from using it."""

    @property
    def file(self) -> str:
        """Its `SKILL.md`."""
        return os.path.join(self.folder, FILE)


class BrokenSkill(Value):
    """A folder that was meant to be a skill."""

    folder: str
    problem: str

    @property
    def file(self) -> str:
        """Its `SKILL.md`."""
        return os.path.join(self.folder, FILE)


class SkillSet(Value):
    """All that was found, the ones that count most first."""

    skills: Mapping[str, Skill] = {}
    broken: tuple[BrokenSkill, ...] = ()
    shadowed: tuple[Skill, ...] = ()

    def find(self, name: str) -> Skill | None:
        """A skill by its name, or as that is typed."""
        wanted = typed(name.strip().removeprefix("/"))
        return next((skill for key, skill in self.skills.items() if typed(key) == wanted), None)


class Skills:
    """The skills of one workspace, as they are on the disk."""

    def __init__(self, workspace: str, environ: Mapping[str, str] = os.environ, *, trusted: bool = False) -> None:
        self._workspace = workspace
        self._environ = environ
        self._trusted = trusted
        self._known: dict[str, tuple[object, Skill | BrokenSkill]] = {}
        self.found = SkillSet()
        """As they were when somebody looked last."""

    def look(self) -> SkillSet:
        """Look again. The same object, if nothing has changed. Blocks for as long as the disk needs."""
        known: dict[str, tuple[object, Skill | BrokenSkill]] = {}
        for place, folder in self._folders():
            known[folder] = self._looked_at(place, folder)
        if known != self._known or list(known) != list(self._known):
            self._known = known
            self.found = _sorted(known)
        return self.found

    def _looked_at(self, place: ExtensionFolder, folder: str) -> tuple[object, Skill | BrokenSkill]:
        now = (stamp(os.path.join(folder, FILE)), os.path.realpath(folder))
        before = self._known.get(folder)
        if before is not None and before[0] == now:
            return before
        return now, self._read(place, folder)

    def _read(self, place: ExtensionFolder, folder: str) -> Skill | BrokenSkill:
        trusted = place.own or (self._trusted and place.here)
        file = os.path.join(folder, FILE)
        # A link of its own may only lead to another skill: a repository does not get to show the model the disk.
        if not trusted and not is_below(file, folder) and os.path.basename(os.path.realpath(file)) != FILE:
            return BrokenSkill(folder, "it is a link that leaves its folder")
        found = head(file)
        if found.problem:
            return BrokenSkill(folder, found.problem)
        if not found.matter.given:
            return BrokenSkill(folder, "it has no front matter: `---`, `name`, `description`, `---`")
        if not found.description:
            return BrokenSkill(folder, "it has no `description`")
        said = found.matter.text("name").strip()
        name = said or os.path.basename(folder)
        if not NAME.fullmatch(name):
            return BrokenSkill(folder, f"`{one_line(name, 80)}` cannot be its name: {NAME_RULE}")
        allowed = found.matter.words("allowed-tools")
        return Skill(
            name,
            found.description,
            folder,
            place.own,
            one_line(found.matter.text("when-to-use"), MAX_DESCRIPTION),
            allowed,
            allowed if trusted else (),
            found.matter.yes("disable-model-invocation"),
            one_line(found.matter.text("argument-hint"), LEAST_DESCRIPTION),
            "" if said else f"it has no `name`; it is called `{name}`, as its folder",
        )

    def _folders(self) -> Iterator[tuple[ExtensionFolder, str]]:
        """The folders with a `SKILL.md`, each once, however many links lead there."""
        seen: set[tuple[int, int]] = set()
        count = 0
        for place in folders("skills", self._workspace, self._environ):
            for folder in _walk(place.path, 0, seen):
                yield place, folder
                count += 1
                if count == MOST_SKILLS:
                    return


def listed(found: SkillSet, clean: Callable[[str], str] = str) -> str:
    """What a model is told of the skills, `clean`ed of secrets; nothing if there is none that it could call."""
    offered = [skill for skill in found.skills.values() if not skill.hidden]
    if not offered:
        return ""
    room = LIST_CHARS - len(_INTRODUCTION)
    about = {skill.name: clean(f"{skill.description} {skill.when}".rstrip()) for skill in offered}
    lines = [f"- {name}: {words}" for name, words in about.items()]
    if sum(len(line) + 1 for line in lines) > room:
        lines = _shortened(about, room)
    return "\n".join([_INTRODUCTION, *lines])


def text_of(skill: Skill, args: str) -> str:
    """What a skill says, for the model, with the arguments in their place. Blocks for as long as the disk needs.

    Raises:
        ConfigError: it cannot be used any more.
    """
    body = usable(skill.file).body.strip()
    for variable in ("TRUNKLINE_SKILL_DIR", "CLAUDE_SKILL_DIR", "AIONRS_SKILL_DIR"):
        body = body.replace(f"${{{variable}}}", skill.folder)
    replaced = body.replace("$ARGUMENTS", args)
    if args and replaced == body:
        replaced = f"{body}\n\nARGUMENTS: {args}"
    return f"The folder of this skill: {printable_line(skill.folder)}\n\n{replaced}"


def _shortened(about: Mapping[str, str], room: int) -> list[str]:
    """As many lines as fit, with descriptions as long as they can be if all are to fit."""
    room -= len(_left_out(len(about))) + 1
    spent = sum(len(f"- {name}: ") + 1 for name in about)
    most = max(LEAST_DESCRIPTION, (room - spent) // len(about))
    lines: list[str] = []
    for name, words in about.items():
        line = f"- {name}: {one_line(words, most)}"
        if len(line) + 1 > room:
            break
        room -= len(line) + 1
        lines.append(line)
    missing = len(about) - len(lines)
    return [*lines, _left_out(missing)] if missing else lines


def _left_out(count: int) -> str:
    return f"({count} more did not fit into this list. They can still be called by name.)"


def _sorted(known: Mapping[str, tuple[object, Skill | BrokenSkill]]) -> SkillSet:
    skills: dict[str, Skill] = {}
    taken: set[str] = set()
    broken, shadowed = [], []
    for _, found in known.values():
        if isinstance(found, BrokenSkill):
            broken.append(found)
        elif typed(found.name) in taken:
            shadowed.append(found)
        else:
            taken.add(typed(found.name))
            skills[found.name] = found
    return SkillSet(skills, tuple(broken), tuple(shadowed))


def _walk(directory: str, depth: int, seen: set[tuple[int, int]]) -> Iterator[str]:
    """The folders with a `SKILL.md` below a directory. None is looked into twice, wherever links lead."""
    if not is_new(directory, seen):
        return
    if depth and os.path.lexists(os.path.join(directory, FILE)):
        yield directory
    elif depth < MAX_DEPTH:
        for name, is_folder in names_in(directory):
            if is_folder:
                yield from _walk(os.path.join(directory, name), depth + 1, seen)
