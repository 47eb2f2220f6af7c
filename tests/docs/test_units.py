"""The systemd units in the docs: what they run is stopped in good order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.docs.examples import ROOT

pytestmark = pytest.mark.docs

UNITS = [
    pytest.param(block, id=page.stem)
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for block in re.findall(r"^```ini\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    if "[Service]" in block
]


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_leaves_it_to_the_program_to_end_its_agents_and_knows_how_that_ends(unit: str) -> None:
    parser = RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation says
    parser.read_string(unit)
    service = parser["Service"]
    assert (service["KillMode"], service["SuccessExitStatus"]) == ("mixed", "143")
    assert "RestartSec" in service


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_one_that_systemd_understands(unit: str, tmp_path: Path) -> None:
    file = tmp_path / "trunkline.service"
    file.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", unit, flags=re.MULTILINE))
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    command = ["systemd-analyze", "--user", "verify", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert (done.returncode, done.stderr) == (0, "")
