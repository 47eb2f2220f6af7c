"""The built wheel, installed into an empty environment away from the checkout, is the whole program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import require
from tests.packaging.commands import ECHO_AGENT, ECHO_TEXT, clean_environment, echo_turn
from tests.support.patience import PATIENCE_SECONDS

# Building, making an environment and downloading three packages: seconds with a warm cache, minutes on a slow line.
pytestmark = [pytest.mark.wheel, pytest.mark.process, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "trunkline"
NOT_FOR_THE_COPY = shutil.ignore_patterns(".git", ".venv", ".venv.lock", ".cache", ".hypothesis", "__pycache__", "dist")


def run(*command: str | Path, directory: Path, patience: float = PATIENCE_SECONDS) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=directory, env=clean_environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=patience, check=False,
    )  # fmt: skip


def run_well(*command: str | Path, directory: Path, patience: float = PATIENCE_SECONDS) -> str:
    done = run(*command, directory=directory, patience=patience)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tree, so that nothing is left in the checkout."""
    work = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT, work / "tree", ignore=NOT_FOR_THE_COPY)
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation")
    run_well(*build, "--outdir", work / "dist", work / "tree", directory=work, patience=120)
    (built,) = (work / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `trunkline` command of an environment that holds the wheel and what it asks for, and nothing else."""
    work = tmp_path_factory.mktemp("install")
    venv = work / "venv"
    run_well(sys.executable, "-m", "venv", venv, directory=work, patience=120)
    pip = (venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input")
    probe = run(
        *pip, "download", "--quiet", "--no-deps", "--dest", work / "probe", "click", directory=work, patience=120
    )
    require("a package index", probe.returncode == 0, "check the network and `pip config list`")
    run_well(*pip, "install", "--quiet", wheel, directory=work, patience=240)
    return venv / "bin" / "trunkline"


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    # What tools leave in a source tree begins with a dot or is bytecode.
    files = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(PACKAGE).parts)
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert "trunkline/py.typed" in names
    # The version is written by the build, and so also by that of the environment, where there was one.
    assert names == files | {"trunkline/_version.py"}


def test_the_wheel_carries_the_licence_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert inside["LICENSE"].startswith("MIT License")
    assert "trunkline = trunkline.cli:main" in inside["entry_points.txt"]


def test_the_installed_program_is_the_wheel_s_and_not_the_checkout_s(program: Path, tmp_path: Path) -> None:
    where = run_well(
        program.with_name("python"), "-c", "import trunkline; print(trunkline.__file__)", directory=tmp_path
    )
    assert Path(where.strip()).is_relative_to(program.parents[1])


def test_the_installed_program_tells_the_version_of_its_wheel(wheel: Path, program: Path, tmp_path: Path) -> None:
    version = wheel.name.split("-")[1]
    assert run_well(program, "--version", directory=tmp_path) == f"trunkline {version}\n"


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--help"], "agent"), (["ledger"], "jsonstream"), (["schema", "jsonstream"], "stream_end")]
)
def test_the_installed_program_speaks(program: Path, tmp_path: Path, arguments: list[str], word: str) -> None:
    assert word in run_well(program, *arguments, directory=tmp_path)


def test_the_installed_program_plays_an_echo_turn(program: Path, tmp_path: Path) -> None:
    turn = echo_turn([str(program), *ECHO_AGENT], tmp_path)
    assert turn.events[0]["type"] == "ready"
    assert turn.text.endswith(ECHO_TEXT)
    assert turn.events[-1]["type"] == "stream_end"
    assert turn.exit_code == 0
