"""The communication log: what an agent said to its runner and what it was told, one JSON object per line.

    {"id", "createdAt", "direction", "actionTypes", "instanceId", "port", "pid", "agentId", "content"}

- `direction` is `agent_to_runner` or `runner_to_agent`; `actionTypes` names each type once.
- Known secrets are masked in every text.
- A line is written in one piece, so that several processes may share a file. A file of another day, or one that is
  full, is moved aside as `NAME.DAY.jsonl` or `NAME.DAY.N.jsonl`; those are removed after some days.
- A log that cannot be written stops nothing: the first failure is reported, the others are not.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal
from uuid import uuid4

from trunkline.base import jsontext, paths
from trunkline.base.values import Value
from trunkline.store import locks, names

logger = logging.getLogger(__name__)

Direction = Literal["agent_to_runner", "runner_to_agent"]

#: A file beyond this is moved aside: still opened by any editor.
MAX_FILE_BYTES = 16 * 1024 * 1024
#: How long files that were moved aside are kept.
RETENTION_DAYS = 14
#: Characters of one entry's content. Models' outputs are cut off long before.
MAX_CONTENT = 1024 * 1024
#: How much of the end of a file is read for its last lines.
TAIL_BYTES = 4 * 1024 * 1024

_DAY_SECONDS = 24 * 60 * 60
#: Not blocking: a pipe that nobody reads is no log.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
#: A tenth of a second in all: a line takes microseconds.
_LOCK_TRIES = 50
_LOCK_SECONDS = 0.002


class Stamp(Value):
    """Who writes."""

    agent_id: str
    port: int | None = None
    instance_id: str = ""
    pid: int = 0

    @classmethod
    def of_this_process(cls, agent_id: str, port: int | None = None) -> Stamp:
        """The stamp of a runner in this process."""
        return cls(agent_id, port, f"runner-{os.getpid()}-{os.urandom(4).hex()}", os.getpid())


def default_path(home: str, agent_id: str) -> str:
    """Where the log of an agent is if nobody says otherwise."""
    return os.path.join(home, "runner", "logs", f"{names.file_name(agent_id)}.jsonl")


class CommunicationLog:
    """The log of one agent."""

    def __init__(self, path: str, stamp: Stamp, *, redact: Callable[[str], str] = str) -> None:
        self.path = path
        self._stamp = stamp
        self._redact = redact
        self._failed = False

    def append(self, direction: Direction, action_types: Iterable[str], content: str) -> dict[str, Any]:
        """Write an entry; gives it as it was written."""
        types = (self._redact(name.strip()) for name in action_types)
        entry = {
            "id": str(uuid4()),
            "createdAt": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "direction": direction,
            "actionTypes": list(dict.fromkeys(filter(None, types))),
            "instanceId": self._stamp.instance_id,
            "port": self._stamp.port,
            "pid": self._stamp.pid,
            "agentId": self._stamp.agent_id,
            "content": self._redact(content)[:MAX_CONTENT],
        }
        try:
            self._write(jsontext.dumps(entry) + b"\n")
        except OSError as error:
            if not self._failed:
                self._failed = True
                logger.error("The communication log `%s` cannot be written: %s", self.path, error.strerror or error)
        return entry

    def _write(self, line: bytes) -> None:
        paths.ensure_dir(os.path.dirname(os.path.abspath(self.path)))
        while True:
            fd = os.open(self.path, _FLAGS, locks.PRIVATE_FILE)
            try:
                is_alone = _locked(fd)
                if not locks.is_at(fd, self.path):
                    continue
                if is_alone and _is_due(fd, len(line)):
                    _move_aside(self.path, os.fstat(fd).st_mtime)
                    continue
                _append(fd, line)
                return
            finally:
                os.close(fd)


def tail(path: str, most: int) -> list[dict[str, Any]]:
    """The last entries of a log, oldest first. Those that were moved aside are not read."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return []
    entries = []
    # The first line may be half of one.
    for line in lines[1 if size > TAIL_BYTES else 0 :][-most:] if most > 0 else ():
        try:
            entries.append(jsontext.loads(line))
        except ValueError:
            continue
    return entries


def _locked(fd: int) -> bool:
    """Keep others from moving the file aside meanwhile. Whoever has the lock writes a line, and lets go."""
    for _ in range(_LOCK_TRIES):
        if locks.lock(fd):
            return True
        time.sleep(_LOCK_SECONDS)
    # Somebody keeps it. To append a line it is not needed.
    return False


def _append(fd: int, line: bytes) -> None:
    size = os.fstat(fd).st_size
    if os.write(fd, line) < len(line):
        # Half a line would spoil the next one.
        os.ftruncate(fd, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _is_due(fd: int, more: int) -> bool:
    status = os.fstat(fd)
    if status.st_size == 0:
        return False
    return status.st_size + more > MAX_FILE_BYTES or _day(status.st_mtime) != _day(time.time())


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _move_aside(path: str, written: float) -> None:
    stem, ending = os.path.splitext(path)
    for number in count(1):
        target = f"{stem}.{_day(written)}{'' if number == 1 else f'.{number}'}{ending}"
        if not os.path.exists(target):
            os.rename(path, target)
            break
    _remove_old(path)


def _remove_old(path: str) -> None:
    stem, ending = os.path.splitext(os.path.basename(path))
    ours = re.compile(rf"{re.escape(stem)}\.\d{{4}}-\d{{2}}-\d{{2}}(?:\.\d+)?{re.escape(ending)}")
    oldest = time.time() - RETENTION_DAYS * _DAY_SECONDS
    with os.scandir(os.path.dirname(os.path.abspath(path))) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name) and entry.is_file() and entry.stat().st_mtime < oldest:
                os.unlink(entry.path)
