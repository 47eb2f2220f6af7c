"""For tests with real processes: who lives, and waiting for it with a bound."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.process import Child
from trunkline.base.process_pump import pump

LOOK_SECONDS = 0.005

#: Starts a daemon in the old way: fork, setsid, fork. Prints its pid. `sys.argv[1:]` is what it runs.
DAEMONIZE = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.execvp(sys.argv[1], sys.argv[1:])
    os._exit(0)
os.wait()
"""


def python(script: str, *args: str) -> list[str]:
    """A quick Python (no site) that runs `script`."""
    return [sys.executable, "-S", "-E", "-c", script, *args]


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def exists(pid: int) -> bool:
    """Whether a process exists, be it as a zombie."""
    return Path(f"/proc/{pid}").exists()


def marked(mark: str) -> list[int]:
    """The live processes whose environment holds `mark`, but not this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment and int(entry.name) != os.getpid() and is_alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> float:
    """Wait for `condition`; returns the seconds that it took, fails after `seconds`."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "waited in vain"
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - begun


def read_line(fd: int | None) -> str:
    """One line from a pipe that is known to bring one."""
    assert fd is not None
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        assert byte, f"the pipe ended after {line!r}"
        line += byte
    return line.decode().strip()


def read_all(child: Child, data: bytes = b"") -> tuple[bytes, bytes]:
    """What a child says on standard output and standard error."""
    said: dict[str, bytes] = {"stdout": b"", "stderr": b""}
    for name, chunk in pump(child, data, timeout=PATIENCE_SECONDS):
        said[name] += chunk
    return said["stdout"], said["stderr"]


def start_parent(script: str, *args: str) -> subprocess.Popen[str]:
    """A Python process that runs `script`, in which `spawn` and `os` are imported; with its pipes."""
    preamble = """
import os, signal, sys, threading, time
from trunkline.base.process import spawn
from trunkline.base.process_guard import guard
"""
    return subprocess.Popen(
        [sys.executable, "-c", preamble + script, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def run_parent(script: str, *args: str) -> str:
    """What such a process prints, when it ends well."""
    with start_parent(script, *args) as parent:
        said, _ = parent.communicate(timeout=PATIENCE_SECONDS)
    assert parent.returncode == 0
    return said
