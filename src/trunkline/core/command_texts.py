"""Texts that a command is given in which a program could be told to run something: `sed '1e rm x'`, `vim -c '!rm x'`.

Nobody can list all programs that have a way to run others. So it is the other way round: of every program but those
which are known to do no more with a text than show it, look for it or keep it, a text may hold a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from trunkline.core.shell_words import SimpleCommand
from trunkline.core.shell_wrapped import program_of

#: What makes a word more than a name.
_SEVERAL = re.compile(r"[\s;&|`$(!]")
#: What words look like in a text that is not read as a command.
_TOKEN = re.compile(r"[^\s;&|()<>`\"'\\${}\[\]=,!]+")
#: In a script for `sed`: the command that runs another, which needs no blank behind it.
_SED_RUNS = re.compile(r"(?:^|(?<=[\d$/;{}!\s]))e(?=[\w./])")
#: Programs that run nothing that stands in their texts.
_KEEPING = frozenset(
    {
        "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "cat", "tee", "head", "tail", "wc", "ls",
        "test", "[", "true", "false", ":", "read", "export", "declare", "local", "readonly", "cut", "tr", "uniq", "jq",
        "yq", "diff", "cmp", "patch", "basename", "dirname", "realpath", "touch", "mkdir", "cp", "mv", "rm", "rmdir",
        "ln", "cd", "pushd", "stat", "file", "which", "type", "date", "sleep", "expr", "seq", "logger", "notify-send",
        "base64", "md5sum", "sha256sum", "gh", "glab", "pbcopy", "xclip", "cowsay", "column", "fold", "fmt", "nl",
    }
)  # fmt: skip
#: Those of git that take messages, or look for something.
_GIT_KEEPING = frozenset(
    (
        "commit",
        "tag",
        "log",
        "show",
        "notes",
        "stash",
        "merge",
        "branch",
        "diff",
        "grep",
        "shortlog",
        "add",
        "apply",
        "am",
    )
)


def texts_of(command: SimpleCommand) -> Iterator[str]:
    """Texts of a command that may hold another, as far as nothing better is known of the program."""
    if not is_telling(command):
        return
    program = program_of(command)
    for text in (*(word.text for word in command.words[1:] if _SEVERAL.search(word.text)), *command.given):
        yield _SED_RUNS.sub("e ", text) if program in ("sed", "gsed") else text


def is_telling(command: SimpleCommand) -> bool:
    """Whether the program could be one that runs what it is given."""
    program = program_of(command)
    return program not in _KEEPING and not (program == "git" and _git_command(command) in _GIT_KEEPING)


@lru_cache(maxsize=16)
def tokens(text: str) -> Sequence[str]:
    """The words of a text of whatever kind, programs by their names alone. Every rule asks for those of a line."""
    return [os.path.basename(token) or token for token in _TOKEN.findall(re.sub(r"[\\\"']", "", text))]


def _git_command(command: SimpleCommand) -> str:
    """What git is to do; nothing if it is told more than where to do it."""
    words = iter(command.words[1:])
    for word in words:
        if word.text == "-C":
            next(words, None)
        elif word.text not in ("--no-pager", "-P"):
            return word.text if word.static else ""
    return ""
