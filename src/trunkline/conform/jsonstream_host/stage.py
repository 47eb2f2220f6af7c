"""Where one check plays: a folder with an agent and its part, and a host that is started on it."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trunkline.base import jsontext
from trunkline.base.own_python import script_command
from trunkline.base.values import Value
from trunkline.conform import probe
from trunkline.conform.jsonstream_host.part import Step
from trunkline.conform.kit import Broken
from trunkline.conform.process import RunningTarget
from trunkline.conform.record import Roles
from trunkline.conform.stage import AgentStage, ProgramTarget

#: How long a host may take, also for a run that goes wrong: some give an agent half a minute to be ready.
TIMEOUT_SECONDS = 45.0
#: How much longer than its host an agent lives: a host that waits for ever must not be told by the agent's end.
MARGIN_SECONDS = 15.0
#: How much later than it has to a host may do something: the start of an interpreter on a busy machine.
PATIENCE_SECONDS = 5.0

AGENT, PROMPT = "{agent}", "{prompt}"
#: What the host is told to say to its agent.
ASKED = "conform: say something"

#: The kit is the agent, and whoever talks to the host.
ROLES: Roles = ("agent", "host")

_LAUNCHER = """#!/bin/sh
# The agent of `trunkline conform jsonstream-host`. It lives no longer than the check that it was made for.
case "$1" in --version) echo "conform 0.1.0"; exit 0 ;; esac
exec {command} "$@"
"""


class Target(ProgramTarget):
    """What is under test: a command with `{agent}`, and `{prompt}` if it takes what is to be said as an argument."""

    timeout: float = TIMEOUT_SECONDS
    patience: float = PATIENCE_SECONDS
    name: str | None = None
    """The name under which the agent is found in `PATH`, for hosts that look for it there."""

    @property
    def lifetime(self) -> float:
        """How long the agent lives if nobody ends it: longer than the host may run."""
        return self.timeout + MARGIN_SECONDS

    @property
    def converses(self) -> bool:
        """Whether it is told what to say line by line, so that it can be told more than one thing."""
        return not any(PROMPT in word for word in self.argv)


class HostCommand(Value):
    """A line that the host wrote to the agent. `data` is what it says, if it is JSON."""

    at: float
    line: bytes
    data: Any = None

    @property
    def type(self) -> str | None:
        """What kind of command it is; None if it does not say."""
        found = self.data.get("type") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else None


class SeenRun(Value):
    """A run that has ended."""

    stdout: str
    stderr: str
    status: int
    seconds: float
    commands: tuple[HostCommand, ...]

    @property
    def shown(self) -> str:
        """All that the host showed."""
        return f"{self.stdout}\n{self.stderr}"

    def of(self, *types: str) -> list[HostCommand]:
        """The commands of some types."""
        return [command for command in self.commands if command.type in types]


class Stage(AgentStage):
    """The place of one check. `close` ends what it started and removes what it made."""

    def __init__(self, target: Target, name: str) -> None:
        super().__init__(name, ROLES, target.patience)
        self.target = target

    async def play(self, *steps: Step, say: Sequence[str] = (ASKED,), within: float | None = None) -> SeenRun:
        """A run of the host from its beginning to its end. `say` is what it is told to say; in one message each.

        Raises:
            Broken: it does not end within the time.
        """
        return await self.seen(await self.begin(*steps, say=say), within)

    async def begin(self, *steps: Step, say: Sequence[str] = (ASKED,)) -> RunningTarget:
        """Start the host; do not wait."""
        self.marks.mkdir()
        (self.marks / "plan.json").write_bytes(jsontext.dumps([["live", self.target.lifetime], *steps]))
        agent = self._launcher()
        values = {AGENT: str(agent), PROMPT: say[0]}
        argv = tuple(_filled(word, values) for word in self.target.argv)
        variables = self.environment(self.target, CONFORM_AGENT=str(agent))
        variables["PATH"] = f"{agent.parent}{os.pathsep}{variables.get('PATH', os.defpath)}"
        running = await self.run(self.record(argv), variables)
        if self.target.converses:
            running.write("".join(f"{line}\n" for line in say).encode())
        running.close_input()
        return running

    async def seen(self, running: RunningTarget, within: float | None = None) -> SeenRun:
        """What came of a run.

        Raises:
            Broken: it does not end within the time.
        """
        seconds = self.target.timeout if within is None else within
        status = await running.ended(max(seconds - (time.monotonic() - running.began), 0))
        commands = self.commands()
        for command in commands:
            running.record.add("agent", command.line, command, at=command.at)
        if status is None or running.seconds is None:
            raise Broken(f"still running {seconds:g} s after the start")
        stdout = running.output.decode("utf-8", "replace")
        return SeenRun(stdout, running.stderr, status, running.seconds, commands)

    @property
    def marks(self) -> Path:
        """The folder of what runs now."""
        return self.folder / "run"

    def commands(self) -> tuple[HostCommand, ...]:
        """What the host has written to the agent so far."""
        return tuple(_command(at, line.encode("latin-1")) for at, line in self._heard() if line is not None)

    def input_ended(self) -> float | None:
        """When the agent saw the end of its input; None if it did not."""
        return next((at for at, line in self._heard() if line is None), None)

    def marked(self, name: str) -> float | None:
        """When the agent left that mark; None if it did not."""
        try:
            return float((self.marks / name).read_text(encoding="ascii"))
        except OSError:
            return None

    def interrupt(self, running: RunningTarget) -> None:
        """What Ctrl-C in a terminal does."""
        running.signal(signal.SIGINT)

    def _heard(self) -> list[tuple[float, str | None]]:
        try:
            lines = (self.marks / "heard").read_bytes().split(b"\n")
        except OSError:
            return []
        return [(at, line) for at, line in map(jsontext.loads, filter(None, lines))]

    def _launcher(self) -> Path:
        path = self.marks / "bin" / (self.target.name or "conform-agent")
        path.parent.mkdir()
        command = shlex.join(script_command(str(probe.__file__), [str(self.marks)]))
        path.write_text(_LAUNCHER.format(command=command), encoding="utf-8")
        path.chmod(0o755)
        return path


def _filled(word: str, values: Mapping[str, str]) -> str:
    for place, value in values.items():
        word = word.replace(place, value)
    return word


def _command(at: float, line: bytes) -> HostCommand:
    try:
        return HostCommand(at, line, jsontext.loads(line))
    except ValueError:
        return HostCommand(at, line)
