"""How programs of ours are started: by the Python that runs here, wherever we are.

Every process that is one of our own modules is started with this. `-P` leaves the current directory out of the search
for modules: a `trunkline.py` or `mcp.py` that lies in somebody's repository must not be taken for ours.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_FLAGS = ("-P", "-X", "utf8")


def script_command(path: str, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """The command line that runs a file of ours which needs the standard library alone: nothing else is looked for."""
    return (sys.executable, "-I", "-S", path, *arguments)


def module_command(module: str, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """The command line that runs a module of ours."""
    return (sys.executable, *_FLAGS, "-m", module, *arguments)
