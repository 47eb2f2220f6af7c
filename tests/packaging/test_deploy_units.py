"""The systemd units in `deploy/systemd`: systemd understands them, and what they run is stopped in good order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.conftest import require
from tests.support.commands import is_command

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
OURS = [unit for unit in UNITS if unit.stem.startswith("trunkline")]
#: Those that run for one user, as `systemctl --user` starts them.
OF_USERS = ("trunkline", "trunkline-runner")


def service(unit: Path) -> dict[str, str]:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation says
    parser.read_string(unit.read_text(encoding="utf-8"))
    return dict(parser["Service"])


def names(units: list[Path]) -> list[str]:
    return [unit.stem for unit in units]


def test_there_are_units_for_one_user_and_for_a_cluster() -> None:
    assert names(UNITS) == ["nats-server", "trunkline-node", "trunkline-runner", "trunkline"]


@pytest.mark.parametrize("unit", OURS, ids=names(OURS))
def test_a_unit_leaves_it_to_the_program_to_end_its_agents_and_knows_how_that_ends(unit: Path) -> None:
    found = service(unit)
    assert (found["KillMode"], found["SuccessExitStatus"]) == ("mixed", "143")
    assert "RestartSec" in found


@pytest.mark.parametrize("unit", OURS, ids=names(OURS))
def test_a_unit_runs_commands_that_there_are(unit: Path) -> None:
    found = service(unit)
    lines = [found[key] for key in ("ExecStart", "ExecStop") if key in found]
    commands = [line.removeprefix("-").split()[1:] for line in lines if "/bin/trunkline " in line]
    assert commands
    assert [each for each in commands if not is_command(each)] == []


def test_a_node_is_drained_before_it_ends_and_turns_have_time_for_it() -> None:
    found = service(ROOT / "deploy" / "systemd" / "trunkline-node.service")
    assert found["ExecStop"].endswith("trunkline node drain %l")
    assert int(found["TimeoutStopSec"]) >= 600


@pytest.mark.parametrize("unit", UNITS, ids=names(UNITS))
def test_a_unit_is_one_that_systemd_understands(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    require("systemd-analyze", program is not None, "it comes with systemd")
    file = tmp_path / unit.name
    # It looks whether the programs are there.
    file.write_text(re.sub(r"^(Exec\w+=-?)[/%]\S+", r"\1/bin/true", unit.read_text(), flags=re.MULTILINE))
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    mode = ["--user"] if unit.stem in OF_USERS else []
    done = subprocess.run(
        [str(program), *mode, "verify", str(file)], capture_output=True, text=True, env=environ, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
