"""A file of ours with another content: the old one or the new one, and nothing beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from trunkline.base.replacing import replace_private


def test_it_has_the_new_content_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o644)
    replace_private(str(file), b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_replaced_is_as_it_was_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_private(str(tmp_path / "folder"), b"new")
    assert os.listdir(tmp_path) == ["folder"]
