"""The sandbox of Bash."""

from __future__ import annotations

import os


def launcher_path() -> str:
    """The file of the launcher, which is run as a script."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher.py")
