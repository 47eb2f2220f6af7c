"""Which files git ignores: `.gitignore` in every directory, and `.git/info/exclude`.

    ignore = Ignore.above("/repo/src")          # the rules that hold in a directory
    inner = ignore.inside("/repo/src/app")      # those that hold one level down
    ignore.ignores("/repo/src/app", is_dir=True)

A directory that is ignored is not entered, so nothing below it can be re-included; the caller who walks does that.
Rules hold whether or not there is a repository, and end where another one begins. A user's own file of rules
(`core.excludesFile`) is not read: what a search finds must not depend on who searches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from trunkline.base.patterns import BadPattern, Segment, match_path, name_regex, segments
from trunkline.base.values import Value
from trunkline.tools.files import open_regular, read_bytes
from trunkline.tools.threads import StopFlag

FILE_NAME = ".gitignore"
REPOSITORY = ".git"

#: What is read of a file of rules. Real ones have a few hundred bytes.
_LARGEST = 1024 * 1024


class Rule(Value):
    """One line of a file of rules. `path` matches the whole path below its directory, `name` the last name alone."""

    negated: bool
    only_directories: bool
    name: str | None
    path: Sequence[Segment] | None


def parse_rule(line: str) -> Rule | None:
    """The rule in a line; `None` for an empty line, a comment, and what can never match."""
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    pattern = line[negated:]
    only_directories = pattern.endswith("/")
    pattern = pattern[: -1 if only_directories else None]
    try:
        if "/" in pattern:
            return Rule(negated, only_directories, None, segments(pattern.removeprefix("/")))
        return Rule(negated, only_directories, name_regex(pattern), None) if pattern else None
    except BadPattern:
        return None


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    # A backslash keeps the space behind it, unless it is itself behind one.
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and len(stripped) < len(line) else stripped


class RuleSet:
    """The rules of one file; the last one that matches decides."""

    def __init__(self, directory: str, text: str) -> None:
        self._prefix = len(directory.rstrip("/")) + 1
        # The deciding one first.
        self._rules = [rule for line in reversed(text.split("\n")) if (rule := parse_rule(line))]
        names = [rule.name for rule in self._rules if rule.name is not None]
        # Nearly every name matches none of them, and this says so in one step.
        self._any_name = re.compile("|".join(names)).fullmatch if names else None
        self._by_name = {name: re.compile(name).fullmatch for name in names}
        self._has_paths = len(names) < len(self._rules)

    def verdict(self, path: str, is_dir: bool) -> bool | None:
        """Whether a path below the directory is ignored; `None` if no rule speaks of it."""
        name = path[path.rfind("/") + 1 :]
        may_match_name = self._any_name is not None and self._any_name(name) is not None
        if not may_match_name and not self._has_paths:
            return None
        names = path[self._prefix :].split("/") if self._has_paths else ()
        for rule in self._rules:
            if rule.only_directories and not is_dir:
                continue
            if rule.name is not None:
                matches = may_match_name and self._by_name[rule.name](name) is not None
            else:
                matches = rule.path is not None and match_path(rule.path, names)
            if matches:
                return not rule.negated
        return None


class Ignore:
    """The rules that hold in one directory, those of the directories above it included. Never changes."""

    def __init__(self, sets: tuple[RuleSet, ...] = ()) -> None:
        # The deepest first: it decides.
        self._sets = sets

    @classmethod
    def above(cls, directory: str) -> Ignore:
        """The rules that hold in a directory: its own, and those above it up to the root of the repository."""
        chain = [os.path.abspath(directory)]
        while not os.path.lexists(os.path.join(chain[-1], REPOSITORY)):
            parent = os.path.dirname(chain[-1])
            if parent == chain[-1]:
                break
            chain.append(parent)
        ignore = cls()
        for folder in reversed(chain):
            ignore = ignore.inside(folder)
        return ignore

    def inside(self, directory: str) -> Ignore:
        """The rules that hold in a directory below."""
        sets = self._sets
        repository = os.path.join(directory, REPOSITORY)
        if os.path.lexists(repository):
            sets = _loaded(directory, os.path.join(repository, "info", "exclude"))
        own = _loaded(directory, os.path.join(directory, FILE_NAME))
        return Ignore(own + sets) if own or sets is not self._sets else self

    def ignores(self, path: str, is_dir: bool) -> bool:
        """Whether a path in the directory is ignored."""
        for rules in self._sets:
            verdict = rules.verdict(path, is_dir)
            if verdict is not None:
                return verdict
        return False


def _loaded(directory: str, file: str) -> tuple[RuleSet, ...]:
    try:
        fd, _ = open_regular(file)
        try:
            data = read_bytes(fd, _LARGEST, StopFlag())
        finally:
            os.close(fd)
    except (OSError, ValueError):
        # Not there, or not readable for us: git does without it as well.
        return ()
    return (RuleSet(directory, data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")),)
