"""One command of the Bash tool as a process: its output, its end, and what it leaves in the background.

The command is over when its shell is. What the shell started with `&` goes on: its output is still read, though not
faster than it is worth, and thrown away, so that it does not die of a closed pipe. It ends with `end`. Where there is
no `/proc` nothing tells whether something was left, and a command takes its background with it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence

from trunkline.base.process import DRAIN_SECONDS, spawn
from trunkline.base.process_async import AsyncChild
from trunkline.base.process_streams import PipeReader
from trunkline.base.watchdog import all_pids, read_file, read_stat
from trunkline.tools.bash_live import UnreadOutput
from trunkline.tools.bash_output import HeadAndTail

#: How long a command may take to obey SIGTERM: enough to remove a lock file, and people wait for it.
GRACE_SECONDS = 0.5

#: Between two looks at the output of what runs in the background: a flood of it must not keep us busy.
_UNHURRIED_SECONDS = 0.05

#: A process inside `exec` shows no environment, on a busy machine for some milliseconds; one that was given none never
#: does. Between the looks that tell.
_EXEC_PAUSES = (0.002, 0.01, 0.05)

#: Carried by everything that a command starts, so that its background is found although it left the session.
CALL_VARIABLE = "TRUNKLINE_BASH_CALL"


class ShellCommand:
    """A command that was started. Call `end` when it is not needed any more."""

    def __init__(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], unread: UnreadOutput, *, keeps: bool = True
    ) -> None:
        """Start it. Its output goes to `unread`; and its beginning and end are kept for a result, if `keeps`.

        Raises:
            SpawnError: it could not be started.
        """
        self.stdout = HeadAndTail()
        self.stderr = HeadAndTail()
        call = os.urandom(8).hex()
        self._mark = f"{CALL_VARIABLE}={call}".encode()
        self._child = spawn(argv, cwd=cwd, env={**env, CALL_VARIABLE: call})
        # Taken from the child, whose own readers would close the pipes soon after the shell's end.
        self._readers = [PipeReader(self._child.detach(name), _ignore) for name in ("stdout", "stderr")]
        self._process = AsyncChild(self._child)
        self._unread = unread
        self._keeps = keeps
        self._listening = True
        self._pumps = [
            asyncio.create_task(self._pump(number, kept), name=f"command-{self.pid}-output")
            for number, kept in enumerate((self.stdout, self.stderr))
        ]
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The shell's process number."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether `end` has done its work."""
        return self._ending is not None and self._ending.done()

    @property
    def is_ending(self) -> bool:
        """Whether `end` was called."""
        return self._ending is not None

    async def wait(self) -> int:
        """Wait for the end of the command and for its output; returns the exit code, 128 + n for signal n."""
        code = await self._process.wait()
        await self.drain()
        return code

    async def drain(self) -> None:
        """Read what the shell has written before its end. Somebody else may hold the pipes for ever, so: not long."""
        await asyncio.wait(self._pumps, timeout=DRAIN_SECONDS)
        self._listening = False

    async def left_behind(self) -> list[int]:
        """The processes of this command that still run, when its shell has ended: their numbers as it knows them."""
        if self._child.finish_if_clear():
            return []
        # A look at every process of the machine: not in the loop's time.
        return await asyncio.to_thread(_members, self.pid, self._mark)

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """End the whole tree. Its last words are still read."""
        await self._process.stop(grace)

    async def end(self, grace: float = GRACE_SECONDS) -> None:
        """End the whole tree and let go of it. Goes on when the caller is cancelled; may be called again."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace), name=f"end-command-{self.pid}")
        await asyncio.shield(self._ending)

    async def _end(self, grace: float) -> None:
        try:
            if not self._child.finish_if_clear():
                await self._process.stop(grace)
        finally:
            for reader in self._readers:
                reader.close()
            for pump in self._pumps:
                pump.cancel()
            await asyncio.wait(self._pumps)
            await self._process.close()

    async def _pump(self, number: int, kept: HeadAndTail) -> None:
        while data := await self._readers[number].read():
            if self._listening:
                self._unread.feed(number, data)
                if self._keeps:
                    kept.feed(data)
            else:
                await asyncio.sleep(_UNHURRIED_SECONDS)


def _ignore() -> None:
    """The end of a pipe is the end of its pump."""


def _members(session: int, mark: bytes) -> list[int]:
    """The live processes that are in the session (or group) or carry the mark."""
    # The shell's number was not given back yet, and what it has started is younger.
    shell = read_stat(session)
    born = shell.started if shell is not None else 0
    found, unsure = _look(session, mark, born)
    for pause in _EXEC_PAUSES:
        if not unsure:
            break
        time.sleep(pause)
        found, unsure = _look(session, mark, born)
    return found


def _look(session: int, mark: bytes, born: int) -> tuple[list[int], bool]:
    """One look for them; and whether one was seen, not older than the shell, that may still turn out to be another."""
    found, unsure = [], False
    for pid in all_pids():
        stat = read_stat(pid)
        if stat is None or not stat.alive or pid == os.getpid():
            continue
        environment = read_file(f"/proc/{pid}/environ")
        if session in (stat.session, stat.pgrp) or mark in (environment or b""):
            found.append(_inner(pid))
        elif environment == b"" and stat.started >= born:
            unsure = True
    return found, unsure


def _inner(pid: int) -> int:
    """The number that a process has where it was started: in a sandbox it is another."""
    for line in (read_file(f"/proc/{pid}/status") or b"").splitlines():
        name, *numbers = line.split()
        if name == b"NSpid:" and numbers:
            return int(numbers[-1])
    return pid
