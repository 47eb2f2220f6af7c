"""A process that is killed while it writes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from tests.support.patience import PATIENCE_SECONDS


def lines_until_killed(command: Sequence[str], reports: int) -> list[str]:
    """Let a process write until it has reported so many times, kill it, and give all the lines that it reported."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        seen = b""
        while seen.count(b"\n") < reports:
            piece = os.read(child.stdout.fileno(), 65_536)
            assert piece, "the writer ended by itself"
            seen += piece
        child.send_signal(signal.SIGKILL)
        seen += child.stdout.read()
        assert child.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
    # The last line may itself be cut short.
    return seen[: seen.rindex(b"\n")].decode().splitlines()
