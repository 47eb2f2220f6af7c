"""`trunkline chat` holds a conversation with every agent there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents import registry

#: How to start each agent. One that is added to the registry must be added here.
FLAGS = {"coder": ["--provider", "mock"], "echo": [], "scripted": ["--script", "tour"]}


@pytest.mark.process
@pytest.mark.parametrize("name", registry.names())
def test_every_agent_there_is_can_be_talked_to(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", "chat", name, *FLAGS[name], "--quiet", "-p", "hello there"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.lower().startswith("hello")
