"""Environments with MCP servers of other people, from a package index; made once and kept in the user's cache.

Outside of the checkout and outside of our own environment, as any user has them. The exact versions are pinned; other
pins make another environment.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import require

#: With the first generation of the SDK, and a proxy that serves any of them by HTTP.
PROXIED = ("mcp==1.30.0", "mcp-proxy==0.13.0", "mcp-server-time==2026.8.18")
#: With the second generation of the SDK.
CURRENT = ("mcp==2.3.0", "mcp-server-git==2026.10.19")

#: A slow line and an empty cache: thirty packages.
INSTALL_SECONDS = 240

_CACHE = Path.home() / ".cache" / "trunkline-tests" / "mcp"
_COMPLETE = "complete"


def environment(requirements: tuple[str, ...]) -> Path:
    """The folder of the programs of an environment that holds these. Without it, the test does not go on."""
    pins = "\n".join((sys.version, *requirements))
    place = _CACHE / hashlib.sha256(pins.encode()).hexdigest()[:16]
    with _locked(place.with_suffix(".lock")):
        problem = "" if (place / _COMPLETE).exists() else _make(place, requirements)
    require(", ".join(requirements), not problem, f"they could not be installed: {problem}")
    return place / "bin"


def _make(place: Path, requirements: tuple[str, ...]) -> str:
    """Make it, from scratch; what went wrong, if anything did."""
    shutil.rmtree(place, ignore_errors=True)
    pip = (str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input")
    for command in ((sys.executable, "-m", "venv", str(place)), (*pip, "install", "--quiet", *requirements)):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"it took more than {INSTALL_SECONDS} s"
        if done.returncode:
            return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    (place / _COMPLETE).touch()
    return ""


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Test runs side by side wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
