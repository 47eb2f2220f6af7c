"""The house rules that a linter does not know: sizes of files, and layers that cannot be forgotten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Readable at one sitting. The aim is 400; the rest is room for the last docstring.
LONGEST_SOURCE = 450
# Tests are lists; they may be longer.
LONGEST_TEST = 700


@pytest.mark.parametrize(
    ("folder", "longest"),
    [("src", LONGEST_SOURCE), ("scripts", LONGEST_SOURCE), ("bench", LONGEST_SOURCE), ("tests", LONGEST_TEST)],
)
def test_every_file_can_be_read_at_one_sitting(folder: str, longest: int) -> None:
    # What a compiler made is for no reader.
    written = (path for path in (ROOT / folder).rglob("*.py") if not path.stem.endswith("_generated"))
    lengths = {path: path.read_bytes().count(b"\n") for path in written}
    assert not {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > longest}


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    """Our contracts over the package `trunkline` in `directory`."""
    program = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; run()"
    config = ROOT / "pyproject.toml"
    return subprocess.run(
        [sys.executable, "-c", program, "--config", str(config), "--no-cache"],
        cwd=directory, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package with two layers of ours, and a codec, that keeps every contract."""
    for path in ("", "core", "wires", "wires/jsonstream"):
        (tmp_path / "trunkline" / path).mkdir()
        (tmp_path / "trunkline" / path / "__init__.py").touch()
    for name in ("codec", "messages"):
        (tmp_path / "trunkline" / "wires" / "jsonstream" / f"{name}.py").write_text("import trunkline.core\n")
    return tmp_path / "trunkline"


def test_a_house_in_order_keeps_the_contracts(house: Path) -> None:
    done = lint_imports(house.parent)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("attic/__init__.py", "", "attic"),
        ("core/new.py", "import trunkline.wires", "trunkline.core is not allowed to import trunkline.wires"),
        ("core/new.py", "def f():\n    import yaml", "trunkline.core is not allowed to import yaml"),
        ("wires/jsonstream/codec.py", "import time", "trunkline.wires.jsonstream.codec is not allowed to import time"),
    ],
    ids=["unlisted package", "upward import", "heavy package", "clock in a codec"],
)
def test_a_breach_of_the_contracts_is_found(house: Path, file: str, line: str, complaint: str) -> None:
    (house / file).parent.mkdir(exist_ok=True)
    (house / file).write_text(line + "\n")
    done = lint_imports(house.parent)
    assert done.returncode == 1, done.stdout
    assert complaint in " ".join(done.stdout.split())
