"""The files that a command line names, as far as its words tell: where it reads, and what it writes.

Best effort. A word of a command that is the path of a file, or a pattern for some, is found; what a program finds by
itself, such as `grep -r` below a directory, is not. Who judges a command waits for this: of a line that names very many
files, or whose patterns take a long look at the disk, not all are found, and that is said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal

from trunkline.base.patterns import LONGEST_PATH, BadPattern, expand_braces, name_regex
from trunkline.core.command_texts import is_telling
from trunkline.core.shell_variables import Variables
from trunkline.core.shell_words import UNKNOWN, ShellWord, SimpleCommand
from trunkline.core.shell_wrapped import look_into, program_of

#: Files that one line may name. Whoever names more is asked.
MOST_FILES = 2_000
#: Names in all of their paths, and words that are looked at in one directory after the other: the disk is asked about
#: each of them.
MOST_NAMES = 20_000
#: Entries of directories that are looked at for the patterns of one line.
MOST_ENTRIES = 10_000
#: Names in a path that may have wildcards, if it is to be looked up: the disk is not searched to judge a command.
MOST_WILD = 2
#: Programs that change the files that they are given.
_WRITERS = frozenset(
    {
        "tee", "cp", "mv", "rm", "rmdir", "touch", "mkdir", "chmod", "chown", "chgrp", "ln", "truncate", "install",
        "dd", "patch", "rsync", "unlink", "shred", "sponge", "ed", "ex", "vi", "vim", "nano",
    }
)  # fmt: skip
#: Programs that change them if they have such an option.
_IN_PLACE = {"sed": re.compile(r"-[a-zA-Z]*i|--in-place"), "perl": re.compile(r"-[a-zA-Z0]*i")}
#: Programs that show the files that they are given, or do something else with what is in them.
_READERS = frozenset(
    {
        "cat", "tac", "head", "tail", "less", "more", "nl", "od", "xxd", "hexdump", "strings", "base64", "base32",
        "sort", "uniq", "cut", "paste", "tr", "awk", "gawk", "sed", "grep", "egrep", "fgrep", "rg", "scp", "tar",
        "zip", "gzip", "gunzip", "zcat", "diff", "cmp", "wc", "source", ".", "curl", "view", "bat", "jq", "openssl",
    }
)  # fmt: skip
#: What a word is: sure to be a file, one if it looks like that, or none.
_Kind = Literal["file", "word", "text"]
_FILE: _Kind = "file"
#: Programs that open no files, whatever their words look like.
_TELLING = frozenset(("echo", "printf", "export", "read", "true", "false", ":"))
#: Options that say where something is done.
_ELSEWHERE = re.compile(r"-C|-D|--(?:directory|chdir|cwd|work-tree|prefix)")
_ATTACHED = re.compile(r"-C(?=.)|--(?:directory|chdir|cwd|work-tree|prefix)=")
#: What begins something that only the shell knows.
_FROM_SHELL = re.compile(r"(?![<>]\().*(?:[$`]|~[-+\d])", re.DOTALL)
_BLANK = re.compile(r"\s")
_MOVING = frozenset(("cd", "pushd", "chdir"))
#: Directories that one line may go to.
MOST_DIRECTORIES = 32
#: What `ps` shows if one of its words has this letter and no dash.
_ENVIRONMENTS = "/proc/*/environ"
_PS_WORDS = re.compile(r"[a-zA-Z]*e[a-zA-Z]*")
_PS_VALUES = re.compile(r"-\w*[oOCpuUtgGsqk]|--\w+")


def named_files(command: str, workspace: str, *, written: bool = False) -> tuple[Sequence[str], bool]:
    """The paths that a command line names, and whether these are all; with `written`, those that it would change.

    Which of its directories a line is in when it comes to a word, only the shell knows: a path is one in each of them.
    """
    line = look_into(command)
    names = _Names(Variables(line))
    directories = names.directories(line.commands, workspace)
    paths: dict[str, None] = {}
    seen: set[tuple[ShellWord, _Kind]] = set()
    for each in line.commands:
        words = list(each.words[1:]) if not written or _writes(each) else []
        targets = [redirection.target for redirection in each.redirections if redirection.writes or not written]
        if not written and _shows_environments(each):
            paths[_ENVIRONMENTS] = None
        kind = _kind(each)
        told = dict.fromkeys([*((word, kind) for word in words), *((target, _FILE) for target in targets)])
        # What one command runs in another has the same words.
        fresh = [word for word in told if word not in seen]
        seen.update(fresh)
        for here in directories:
            for word, kind in fresh:
                for path in names.paths(word, here, kind):
                    paths[path] = None
                    if len(paths) > MOST_FILES:
                        return tuple(paths), False
    return tuple(paths), names.complete and names.left >= 0 and names.disk.left >= 0


class _Names:
    """What the words of one line name."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self.disk = _Disk()
        self.left = MOST_NAMES
        """Names and words that may still be looked at; less than none: there were more."""
        self.complete = True

    def directories(self, commands: Sequence[SimpleCommand], workspace: str) -> Sequence[str]:
        """Where a line may be, at one time or another."""
        found = {workspace: None}
        for command in commands:
            for target in _targets(command):
                if self.left < 0:
                    return list(found)
                there = [os.path.normpath(path) for here in found for path in self.paths(target, here, "file")]
                found |= dict.fromkeys(there)
                if len(found) > MOST_DIRECTORIES:
                    self.complete = False
                    return list(found)[:MOST_DIRECTORIES]
        return list(found)

    def paths(self, word: ShellWord, here: str, kind: _Kind) -> Iterator[str]:
        """The paths that a word may stand for in a directory, in full."""
        # A long one takes as long as several.
        self.left -= 1 + len(word.source) // LONGEST_PATH
        if self.left < 0:
            return
        for path in self._named(word, here, kind):
            full = os.path.join(here, path)
            self.left -= 1 + full.count("/")
            if self.left < 0:
                return
            if len(full) <= LONGEST_PATH:
                yield full
            elif kind != "text" and "/" in path and "://" not in path and not _BLANK.search(path):
                # It cannot be looked up.
                self.complete = False

    def _named(self, word: ShellWord, here: str, kind: _Kind) -> Iterator[str]:
        resolved = self._variables.resolved(word, here)
        for each in resolved or ():
            yield from _paths(each, here, self.disk)
        if resolved is not None or not _FROM_SHELL.match(word.source):
            # What a program like `xargs` puts there, it finds by itself, and `<(...)` is what a command tells.
            return
        known = word.text.replace(UNKNOWN, "")
        is_path = "/" in known and "://" not in known
        may_be_path = is_path if kind == "word" else kind == "file" and "://" not in known
        self.complete = self.complete and not may_be_path
        if is_path:
            yield from (os.path.dirname(word.text.partition(UNKNOWN)[0]) or ".", word.text.replace(UNKNOWN, "*"))


