"""Asks a program of this system, and takes its answer."""

from __future__ import annotations

from trunkline.base.process import child_env, spawn
from trunkline.base.process_errors import SpawnError
from trunkline.base.process_pump import pump

#: Far longer than any of them takes.
SECONDS = 120.0


def asked(*argv: str) -> tuple[int, str]:
    """The exit code, and what it wrote to both outputs; 127 where there is no such program."""
    try:
        # In the language that what reads the answer understands.
        with spawn(list(argv), stdout="pipe", stderr="pipe", env=child_env({"LC_ALL": "C"})) as child:
            said = b"".join(data for _, data in pump(child, timeout=SECONDS))
            return child.wait(), said.decode("utf-8", "replace")
    except (SpawnError, TimeoutError):
        return 127, ""
