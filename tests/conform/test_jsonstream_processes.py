"""Whether a tool's process still runs, seen from outside by what it writes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.process_async import spawn_async
from trunkline.conform.jsonstream import processes
from trunkline.conform.jsonstream.stage import Stage, Target

pytestmark = pytest.mark.process


async def test_a_command_that_lives_is_not_taken_for_still_where_everything_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "sleep"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 0.6\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(processes, "_STILL_TICKS", 4)
    stage = Stage(Target((sys.executable,), {}, timeout=PATIENCE_SECONDS), "slow")
    try:
        command = ["sh", "-c", processes.TICKING]
        async with await spawn_async(command, cwd=str(stage.workspace), stdout="null", stderr="null"):
            await processes.ticks(stage)
            for _ in range(2):
                assert not await processes.is_still(stage)
        assert await processes.is_still(stage)
    finally:
        await stage.close()
