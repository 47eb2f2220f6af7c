"""Environments with programs of other people, from a package index; made once and kept in the user's cache.

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

#: A slow line and an empty cache: dozens of packages.
INSTALL_SECONDS = 240

#: The peers that speak AgentProc: the last release with protocol 0.1, and the newest one.
AGENTPROC_01 = ("agentproc==0.4.2",)
AGENTPROC_04 = ("agentproc==0.20.0",)

_CACHE = Path.home() / ".cache" / "trunkline-tests" / "environments"
_COMPLETE = "complete"


class NotInstalled(Exception):
    """An environment could not be made; the text says why."""


def environment(requirements: tuple[str, ...]) -> Path:
    """The folder of the programs of an environment that holds these.

    Raises:
        NotInstalled: it is not there and cannot be made.
    """
    pins = "\n".join((sys.version, *requirements))
    place = _CACHE / hashlib.sha256(pins.encode()).hexdigest()[:16]
    with _locked(place.with_suffix(".lock")):
        if not (place / _COMPLETE).exists():
            _make(place, requirements)
    return place / "bin"


def npm_environment(packages: tuple[str, ...]) -> Path:
    """The folder `node_modules` of an environment that holds these packages of npm, such as `solc@0.8.30`.

    Their installation scripts are not run.

    Raises:
        NotInstalled: it is not there and cannot be made.
    """
    place = _CACHE / f"npm-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:16]}"
    with _locked(place.with_suffix(".lock")):
        if not (place / _COMPLETE).exists():
            _make_npm(place, packages)
    return place / "node_modules"


def _make(place: Path, requirements: tuple[str, ...]) -> None:
    """Make it, from scratch."""
    shutil.rmtree(place, ignore_errors=True)
    pip = (str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input")
    _run((sys.executable, "-m", "venv", str(place)), (*pip, "install", "--quiet", *requirements))
    (place / _COMPLETE).touch()


def _make_npm(place: Path, packages: tuple[str, ...]) -> None:
    """Make one with packages of npm, from scratch."""
    shutil.rmtree(place, ignore_errors=True)
    # A folder above with a package.json of its own would take the packages in.
    place.mkdir(parents=True)
    (place / "package.json").write_text("{}\n")
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", "--loglevel=error")
    _run(("npm", "install", "--prefix", str(place), *quiet, *packages))
    (place / _COMPLETE).touch()


def _run(*commands: tuple[str, ...]) -> None:
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise NotInstalled(f"it took more than {INSTALL_SECONDS} s") from None
        except FileNotFoundError:
            raise NotInstalled(f"there is no `{command[0]}`") from None
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise NotInstalled(said[-1] if said else f"exit code {done.returncode}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Runs side by side wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
