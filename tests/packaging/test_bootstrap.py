"""`scripts/bootstrap.py` makes the environment once, repairs it, and never makes it twice at a time."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap
import system_packages
from tests.packaging.commands import clean_environment

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
# A project that needs no index: its build backend is its own, and builds an editable wheel by hand.
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "trunkline"
version = "1"

[tool.ruff]
line-length = 100
"""
BACKEND = """
import pathlib
import zipfile

HERE = pathlib.Path(__file__).parent
METADATA = "Metadata-Version: 2.1\\nName: trunkline\\nVersion: 1\\nProvides-Extra: all\\n"

def build_editable(directory, config_settings=None, metadata_directory=None):
    (HERE / "builds").open("a").write("built\\n")
    if (HERE / "hang").exists():
        (HERE / "hanging").open("w").close()  # two FIFOs: the test waits for this one, and never writes to the other
        (HERE / "hang").open().read()
    if (HERE / "break").exists():
        raise SystemExit("the backend is broken")
    name = "trunkline-1-py3-none-any.whl"
    info = "trunkline-1.dist-info/"
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w") as wheel:
        wheel.writestr("trunkline.pth", str(HERE / "src"))
        wheel.writestr(info + "METADATA", METADATA)
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", f"trunkline.pth,,\\n{info}METADATA,,\\n{info}WHEEL,,\\n{info}RECORD,,\\n")
    return name

def build_wheel(directory, config_settings=None, metadata_directory=None):
    raise SystemExit("an editable install was expected")
"""


