"""ONNX Runtime tells nobody that it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import trunkline
from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS

PROGRAM = """
from trunkline.models.onnx import session_options
session_options(1)
"""


def test_it_keeps_no_number_by_which_its_makers_would_know_this_machine(tmp_path: Path) -> None:
    require("onnxruntime", find_spec("onnxruntime") is not None, "pip install 'trunkline[embeddings]'")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    command = [sys.executable, "-B", "-c", PROGRAM]
    said = subprocess.run(
        command, env=environ | {"HOME": str(tmp_path)}, capture_output=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert (said.stderr, list(tmp_path.rglob("*"))) == (b"", [])


def test_the_library_is_imported_in_one_place_where_that_is_switched_off() -> None:
    sources = Path(trunkline.__file__).parent.rglob("*.py")
    importing = {each.name for each in sources if "import onnxruntime" in each.read_text(encoding="utf-8")}
    assert importing == {"onnx.py"}
