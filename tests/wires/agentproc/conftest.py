"""Agents that are written down where they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.wires.agentproc.drive import Run
from trunkline.wires.agentproc.messages import Said, TurnRequest
from trunkline.wires.agentproc.profile import Profile

Script = Callable[..., Profile]


class FromItsFirstWord(Run):
    """Its clock begins when the agent has said something: what a busy machine takes to start it does not count."""

    def __init__(
        self, profile: Profile, hear: Callable[[Said], None] = lambda said: None, turn: TurnRequest | None = None
    ) -> None:
        super().__init__(profile, turn or TurnRequest("hi"), hear=self._heard)
        self._then = hear
        self._seconds: float | None = None

    def _start_clock(self, seconds: float) -> None:
        self._seconds = seconds

    def _heard(self, said: Said) -> None:
        if self._seconds is not None:
            super()._start_clock(self._seconds)
            self._seconds = None
        self._then(said)


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