class Clone:
    """A small project with our bootstrap in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.unfinished = self.venv / "trunkline-unfinished"
        shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "src" / "trunkline").mkdir(parents=True)
        (root / "src" / "trunkline" / "__init__.py").write_text('where = "in the clone"\n')
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "requirements-dev.lock").write_text("# nothing\n")
        (root / "backend.py").write_text(BACKEND)

    def start(self, *options: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.root / "scripts" / "bootstrap.py"), *options],
            cwd="/", env=clean_environment() | variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def start_and_get_stuck(self) -> subprocess.Popen[str]:
        """A bootstrap whose pip has begun to install and will not end."""
        os.mkfifo(self.root / "hang")
        os.mkfifo(self.root / "hanging")
        process = self.start()
        (self.root / "hanging").read_bytes()
        return process

    def bootstrap(self, *options: str, **variables: str) -> tuple[int, str]:
        with self.start(*options, **variables) as process:
            output, _ = process.communicate()
        return process.returncode, output

    def builds(self) -> int:
        """How often pip has installed the project."""
        log = self.root / "builds"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def works(self) -> bool:
        done = subprocess.run(
            [str(self.venv / "bin" / "python"), "-c", "import trunkline; print(trunkline.where)"],
            cwd="/", env=clean_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout == "in the clone\n"


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


def test_it_installs_once_and_again_only_for_a_change_that_matters(clone: Clone) -> None:
    code, output = clone.bootstrap()
    assert code == 0, output
    assert clone.works()
    assert list((clone.root / "src" / "trunkline" / "__pycache__").glob("*.pyc"))

    os.utime(clone.root / "pyproject.toml")
    assert clone.bootstrap() == (0, "")
    (clone.root / "pyproject.toml").write_text(PYPROJECT.replace("line-length = 100", "line-length = 120"))
    assert clone.bootstrap() == (0, "")
    assert clone.builds() == 1

    (clone.root / "pyproject.toml").write_text(
        PYPROJECT.replace('name = "trunkline"', 'name = "trunkline"\nkeywords = []')
    )
    assert clone.bootstrap()[0] == 0
    assert clone.builds() == 2
    (clone.root / "requirements-dev.lock").write_text("unneeded==1\n")
    assert clone.bootstrap()[0] == 0
    assert clone.builds() == 3


def test_extras_are_added_and_then_kept(clone: Clone) -> None:
    assert clone.bootstrap()[0] == 0
    assert "with all" in clone.bootstrap("--extras", "all")[1]
    assert clone.bootstrap("--extras", "all") == (0, "")
    assert clone.bootstrap() == (0, "")


def test_the_environment_that_runs_it_can_be_made_again(clone: Clone) -> None:
    assert clone.bootstrap()[0] == 0
    clone.unfinished.touch()
    done = subprocess.run(
        [str(clone.venv / "bin" / "python"), str(clone.root / "scripts" / "bootstrap.py")],
        cwd="/", env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "throwing away" in done.stderr
    assert clone.works()


def test_an_environment_left_half_made_is_made_again(clone: Clone) -> None:
    process = clone.start_and_get_stuck()
    os.killpg(process.pid, signal.SIGKILL)  # bootstrap, pip and the backend at once, as a power cut does
    process.communicate()
    assert clone.unfinished.exists()
    (clone.root / "hang").unlink()
    (clone.venv / "debris").touch()

    code, output = clone.bootstrap()
    assert code == 0, output
    assert "throwing away" in output
    assert not (clone.venv / "debris").exists()
    assert not clone.unfinished.exists()
    assert clone.works()


def test_an_environment_whose_python_is_gone_is_made_again(clone: Clone) -> None:
    assert clone.bootstrap()[0] == 0
    (clone.venv / "bin" / "python").unlink()
    (clone.venv / "bin" / "python").symlink_to("/nowhere/python")
    assert clone.bootstrap()[0] == 0
    assert clone.works()


def test_an_environment_copied_from_another_clone_is_not_trusted(clone: Clone, tmp_path: Path) -> None:
    assert clone.bootstrap()[0] == 0
    shutil.copytree(clone.root, tmp_path / "copy", symlinks=True)
    shutil.move(clone.root, tmp_path / "elsewhere")
    copy = Clone.__new__(Clone)
    copy.root, copy.venv = tmp_path / "copy", tmp_path / "copy" / ".venv"
    assert copy.bootstrap()[0] == 0
    assert copy.works()


def test_a_failing_installation_says_why_and_keeps_what_stood_before(clone: Clone) -> None:
    assert clone.bootstrap()[0] == 0
    (clone.root / "break").touch()
    code, output = clone.bootstrap("--extras", "all")
    assert code == 1
    assert "the backend is broken" in output
    assert "pip config list" in output
    assert clone.works()

    (clone.root / "break").unlink()
    code, output = clone.bootstrap("--extras", "all")
    assert code == 0
    assert "throwing away" not in output


def test_two_at_once_install_once(clone: Clone) -> None:
    with clone.start() as first, clone.start() as second:
        outputs = [process.communicate()[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    assert any("waiting for another installation" in output for output in outputs)
    assert clone.builds() == 1


def test_the_lock_outlives_a_bootstrap_that_was_killed_while_its_pip_works(clone: Clone) -> None:
    process = clone.start_and_get_stuck()
    process.kill()
    process.wait()
    with (clone.root / ".venv.lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_stamp_of_nonsense_is_no_stamp(clone: Clone) -> None:
    assert clone.bootstrap()[0] == 0
    stamp = clone.venv / "trunkline-installed.json"
    stamp.write_text(json.dumps(["not", "a", "stamp"]))
    assert clone.bootstrap()[0] == 0
    assert clone.builds() == 2
    assert "fingerprint" in json.loads(stamp.read_text())


@pytest.mark.parametrize(
    ("modules", "commands"),
    [
        ({"venv", "ensurepip", "pip"}, ["-m venv VENV"]),
        ({"venv", "pip"}, ["-m venv --without-pip VENV", "-m pip --python VENV/bin/python install --no-input pip"]),
        ({"virtualenv"}, ["-m virtualenv VENV"]),
    ],
    ids=["ensurepip", "pip", "virtualenv"],
)
def test_it_makes_an_environment_in_the_way_that_this_python_can(
    modules: set[str], commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(bootstrap, "has_module", modules.__contains__)
    monkeypatch.setattr(bootstrap, "run", lambda command, _: ran.append(" ".join(command[1:])))
    monkeypatch.setattr(system_packages, "may_install", lambda: False)
    bootstrap.make_venv(lock=0)
    assert [command.replace(str(bootstrap.VENV), "VENV") for command in ran] == commands


def test_on_debian_as_root_it_installs_what_venv_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"venv", "pip"}
    ran: list[str] = []

    def apt_install(packages: list[str]) -> bool:
        modules.add("ensurepip")
        ran.extend(packages)
        return True

    monkeypatch.setattr(bootstrap, "has_module", modules.__contains__)
    monkeypatch.setattr(bootstrap, "run", lambda command, _: ran.append(command[2]))
    monkeypatch.setattr(system_packages, "may_install", lambda: True)
    monkeypatch.setattr(system_packages, "apt_install", apt_install)
    bootstrap.make_venv(lock=0)
    assert ran == [f"python{sys.version_info.major}.{sys.version_info.minor}-venv", "venv"]


def test_what_takes_long_says_so_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bootstrap, "SIGN_SECONDS", 0.01)
    os.mkfifo(tmp_path / "end")
    said: list[str] = []

    def say(text: str) -> None:
        # What it waits for comes once it has said so.
        if not said:
            (tmp_path / "end").write_text("go")
        said.append(text)

    monkeypatch.setattr(bootstrap, "say", say)
    wait = f"open({str(tmp_path / 'end')!r}).read()"
    with open(os.devnull) as lock:
        bootstrap.run([sys.executable, "-c", wait], lock.fileno())
        assert "still at it" in said[0]
        with pytest.raises(bootstrap.BootstrapError, match="exit code 3"):
            bootstrap.run([sys.executable, "-c", "print('why'); raise SystemExit(3)"], lock.fileno())
    assert capsys.readouterr().err == "why\n"


def test_a_python_that_can_make_no_environment_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "has_module", lambda _: False)
    monkeypatch.setattr(system_packages, "may_install", lambda: False)
    with pytest.raises(bootstrap.BootstrapError, match="apt-get install python3"):
        bootstrap.make_venv(lock=0)