def _targets(command: SimpleCommand) -> Iterator[ShellWord]:
    """Where a command goes, or is told to work."""
    if program_of(command) in _MOVING:
        operands = [word for word in command.words[1:] if not word.text.startswith("-")]
        yield from operands or ([_HOME] if program_of(command) != "pushd" else [])
        return
    for word, following in pairwise(command.words):
        if _ELSEWHERE.fullmatch(word.text):
            yield following
    for word in command.words:
        if (option := _ATTACHED.match(word.text)) and word.source.startswith(option[0]):
            yield word.replace(text=word.text[option.end() :], source=word.source[option.end() :])


_HOME = ShellWord("~", "~")


def _kind(command: SimpleCommand) -> _Kind:
    """What the words of a command are."""
    program = program_of(command)
    if program in _READERS or program in _WRITERS:
        return "file"
    return "text" if program in _TELLING or (program == "git" and not is_telling(command)) else "word"


def _shows_environments(command: SimpleCommand) -> bool:
    """`ps e`, `ps auxe`; not `ps -e`."""
    if program_of(command) != "ps":
        return False
    texts = [word.text for word in command.words]
    return any(_PS_WORDS.fullmatch(text) and not _PS_VALUES.fullmatch(before) for before, text in pairwise(texts))


class _Disk:
    """What is there for patterns, within the limit of one line."""

    def __init__(self) -> None:
        self.left = MOST_ENTRIES
        """Entries that may still be looked at; less than none: there were more."""

    def find(self, directory: str, names: Sequence[str]) -> Iterator[str]:
        """What matches the names of a pattern below a directory. Links are followed, and hidden files are found."""
        if not names:
            yield directory
            return
        name, *rest = names
        if not _is_wild(name):
            path = os.path.join(directory, name)
            yield from self.find(path, rest) if os.path.lexists(path) else ()
            return
        fits = re.compile(name_regex(name)).fullmatch
        for found in self._entries(directory):
            if fits(found):
                yield from self.find(os.path.join(directory, found), rest)

    def _entries(self, directory: str) -> Iterator[str]:
        if self.left < 0:
            return
        try:
            with os.scandir(directory or ".") as entries:
                for entry in entries:
                    self.left -= 1
                    if self.left < 0:
                        return
                    yield entry.name
        except (OSError, ValueError):
            # No directory, or none that may be looked into.
            return


def _writes(command: SimpleCommand) -> bool:
    program = program_of(command)
    option = _IN_PLACE.get(program)
    return program in _WRITERS or (option is not None and any(option.match(word.text) for word in command.words))


def _paths(word: ShellWord, workspace: str, disk: _Disk) -> Iterator[str]:
    text = word.text
    # `--file=path`, `if=path`, `@path`, `host:path`.
    texts = {text, text.rpartition("=")[2], text.rpartition("@")[2], text.rpartition(":")[2]}
    if text.startswith("-") and len(text) > 2 and text[1] != "-":
        texts.add(text[2:])
    for each in texts:
        path = os.path.expanduser(each)
        if not path or "\0" in path:
            continue
        if word.is_pattern or "{" in path:
            yield os.path.dirname(path.partition("*")[0].partition("?")[0].partition("[")[0]) or "."
            yield from _on_disk(path, workspace, disk, is_text=word.static)
        yield path


def _on_disk(pattern: str, workspace: str, disk: _Disk, *, is_text: bool) -> Iterator[str]:
    """`is_text`: to the shell, its braces are characters like any other."""
    try:
        alternatives = expand_braces(pattern) if len(pattern) <= LONGEST_PATH else []
    except BadPattern:
        alternatives = []
    if not alternatives and not is_text:
        disk.left = -1
    for alternative in alternatives:
        yield alternative
        names = [name for name in alternative.split("/") if name]
        if not 0 < sum(map(_is_wild, names)) <= MOST_WILD:
            continue
        with suppress(BadPattern):
            # A bracket that is not closed is one like any other character.
            yield from disk.find("/" if alternative.startswith("/") else workspace, names)


def _is_wild(name: str) -> bool:
    return any(char in name for char in "*?[")
