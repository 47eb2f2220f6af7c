"""`trunkline runner once` as a process, and what its communication log says."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.patience import PATIENCE_SECONDS
from tests.support.ran import ran


class Once(NamedTuple):
    """How it ended: its code, the object in its last line, and all that it wrote."""

    code: int
    line: dict[str, Any]
    said: str

    @property
    def oks(self) -> list[bool]:
        return [result["ok"] for result in self.line["results"]]


class Runner:
    """One agent's runner on this machine: its configuration, its home, its log."""

    def __init__(self, home: Path, config: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.log_path = home / "communication.jsonl"
        self._config = {"log": str(self.log_path), "timeoutSec": PATIENCE_SECONDS, **config}
        self._environ = {**os.environ, **(environ or {}), "TRUNKLINE_HOME": str(home / "state")}
        home.mkdir(parents=True, exist_ok=True)

    async def scripted(self, *actions: Mapping[str, Any]) -> Once:
        """One cycle with a brain that decides these."""
        return await self.once({"kind": "scripted", "replies": [list(actions)]})

    async def once(self, brain: Mapping[str, Any], **more: Any) -> Once:
        """One cycle, with some members of the configuration exchanged."""
        file = self.home / "runner.json"
        file.write_text(json.dumps({**self._config, "brain": brain, **more}))
        done = await ran(
            sys.executable, "-m", "trunkline", "runner", "once", "--config", file, env=self._environ, cwd=self.home
        )
        said = done.out + done.err
        assert "Traceback" not in said
        # By line feeds alone: what agents write may hold other ends of lines.
        line = json.loads(done.out.rstrip("\n").rpartition("\n")[2])
        assert (done.code == 0) == (line["error"] is None), said
        return Once(done.code, line, said)

    def log(self, direction: str | None = None) -> list[dict[str, Any]]:
        """The entries of the log, or those of one direction."""
        entries = [json.loads(line) for line in self.log_path.read_text().splitlines()]
        return [entry for entry in entries if direction in (None, entry["direction"])]
