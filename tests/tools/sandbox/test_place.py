"""Where temporary files are, and how that is removed: commands have put things there."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.tools.sandbox import place
from trunkline.tools.sandbox.place import SandboxPlace

pytestmark = pytest.mark.process


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "around"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def tidied() -> None:
    """Wait for whoever looks at what others have left."""
    for thread in threading.enumerate():
        if thread.name == "sandbox, what is left":
            thread.join(PATIENCE_SECONDS)


def test_it_is_removed_with_what_is_closed_to_its_owner(around: Path) -> None:
    made = SandboxPlace()
    closed = Path(made.temporary, "a/b")
    closed.mkdir(parents=True)
    (closed / "c").touch()
    closed.chmod(0)
    closed.parent.chmod(0)
    made.remove()
    assert not list(around.iterdir())


def test_no_link_leads_out_of_it(around: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "mine").touch(mode=0o644)
    made = SandboxPlace()
    os.symlink(outside, Path(made.temporary, "link"))
    Path(made.temporary, "closed").mkdir(mode=0)
    os.symlink(outside / "mine", Path(made.temporary, "mine"))
    made.remove()
    assert not list(around.iterdir())
    assert (outside / "mine").stat().st_mode & 0o777 == 0o644
    assert outside.stat().st_mode & 0o777 == 0o755


def test_another_agent_that_looks_for_what_is_left_takes_none_that_is_being_made(
    around: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def interrupted(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        place._remove_left(str(around))
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", interrupted)
    made = SandboxPlace()
    tidied()
    assert Path(made.temporary).is_dir()
    place._remove_left(str(around))
    assert Path(made.temporary).is_dir()
    made.remove()


def test_what_killed_agents_have_left_is_removed_and_nothing_else(around: Path, tmp_path: Path) -> None:
    alive = SandboxPlace()
    tidied()
    left = around / "trunkline-sandbox-left"
    (left / "tmp").mkdir(parents=True)
    (left / "lock").touch()
    new = around / "trunkline-sandbox-new"
    new.mkdir()
    others = tmp_path / "others"
    others.mkdir()
    (others / "lock").touch()
    os.symlink(others, around / "trunkline-sandbox-link")
    second = SandboxPlace()
    tidied()
    assert not left.exists()
    assert all(Path(path).is_dir() for path in (alive.path, second.path, new, others))
    assert (others / "lock").exists()
    alive.remove()
    second.remove()
