"""Commands that set up no log of their own: what is logged goes to standard error, without secrets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured

pytestmark = pytest.mark.process

KEY = "sk-live-0123456789abcdef"


def trunkline(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", *arguments],
        env=unmeasured() | {"SOME_API_KEY": KEY, "TRUNKLINE_HOME": str(folder / "home"), "PYTHONPATH": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def test_chat_with_a_program_that_complains_of_its_key_shows_none_of_it(tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text(f"#!/bin/sh\necho 'bad key: {KEY}' >&2\nexit 1\n")
    script.chmod(0o755)
    (tmp_path / "agent.yaml").write_text(json.dumps({"name": "x", "command": str(script), "protocol": "0.4"}))
    shown = trunkline(tmp_path, "chat", f"agentproc:{tmp_path / 'agent.yaml'}", "-p", "hello")
    assert "bad key: [redacted]" in shown
    assert KEY not in shown


def test_what_anybody_logs_in_any_command_is_without_the_secrets_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "talker.py").write_text(
        "import logging, os\n"
        "from trunkline.agents.echo import EchoAgent\n"
        "logging.getLogger(__name__).warning('the key is %s', os.environ['SOME_API_KEY'])\n"
        "def agent():\n    return EchoAgent()\n"
    )
    shown = trunkline(tmp_path, "chat", "talker:agent", "-p", "hello")
    assert KEY not in shown
    assert "the key is [redacted]" in shown
