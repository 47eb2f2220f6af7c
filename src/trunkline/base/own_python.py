"""How Python programs are started, ours and others: with no modules of the directory that they run in.

Every process that is one of our own modules is started with this, by the Python that runs here, wherever we are. `-P`
leaves the current directory out of the search for modules: a `trunkline.py` or `mcp.py` that lies in somebody's
repository must not be taken for ours. Nor is it to be taken for a part of an agent or server that somebody configured.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

_FLAGS = ("-P", "-X", "utf8")

_PYTHON = re.compile(r"python[\d.]*")
#: Programs that run the one behind them: their options whose value is the next word, and how many words come first.
_WRAPPERS = {
    "env": (("-u", "--unset", "-C", "--chdir"), 0),
    "nice": (("-n", "--adjustment"), 0),
    "ionice": (("-c", "--class", "-n", "--classdata"), 0),
    "nohup": ((), 0),
    "setsid": ((), 0),
    "stdbuf": (("-i", "--input", "-o", "--output", "-e", "--error"), 0),
    "timeout": (("-k", "--kill-after", "-s", "--signal"), 1),
}
#: `env` with words of a command in one text; it has escapes and variables of its own, which are left to it.
_SPLIT = re.compile(r"(?:-S|--split-string=?)(.*)", re.DOTALL)
_ENVS_OWN = re.compile(r"[\\$#]")
#: Options in one word: those without a value, one that has a value, and that. Behind `-c` and `-m` they end.
_OPTIONS = re.compile(r"-([A-Za-z]*?)([cmWX]?)((?<=[cmWX]).*)?")


def script_command(path: str, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """The command line that runs a file of ours which needs the standard library alone: nothing else is looked for."""
    return (sys.executable, "-I", "-S", path, *arguments)


def module_command(module: str, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """The command line that runs a module of ours."""
    return (sys.executable, *_FLAGS, "-m", module, *arguments)


def safe_python(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line of somebody's with `-P` for a Python that is told a module or code; any other as it is.

    Such a Python looks for modules, also for those of its own library, in the directory where it runs first: whoever
    has written a file there, in a repository that was cloned, would be run. Before 3.11 it does not know `-P`, and says
    so. Launchers whose purpose is to run what a directory holds (`uv run`, `npx`) do that.
    """
    argv = _words(argv)
    place = _behind_wrappers(argv)
    if place >= len(argv) or _PYTHON.fullmatch(os.path.basename(argv[place])) is None:
        return argv
    safe = (*argv[: place + 1], "-P", *argv[place + 1 :])
    is_value = False
    for word in argv[place + 1 :]:
        if is_value:
            is_value = False
            continue
        if word == "-":
            return safe
        if (options := _OPTIONS.fullmatch(word)) is None:
            return argv
        plain, last, value = options.groups()
        if {"I", "P"} & set(plain):
            return argv
        if last in ("c", "m"):
            return safe
        is_value = bool(last) and not value
    # Told nothing, it reads code from standard input.
    return safe


def _words(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line with `env -S "python3 -m x"` taken apart as `env` does it, where it is plain."""
    if os.path.basename(argv[0]) != "env" or len(argv) < 2 or (found := _SPLIT.fullmatch(argv[1])) is None:
        return tuple(argv)
    import shlex  # for this alone, and a turn of a bridge is short

    text, rest = (found[1], argv[2:]) if found[1] else (argv[2] if len(argv) > 2 else "", argv[3:])
    try:
        inner = shlex.split(text)
    except ValueError:
        return tuple(argv)
    return tuple(argv) if _ENVS_OWN.search(text) or not inner else (argv[0], *inner, *rest)


def _behind_wrappers(argv: Sequence[str]) -> int:
    """Where the program stands that is really run; the end if there is none."""
    place = 0
    while place < len(argv) and (found := _WRAPPERS.get(os.path.basename(argv[place]))) is not None:
        with_value, first = found
        is_env = os.path.basename(argv[place]) == "env"
        place += 1
        while place < len(argv):
            word = argv[place]
            if word.startswith("-") and len(word) > 1:
                place += 2 if word in with_value else 1
            elif (is_env and "=" in word) or word == "-":
                place += 1
            elif first:
                place, first = place + 1, first - 1
            else:
                break
    return place
