"""Where one check plays, whatever the wire: a folder that goes with the check, and the records of what ran there."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trunkline.conform.record import Record, Roles


class Place:
    """The place of one check: stages add how their processes are started. `remove` takes it away."""

    def __init__(self, name: str, cwd: str | None, roles: Roles) -> None:
        """`cwd` is the workspace; a fresh directory unless given."""
        self.records: list[Record] = []
        self._name = name
        self._roles = roles
        self.folder = Path(tempfile.mkdtemp(prefix="conform-")).resolve()
        self.workspace = Path(cwd) if cwd else self.folder / "workspace"
        self.workspace.mkdir(exist_ok=True)

    @property
    def home(self) -> Mapping[str, str]:
        """All processes of one check share a home, so that they see each other's sessions.

        Trunkline keeps its state there; others do not mind the variable.
        """
        return {"TRUNKLINE_HOME": str(self.folder / "home")}

    def record(self, argv: tuple[str, ...]) -> Record:
        """The record of one more process; in `records` when the process has started."""
        name = self._name if not self.records else f"{self._name} ({len(self.records) + 1})"
        return Record(name, argv, self._roles)

    async def remove(self) -> None:
        """Nothing is left of it. Other checks need not wait for the disk."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def is_locked(path: Path) -> bool:
    """Whether a process holds that lock."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
