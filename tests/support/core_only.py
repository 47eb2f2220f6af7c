"""Runs commands as after an installation without any extra. A program: it reads JSON lists of arguments, one per line.

For each it prints a JSON object with the exit code and what the command said. Each runs in a child of its own, which is
forked off a process that has loaded nothing but the command line.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions, requires
from pkgutil import walk_packages
from types import ModuleType

#: In place of a command: import all that the command line consists of.
EVERY_MODULE = "import every module"
#: How long a command may take: those that would serve for ever end by what they lack.
SECONDS = 60


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def core(distribution: str) -> set[str]:
    """A distribution, and all that it needs without extras."""
    found, left = set[str](), [distribution]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += [_name(each) for each in _requires(name) if "extra ==" not in each]
    return found


def _requires(name: str) -> Iterable[str]:
    try:
        return requires(name) or ()
    except ModuleNotFoundError:
        # For another system, or for another Python.
        return ()


class CoreOnly:
    """Finds what is there, but for modules that only an extra brings."""

    def __init__(self) -> None:
        here = core("trunkline")
        self._hidden = {
            module
            for module, owners in packages_distributions().items()
            if here.isdisjoint(owner.lower().replace("_", "-") for owner in owners)
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if name.partition(".")[0] in self._hidden else PathFinder.find_spec(name, path, target)


def run(arguments: Sequence[str]) -> int:
    """Run a command as the shell would; gives its exit code."""
    import trunkline.cli
    from trunkline.cli import main

    if list(arguments) == [EVERY_MODULE]:
        for found in walk_packages(trunkline.cli.__path__, "trunkline.cli."):
            import_module(found.name)
        return 0
    sys.argv = ["trunkline", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def apart(arguments: Sequence[str]) -> dict[str, object]:
    """Run it in a child; gives what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.setpgid(0, 0)
        for stream in (1, 2):
            os.dup2(writing, stream)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        signal.alarm(SECONDS)
        try:
            code = run(arguments)
        except BaseException:
            traceback.print_exc()
            code = 3
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return {"arguments": arguments, "code": os.waitstatus_to_exitcode(status), "said": text}


def main() -> None:
    sys.meta_path[:] = [CoreOnly() if each is PathFinder else each for each in sys.meta_path]
    import trunkline.cli.app  # noqa: F401  # for all of them

    for line in sys.stdin:
        print(json.dumps(apart(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
