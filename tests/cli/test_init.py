"""`trunkline init`, as people run it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from trunkline.cli import init
from trunkline.exchange import config


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "ana")
    return tmp_path


def test_without_a_terminal_it_writes_the_file_and_shows_the_token_once(here: Path) -> None:
    done = CliRunner().invoke(init.command, [])
    assert (done.exit_code, done.stderr) == (0, "")
    token = re.search(r"shown this once: (\S+)", done.stdout)
    assert token is not None
    found = config.read(str(here / "trunkline.toml"))
    assert found.people["ana"].token_sha256 == hashlib.sha256(token[1].encode()).hexdigest()
    assert found.listen == ("127.0.0.1", 4400)


@pytest.mark.parametrize("kind", ["file", "link to nothing"])
def test_it_never_overwrites(here: Path, kind: str) -> None:
    path = here / "trunkline.toml"
    path.write_text("mine") if kind == "file" else path.symlink_to(here / "elsewhere")
    done = CliRunner().invoke(init.command, [])
    assert done.exit_code == 1
    assert "is not overwritten" in done.stderr
    assert not (here / "elsewhere").exists()
    assert path.is_symlink() or path.read_text() == "mine"


def test_at_a_terminal_it_asks_until_an_answer_can_be_used(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "_at_a_terminal", lambda: True)
    done = CliRunner().invoke(init.command, ["x.toml"], input="echo\nsrc\nnowhere\n127.0.0.1:5000\na/b\nbo\n")
    assert done.exit_code == 0, done.output
    found = config.read(str(here / "x.toml"))
    assert (found.agents["helper"].agent, found.agents["helper"].workspace) == ("echo", str(here / "src"))
    assert (found.listen, list(found.people)) == (("127.0.0.1", 5000), ["bo"])


def test_a_place_that_cannot_be_written_to_is_told() -> None:
    done = CliRunner().invoke(init.command, ["not/there.toml"])
    assert (done.exit_code, "cannot be written: No such file" in done.stderr) == (1, True)
