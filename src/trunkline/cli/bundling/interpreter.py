"""The Python that runs us, as a copy that can lie anywhere.

CPython finds its library by looking upwards from its own file, so a copy of both in their places is an installation.
Only the paths to shared libraries are written into it; `libraries` mends these.
"""

from __future__ import annotations

import os
import shutil
import sys
from fnmatch import fnmatch

from trunkline.core.faults import ConfigError

#: Where it is in the bundle.
FOLDER = "python"

#: Of the standard library: what is for tests, for windows on a screen, and for making installations.
_NOT_NEEDED = frozenset(
    ("__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test", "tests",
     "tkinter", "turtledemo", "venv")
)  # fmt: skip
#: Extension modules: for tests, for windows and terminals, and those whose libraries are under licences that would ask
#: something of whoever ships them (readline and gdbm: GPL; Berkeley DB: AGPL; NIS and crypt: LGPL).
_NO_MODULES = (
    "_crypt.*", "_ctypes_test.*", "_curses*", "_dbm.*", "_gdbm.*", "_test*", "_tkinter.*", "_xx*", "nis.*",
    "ossaudiodev.*", "readline.*", "spwd.*", "xx*",
)  # fmt: skip


def name() -> str:
    """What its file is called."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def copy(folder: str) -> str:
    """Copy it into a folder; gives the place of its packages there.

    Raises:
        ConfigError: it is none that could be copied.
    """
    library = os.path.dirname(os.path.abspath(os.__file__))
    inside = os.path.relpath(library, os.path.realpath(sys.base_prefix))
    if sys.implementation.name != "cpython" or inside.startswith(os.pardir):
        raise ConfigError("Only a CPython with its library beside its program can be copied: this Python is different.")
    program = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    there = os.path.join(folder, FOLDER, "bin", name())
    os.makedirs(os.path.dirname(there))
    shutil.copyfile(program, there)
    os.chmod(there, 0o755)  # noqa: S103  # whoever has the bundle may run it
    target = os.path.join(folder, FOLDER, inside)
    shutil.copytree(library, target, ignore=_left_out, symlinks=False)
    packages = os.path.join(target, "site-packages")
    os.makedirs(packages)
    return packages


def _left_out(folder: str, names: list[str]) -> list[str]:
    modules = os.path.basename(folder) == "lib-dynload"
    return [
        each for each in names
        if each in _NOT_NEEDED or each.startswith("config-") or each.endswith(".pyc")
        or (modules and any(fnmatch(each, pattern) for pattern in _NO_MODULES))
    ]  # fmt: skip
