"""The Unreal plugin's skeleton: its syntax, and its use of the client. The engine itself is not here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.cpp_build import CLIENT, PATIENCE_SECONDS
from tests.conftest import require

PLUGIN = CLIENT.parent / "unreal" / "Trunkline"
MODULE = PLUGIN / "Source" / "Trunkline"
STAND_INS = Path(__file__).parent / "unreal"


def test_the_plugin_has_the_module_that_it_names() -> None:
    told = json.loads((PLUGIN / "Trunkline.uplugin").read_text(encoding="utf-8"))
    assert [module["Name"] for module in told["Modules"]] == [MODULE.name]
    assert (MODULE / f"{MODULE.name}.Build.cs").exists()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("source", sorted(path.name for path in (MODULE / "Private").glob("*.cpp")))
def test_a_source_has_no_fault_that_a_compiler_finds_without_the_engine(source: str) -> None:
    require("g++", shutil.which("g++") is not None, "apt-get install g++")
    folders = [f"-I{folder}" for folder in (STAND_INS, MODULE / "Public", CLIENT)]
    command = [
        "g++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        *folders,
        str(MODULE / "Private" / source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
