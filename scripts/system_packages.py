"""System packages that the tests need, and how they are installed on Debian.

`TEST_NEEDS` is the one list. Nothing is run when every command in it is already there, and nothing is ever installed
unless this is Debian (or a child of it) and we are root: elsewhere the missing packages are named, and the tests that
need them say so in their summary.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# (command that must be on PATH, or file that must be there; Debian package that brings it)
TEST_NEEDS: tuple[tuple[str, str], ...] = (
    # Not by its name: our own environment has another one.
    ("/usr/bin/flatc", "flatbuffers-compiler"),
    ("/usr/include/flatbuffers/flatbuffers.h", "libflatbuffers-dev"),
    ("chromium", "chromium"),
    ("g++", "g++"),
    ("mcs", "mono-mcs"),
    ("mono", "mono-devel"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("pg_ctlcluster", "postgresql"),
    # For the tasks of `bench/tasks` that are in other languages.
    ("cargo", "cargo"),
    ("go", "golang-go"),
    ("javac", "default-jdk-headless"),
    ("sqlite3", "sqlite3"),
)

# Another apt-get (unattended upgrades, a second clone) may hold dpkg's lock for a while; longer than this is a fault.
DPKG_LOCK_SECONDS = 120


def is_debian(os_release: Path = Path("/etc/os-release")) -> bool:
    """True on Debian and on systems that call themselves like it."""
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    words: list[str] = []
    for line in lines:
        key, _, value = line.partition("=")
        if key in ("ID", "ID_LIKE"):
            words += value.strip("\"'").split()
    return "debian" in words


def may_install() -> bool:
    """True where `apt_install` can work: Debian, root, and apt-get there."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None and is_debian()


def apt_install(packages: list[str]) -> bool:
    """Installs Debian packages; False (with apt-get's own words on stderr) when that failed.

    The package lists are fetched only when the first try fails, as it does in a fresh container without any.
    """
    print(f"trunkline: installing system packages: {' '.join(packages)}", file=sys.stderr, flush=True)
    install = ["install", "-y", "--no-install-recommends", *packages]
    first = _apt_get(install)
    if first.returncode == 0:
        return True
    _apt_get(["update"])
    second = _apt_get(install)
    if second.returncode != 0:
        sys.stderr.write(second.stdout)
    return second.returncode == 0


def ensure(needs: tuple[tuple[str, str], ...] = TEST_NEEDS) -> None:
    """Installs what is missing where it can, and names what is still missing."""
    missing = _missing(needs)
    if missing and may_install():
        apt_install(missing)
        missing = _missing(needs)
    if missing:
        print(
            f"trunkline: these Debian packages (or their like) are missing, and tests that need them cannot run: "
            f"{' '.join(missing)}",
            file=sys.stderr,
        )


def _missing(needs: tuple[tuple[str, str], ...]) -> list[str]:
    return sorted({package for need, package in needs if not _is_there(need)})


def _is_there(need: str) -> bool:
    return os.path.exists(need) if os.path.isabs(need) else shutil.which(need) is not None


def _apt_get(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "-q", "-o", f"DPkg::Lock::Timeout={DPKG_LOCK_SECONDS}", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
