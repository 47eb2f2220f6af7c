"""Agents that are written down where they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.wires.agentproc.profile import Profile

Script = Callable[..., Profile]


@pytest.fixture
def sh(tmp_path: Path) -> Script:
    """A profile whose agent is a shell script."""

    def write(text: str, **fields: Any) -> Profile:
        path = tmp_path / "agent.sh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return Profile((str(path),), **fields)

    return write


@pytest.fixture
def py(tmp_path: Path) -> Script:
    """A profile whose agent is a Python script."""

    def write(text: str, **fields: Any) -> Profile:
        path = tmp_path / "agent.py"
        path.write_text(text)
        return Profile((sys.executable, "-I", "-S", str(path)), **fields)

    return write
