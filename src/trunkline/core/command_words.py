"""The words that a shell command begins with, where it is certain that they say what is run.

Nothing here is a guess. A command that could hold a second one, by a separator, a pipe, a substitution, a redirection
or a variable in front, has no words, whatever it begins with. And first words are said of programs that are known: of
all others, which may run whatever they are told, only the whole command says what it does.

Imported when somebody grants a command.
"""

from __future__ import annotations

import re
from shlex import split

#: What a shell may take for more than a letter, within quotes, too: with one of these a command is not looked into.
_SPECIAL = re.compile(r"[^\w .,:/@%+=~^*?\[\]'\"-]")
#: A program's name or path, plain enough that no shell makes another of it.
_PROGRAM = re.compile(r"[\w./+-]+")
#: A word as programs call what they do: not an option, not a file.
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9_-]*")

#: Programs whose second word says what they do.
_WITH_SUBCOMMANDS = frozenset(
    {
        "git", "hg", "svn", "jj", "gh", "glab", "npm", "pnpm", "yarn", "cargo", "rustup", "go", "pip", "pip3", "uv",
        "poetry", "pdm", "conda", "make", "just", "gradle", "mvn", "dotnet", "apt", "apt-get", "dnf", "yum", "pacman",
        "brew", "snap", "systemctl", "aws", "gcloud", "az", "terraform", "tofu", "helm", "flutter", "gem", "bundle",
    }
)  # fmt: skip
#: Second words that run something else, which only what follows them tells; or that could change what later ones run.
_LAUNCHING = frozenset(
    {
        "run", "exec", "x", "dlx", "tool", "shell", "eval", "env", "call", "alias", "config", "rebase", "bisect",
        "submodule", "difftool", "mergetool", "filter-branch", "grep", "foreach", "create", "init",
    }
)  # fmt: skip
#: Programs that look and tell, or check the code in the workspace, whatever follows.
_TELLING = frozenset(
    {
        "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "pwd", "echo", "printf", "which", "type",
        "whereis", "file", "stat", "du", "df", "ps", "date", "whoami", "uname", "id", "cut", "tr", "nl", "basename",
        "dirname", "realpath", "readlink", "diff", "cmp", "md5sum", "sha1sum", "sha256sum", "true", "false", "test",
        "seq", "pytest", "mypy", "ruff", "black", "flake8", "eslint", "tsc", "jest", "vitest", "prettier", "phpunit",
        "rspec",
    }
)  # fmt: skip


def first_words(command: str) -> str:
    """The words that a grant is for: the program, and what it is to do. None if only the whole command says that."""
    found = words(command)
    program = found[0].rpartition("/")[2] if found else ""
    if program in _TELLING:
        return found[0]
    if program not in _WITH_SUBCOMMANDS or len(found) == 1:
        return ""
    return " ".join(found[:2]) if _SUBCOMMAND.fullmatch(found[1]) and found[1] not in _LAUNCHING else ""


def words(command: str) -> list[str]:
    """The words of a command that is one and nothing else; none if that is not certain."""
    if _SPECIAL.search(command):
        return []
    try:
        found = split(command)
    except ValueError:
        return []
    # Of a variable in front, nobody knows what it does to the program.
    return found if found and "=" not in found[0] and _PROGRAM.fullmatch(found[0]) else []
