"""How the tests build what is in clients/cpp."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conftest import require

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "cpp"
#: What the client promises to do with.
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-pthread")
#: What finds a wrong access, and makes it a failure.
CHECKED = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
#: A compiler takes a minute where others compile, too.
PATIENCE_SECONDS = 500


def compiled(program: Path, *sources: Path, flags: tuple[str, ...] = ("-O2",)) -> Path:
    """The program that g++ makes of these sources, without a word of complaint."""
    require("g++", shutil.which("g++") is not None, "apt-get install g++")
    command = ["g++", *STRICT, *flags, "-o", str(program), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    return program
