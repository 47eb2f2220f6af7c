"""Commands of a shell that make more of their words than words, and what a value would have to be for that.

`test -v 'a[$(rm x)]'` and `echo $((i))`, with that text in `i`, run `rm`: where a shell looks for the place of a
variable, or counts, it also runs what it finds there. So does `find . $i` with `-exec rm x ;` in `i`. A line is read as
if that could not happen only while all that it puts into variables are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from trunkline.core.shell_words import ASSIGNMENT, UNKNOWN, ShellWord, SimpleCommand

#: What gives variables a value that only the shell knows.
_SETTING = frozenset(
    ("read", "mapfile", "readarray", "getopts", "set", "eval", "source", ".", "vared", "zparseopts", "print", "shift")
)
#: What gives them the one that stands there.
_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly", "integer", "float"))
#: What looks for the places of variables that are named, counts, or runs what it is told to.
_LOOKING = frozenset(
    {
        "unset", "read", "let", "mapfile", "readarray", "wait", "getopts", "compgen", "complete", "bind", "fc", "print",
        "vared", "zmodload", "zle", "sched", *_DECLARING,
    }
)  # fmt: skip
#: Programs with options that make another program of a name, or run what stands behind them.
_TURNING = {
    "hash": re.compile(r"-\w*p"),
    "enable": re.compile(r"-\w*f"),
    "mapfile": re.compile(r"-\w*C"),
    "readarray": re.compile(r"-\w*C"),
    "compgen": re.compile(r"-\w*[CF]"),
    "complete": re.compile(r"-\w*[CF]"),
    "bind": re.compile(r"-\w*x"),
}
#: Variables by which other programs are found, or others are run before them.
_DECIDING = frozenset(
    {
        "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "BASH_ENV",
        "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "FPATH", "GIT_EXEC_PATH",
    }
)  # fmt: skip
#: Those with which git takes its configuration from the environment, and with that what its words stand for.
_GIT_CONFIGURATION = re.compile(r"GIT_CONFIG(?!_NOSYSTEM)")
_NUMBER = re.compile(r"-?\d*|\{\d+\.\.\d+(?:\.\.\d+)?\}|\$\(\([\w \t+\-*/%<>=!|&?:,~^$]*\)\)|\$[?#!$]", re.ASCII)
_RUNS = re.compile(r"\$\(|`|\$\{")
_COUNTED = re.compile(r"%[^%a-zA-Z]*[^%sbqcn\W]")


def is_number(source: str) -> bool:
    """Whether a value, as it is written, comes to a number, or to several, or to nothing."""
    return _NUMBER.fullmatch(source) is not None


def sets_texts(command: SimpleCommand) -> bool:
    """Whether a command may put something into a variable that is no number."""
    if not all(is_number(each.partition("=")[2]) for each in command.assignments):
        return True
    program, words = _divided(command)
    if program in _DECLARING:
        return any("=" in word.source and not is_number(word.source.partition("=")[2]) for word in words)
    return program in _SETTING or (program == "printf" and any(word.text.startswith("-v") for word in words))


def decides(command: SimpleCommand, program: str) -> bool:
    """Whether a variable is set by which other programs are found or run, or git is to look into one for that."""
    if program == "git" and any(word.text.startswith("--config-env") for word in command.words):
        return True
    words = [word.text for word in command.words if ASSIGNMENT.match(word.text)] if command.words else []
    names = [each.partition("=")[0].rstrip("+") for each in (*command.assignments, *words)]
    return any(name in _DECIDING or _GIT_CONFIGURATION.match(name) for name in names)


def names_set(command: SimpleCommand) -> Sequence[str] | None:
    """The variables that a command sets in another way than by an assignment; None if it could be any."""
    program, words = _divided(command)
    if program in ("read", "mapfile", "readarray") or program in _DECLARING or program == "printf":
        return [re.split(r"[\[+=]", word.text.removeprefix("-v"))[0] for word in words] + ["REPLY", "MAPFILE"]
    return None if program in _SETTING or program in ("unset", "let") else ()


def counts_later(command: SimpleCommand) -> bool:
    """Whether a variable is to be counted with whenever it is set, or to stand for another one."""
    program, words = _divided(command)
    options = (word.text for word in words if word.text[:1] in ("-", "+"))
    return program == "integer" or (program in _DECLARING and any("i" in each or "n" in each for each in options))


def is_counted(assignment: str) -> bool:
    """Whether the place in a variable, as in `a[i]=1`, has to be found first."""
    place = assignment.partition("=")[0].partition("[")[2].rstrip("+")
    return bool(place) and not is_number(place.removesuffix("]"))


def evaluates(command: SimpleCommand) -> bool:
    """Whether a command may run what is in its words."""
    program, words = _divided(command)
    option = _TURNING.get(program)
    if option is not None and any(option.match(word.text) for word in words):
        return True
    if program in ("test", "["):
        return _tests(words)
    if program == "printf":
        names = any(word.text.startswith("-v") for word in words[:2])
        counts = not words or not words[0].static or _COUNTED.search(words[0].text) is not None
        return any(map(_is_loaded, words)) or ((names or counts) and any(word.open for word in words))
    return program in _LOOKING and any(_is_loaded(word) or word.open for word in words)


def _divided(command: SimpleCommand) -> tuple[str, Sequence[ShellWord]]:
    """The program, where it is one of the shell's own, and its arguments."""
    words = command.words
    before = takewhile(lambda word: word.text in ("builtin", "command", "noglob", "-", "exec"), words[:-1])
    words = words[sum(1 for _ in before) :]
    return (words[0].text if words and words[0].static else ""), words[1:]


def _is_loaded(word: ShellWord) -> bool:
    """Whether what a program gets, as it is written, has a command in it."""
    return _RUNS.search(word.text) is not None


def _tests(words: Sequence[ShellWord]) -> bool:
    """`[ -v NAME ]` looks for it, and zsh counts with `-eq`; what else may be one of these, only the shell knows."""
    if any(map(_is_loaded, words)):
        return True
    opened = [word for word in words if word.open]
    if any(word.text in ("-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-t") for word in words):
        return bool(opened)
    # The operator stands first, or between two.
    told = [word for word in words if word.text not in ("!", "]")]
    operator = told[:1] if len(told) < 3 else told[1:2]
    return not all(map(_is_quoted, opened)) or len(told) > 3 or any(UNKNOWN in word.text for word in operator)


def _is_quoted(word: ShellWord) -> bool:
    """Whether one word comes of it."""
    return word.source.startswith('"') and word.source.endswith('"') and word.source.count('"') == 2
