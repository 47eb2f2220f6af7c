"""The words of a shell command that say what is run, where that is certain; what else it has are files and names.

Nothing here is a guess. A command that could hold a second one, by a separator, a pipe, a substitution, a redirection,
a pattern or a variable in front, has no words, whatever it begins with. First words are said of programs that are
known to look, or to check and keep what is in their directory, whatever files they are given. Options can make nearly
every one of them run something else, or write anywhere, so they belong to what is granted, each with the word behind
it, which may be its value. Of all other programs, only the whole command says what it does.

Imported when somebody grants a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from shlex import split

from trunkline.base.patterns import LONGEST_PATH

#: Files that one command may be given. Of more, nobody waits until they are looked up.
MOST_FILES = 2_000
#: What a shell may take for more than a letter, within quotes, too: with one of these a command is not looked into.
_SPECIAL = re.compile(r"[^\w .,:/@%+=~^'\"-]")
#: A program of the system, by its name. One by another path is whatever somebody has put there.
_PROGRAM = re.compile(r"(?:/usr/bin/|/bin/)?([a-z0-9][\w.+-]*)")
#: A file or a name, as it cannot be taken for anything else: an option, a variable of `make`, a list of arguments
#: (`@file`), an address (`host:path`), or a home directory. A test may be named behind its file.
_PLAIN = re.compile(r"[\w.][\w .,/@%+~^-]*(?:\.py(?:::\w+)+)?")
#: What takes no value whatever the program: a number (`head -20`), and the end of the options.
_NUMBER_OR_END = re.compile(r"-[0-9]+|--")

#: Programs whose second word says what they do: those of them that show, check or keep the files that they are given.
#: (`git restore` is none of these: it throws away what somebody has not committed.)
_WITH_FILES = {
    "git": frozenset(("status", "diff", "log", "show", "blame", "shortlog", "describe", "ls-files", "add")),
    "hg": frozenset(("status", "diff", "log", "annotate", "add")),
    "svn": frozenset(("status", "diff", "log", "blame", "add")),
    "ruff": frozenset(("check", "format")),
}
#: Programs that look and tell, or check the code in the workspace. (Not `ps`: its options need no dash, and with `e` it
#: shows what is in everybody's environment.)
_TELLING = frozenset(
    {
        "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "pwd", "echo", "printf", "which", "type",
        "whereis", "file", "stat", "du", "df", "whoami", "uname", "id", "cut", "tr", "nl", "basename",
        "dirname", "realpath", "readlink", "diff", "cmp", "md5sum", "sha1sum", "sha256sum", "true", "false", "test",
        "seq", "pytest", "mypy", "black", "flake8", "eslint", "tsc", "jest", "vitest", "prettier", "phpunit",
        "rspec",
    }
)  # fmt: skip
#: Options that are known to take no value: the word behind them is a file like any other.
_FLAGS = {
    "ls": frozenset(("-l", "-a", "-la", "-al", "-lh", "-lah", "-1", "-R", "-d")),
    "cat": frozenset(("-n",)),
    "wc": frozenset(("-l", "-c", "-w")),
    "grep": frozenset(("-n", "-r", "-i", "-l", "-v", "-w", "-c", "-rn", "-nr", "-rl", "-in", "-ni", "-rni")),
    "pytest": frozenset(("-q", "-v", "-vv", "-x", "-s", "-l", "--lf", "--ff")),
    "git status": frozenset(("-s", "--short")),
    "git diff": frozenset(("--stat", "--cached", "--staged", "--name-only")),
    "git log": frozenset(("--oneline", "--stat", "-p")),
    "git show": frozenset(("--oneline", "--stat")),
    "git add": frozenset(("-A", "-u", "-v")),
}


def first_words(command: str) -> str:
    """What a grant is for: the program, what it is to do, and its options. Nothing if only all of it says that."""
    first, _ = _divided(words(command))
    return first


def stays_inside(first: Sequence[str], found: Sequence[str], workspace: str) -> bool:
    """Whether the words of a command are these first words, and else nothing but files and names in the workspace.

    Looks at the disk: a link that leads out of the workspace is not in it.
    """
    divided, names = _divided(list(found))
    if divided != " ".join(first):
        names = list(found[len(first) :])
        if list(found[: len(first)]) != list(first) or not all(map(_is_plain, names)):
            return False
    if len(names) > MOST_FILES or any(len(name) > LONGEST_PATH for name in names):
        return False
    root = os.path.realpath(workspace)
    # A test is named behind its file.
    places = [os.path.realpath(os.path.join(root, name.partition("::")[0])) for name in names]
    return all(place == root or place.startswith(root.rstrip(os.sep) + os.sep) for place in places)


def words(command: str) -> list[str]:
    """The words of a command that is one and nothing else; none if that is not certain."""
    if _SPECIAL.search(command):
        return []
    try:
        return split(command)
    except ValueError:
        return []


def _divided(found: list[str]) -> tuple[str, list[str]]:
    """The words that say what is run, as one text, and the files and names. Nothing if these could be more."""
    if not found or not (program := _PROGRAM.fullmatch(found[0])):
        return "", []
    count = 2 if program[1] in _WITH_FILES else 1
    if count == 2 and (len(found) == 1 or found[1] not in _WITH_FILES[program[1]]):
        return "", []
    if count == 1 and program[1] not in _TELLING:
        return "", []
    flags = _FLAGS.get(" ".join((program[1], *found[1:count])), frozenset())
    first, names = found[:count], []
    rest = iter(found[count:])
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
            continue
        first.append(word)
        if word not in flags and not _NUMBER_OR_END.fullmatch(word) and (value := next(rest, None)) is not None:
            first.append(value)
    # A word with a blank in it would look like two.
    if any(" " in word or not word for word in first) or not all(map(_is_plain, names)):
        return "", []
    return " ".join(first), names


def _is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and ".." not in name.split("/")
