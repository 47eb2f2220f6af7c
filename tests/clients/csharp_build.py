"""How the tests build what is in clients/csharp, and run it: with mono, and with its compiler `mcs`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conftest import require

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "csharp"
#: A compiler takes a minute where others compile, too.
PATIENCE_SECONDS = 500


def sources() -> list[Path]:
    """What Unity compiles of the package."""
    return sorted((CLIENT / "Runtime").rglob("*.cs"))


def compiled(program: Path, *more: Path, library: bool = False) -> list[str]:
    """The command that runs the program of the client and these sources, made without a word of complaint."""
    for command in ("mcs", "mono"):
        require(command, shutil.which(command) is not None, "apt-get install mono-mcs mono-devel")
    # C# 7.0, which mono takes when nothing is said, and Unity, too.
    flags = ["-langversion:7", "-warn:4", "-warnaserror", f"-target:{'library' if library else 'exe'}"]
    command_line = ["mcs", *flags, f"-out:{program}", *map(str, (*sources(), *more))]
    done = subprocess.run(command_line, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return ["mono", "--debug", str(program)]
