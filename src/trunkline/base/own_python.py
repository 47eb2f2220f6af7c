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
#: Options of `env` whose value is the next word: not the program.
_ENV_VALUES = ("-u", "--unset", "-C", "--chdir")
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
    so.
    """
    place = _behind_env(argv) if os.path.basename(argv[0]) == "env" else 0
    if _PYTHON.fullmatch(os.path.basename(argv[place])) is None:
        return tuple(argv)
    is_value = False
    for word in argv[place + 1 :]:
        if is_value:
            is_value = False
            continue
        if (options := _OPTIONS.fullmatch(word)) is None:
            break
        plain, last, value = options.groups()
        if {"I", "P"} & set(plain):
            break
        if last in ("c", "m"):
            return (*argv[: place + 1], "-P", *argv[place + 1 :])
        is_value = bool(last) and not value
    return tuple(argv)


def _behind_env(argv: Sequence[str]) -> int:
    """Where the program stands that `env` runs; 0 if it runs none."""
    is_value = False
    for index, word in enumerate(argv[1:], 1):
        if not is_value and "=" not in word and not word.startswith("-"):
            return index
        is_value = not is_value and word in _ENV_VALUES
    return 0
