"""The Bash tool: runs a shell command and gives back its exit code and its output.

A command has no terminal and no input, leads a process group of its own and never sees a file of ours. It ends as a
tree: when its time is over, when the turn is stopped, and with the agent. What it starts with `&` outlives the call,
but not the agent.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trunkline.base.process import SpawnError, child_env
from trunkline.base.process_tree import SIGNAL_EXIT
from trunkline.base.programs import find_program, trusted_path
from trunkline.base.redact import Redactor
from trunkline.core.events import Category
from trunkline.core.faults import ToolError
from trunkline.core.turns import STOPPED
from trunkline.tools.bash_background import BackgroundCommands, started, too_many, unread_output
from trunkline.tools.bash_client import ClientCommands, finished
from trunkline.tools.bash_live import LIVE_BYTES, LIVE_SECONDS, LiveReport, UnreadOutput
from trunkline.tools.bash_process import GRACE_SECONDS, ShellCommand
from trunkline.tools.client_side import ClientSide
from trunkline.tools.tool import Interrupted, Report, ToolOutput

if TYPE_CHECKING:
    from trunkline.tools.sandbox.sandbox import Sandbox

#: How long a command may run when the model does not say, and how long at most.
DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
#: Commands with something in the background, at once. Then the oldest is ended: each holds a process and two pipes.
MAX_BACKGROUND = 16

#: The shells whose `-c` means what a model expects.
_SHELLS = ("bash", "zsh", "sh")
_LONGEST_RESULT = 50_000
_DESCRIBED_BYTES = 80
_STOPPED = f"{STOPPED}. Until then the command had printed:"
#: So many process numbers are named in a result.
_NAMED_PIDS = 5

#: There is no terminal, so nothing may page, colour its output or wait for an editor to be left.
_ENVIRONMENT = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_EDITOR": "true", "NO_COLOR": "1"}
_DROPPED = ("FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "MANPAGER")


class BashTool:
    """Runs commands in `cwd`, with the environment `env` (ours unless given). Call `close` at the end."""

    name = "Bash"
    category: Category = "exec"
    limit = _LONGEST_RESULT
    concurrent = False

    #: Other names under which models send a parameter.
    aliases: Mapping[str, str] = {"cmd": "command"}

    def __init__(
        self,
        cwd: str,
        *,
        shell: str | None = None,
        env: Mapping[str, str] | None = None,
        redactor: Redactor | None = None,
        client: ClientSide | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        environment = child_env(env, extra=_ENVIRONMENT)
        # Whoever approves of `git status` means their own `git`, and none that lies in the workspace.
        environment["PATH"] = trusted_path(environment)
        self._env = {name: value for name, value in environment.items() if name not in _DROPPED}
        self._cwd = cwd
        self._redactor = redactor
        self._shell = shell or find_shell(self._env)
        self._running: set[ShellCommand] = set()
        self._background: list[ShellCommand] = []
        self._client = client or ClientSide()
        self._with_client = ClientCommands()
        self._sandbox = sandbox
        self.background = BackgroundCommands(self._why)
        """Those that were asked to run there."""

    @property
    def description(self) -> str:
        return (
            f"Runs a command with `{os.path.basename(self._shell)} -c` in the workspace and returns its exit code, "
            "standard output and standard error. Each call starts a new shell: directory and variables are not kept. "
            "There is no terminal and no input, so use flags that make programs not ask. "
            "What takes long or is a server: set `run_in_background`, and read its output with BashOutput. "
            "Prefer Read, Write, Edit, Glob and Grep for files." + (self._sandbox.description if self._sandbox else "")
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line to run"},
                "timeout": {
                    "type": "integer",
                    "description": f"Milliseconds after which the command is ended; {DEFAULT_TIMEOUT_MS} unless given, "
                    f"at most {MAX_TIMEOUT_MS}",
                },
                "run_in_background": {
                    "type": "boolean",
                    "description": "Return at once with a `bash_id` for BashOutput and KillBash; without a time limit",
                },
            },
            "required": ["command"],
        }

    def describe(self, args: Mapping[str, Any]) -> str:
        line = " ".join(args["command"].splitlines())
        beginning = line.encode("utf-8", "replace")[:_DESCRIBED_BYTES]
        return f"Execute: {beginning.decode('utf-8', 'ignore')}"

    def outside(self, args: Mapping[str, Any]) -> bool:
        # A command can reach anything; that is why each one needs approval.
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        text = args["command"]
        if not text.strip():
            return ToolOutput("Missing required parameter: command", "error")
        in_background = bool(args.get("run_in_background"))
        if self._client.terminal is not None and not in_background and self._sandbox is None:
            # The terminal has the environment of its user; ours may hold what is none of its business.
            argv = [self._shell, "-c", text]
            return await self._with_client.run(
                self._client.terminal, argv, self._cwd, _ENVIRONMENT, _timeout_ms(args), report
            )
        await self._forget_ended()
        if in_background and self.background.is_full:
            return too_many(self.background)
        unread = unread_output(self._redactor) if in_background else UnreadOutput(LIVE_BYTES, self._redactor)
        try:
            command = await self._start(text, unread, keeps=not in_background)
        except (SpawnError, ToolError) as error:
            return ToolOutput(f"The command could not be started: {error}", "error")
        if in_background:
            return started(await self.background.keep(text, command, unread))
        self._running.add(command)
        try:
            return await self._finish(command, _timeout_ms(args), LiveReport(unread, report))
        except asyncio.CancelledError:
            with suppress(asyncio.CancelledError):
                await self._let_go(command)
            raise Interrupted(ToolOutput(self._text(_STOPPED, command, []), "error", foreign=True)) from None
        finally:
            if command in self._running and not command.is_ending:
                await self._let_go(command)

    async def _start(self, text: str, unread: UnreadOutput, *, keeps: bool) -> ShellCommand:
        argv, env = [self._shell, "-c", text], self._env
        if self._sandbox is not None:
            argv, env = await self._sandbox.command(argv), self._sandbox.environment(env)
        return ShellCommand(argv, self._cwd, env, unread, keeps=keeps)

    async def _let_go(self, command: ShellCommand) -> None:
        if command not in self._background:
            await command.end()
        # Not when that was cancelled: then `close` has to wait for it.
        self._running.discard(command)

    async def close(self) -> None:
        """End everything that still runs. May be called again."""
        commands = [*self._running, *self._background]
        self._background.clear()
        ending = (command.end() for command in commands)
        await asyncio.gather(self._with_client.close(), self.background.close(), *ending)
        if self._sandbox is not None:
            await self._sandbox.close()

    async def _finish(self, command: ShellCommand, timeout_ms: int, live: LiveReport) -> ToolOutput:
        code = await finished(command.wait(), timeout_ms / 1000, live.still, LIVE_SECONDS)
        if code is None:
            await command.stop(GRACE_SECONDS)
            await command.drain()
            text = self._text(f"Command timed out after {timeout_ms}ms", command, [])
            return ToolOutput(text, "error", foreign=True)
        notes = []
        left = await command.left_behind()
        if left:
            await self._keep(command)
            notes.append(_about_background(left))
        if code > SIGNAL_EXIT and code - SIGNAL_EXIT in signal.valid_signals():
            notes.append(f"[exit code {code} means that {_signal_name(code - SIGNAL_EXIT)} ended the command]")
        text = self._text(f"Exit code: {code}", command, notes)
        text += self._why(text, failed=bool(code))
        return ToolOutput(text, "error" if code else "success", foreign=True)

    def _why(self, text: str, failed: bool) -> str:
        return self._sandbox.why(text, failed=failed) if self._sandbox is not None else ""

    async def _keep(self, command: ShellCommand) -> None:
        self._background.append(command)
        if len(self._background) > MAX_BACKGROUND:
            await self._background.pop(0).end()

    async def _forget_ended(self) -> None:
        """Let go of commands whose background has ended by itself."""
        self._running -= {command for command in self._running if command.ended}
        for command in list(self._background):
            if not await command.left_behind() and command in self._background:
                self._background.remove(command)
                await command.end()

    def _text(self, headline: str, command: ShellCommand, notes: list[str]) -> str:
        # At the end, where it is still seen when the middle of a long result is cut out.
        for name, kept in (("standard output", command.stdout), ("standard error", command.stderr)):
            if kept.dropped:
                notes = [*notes, f"[{name} had {kept.size} bytes; its middle was not kept]"]
        parts = [headline, "STDOUT:", command.stdout.text(self._redactor)]
        parts += ["STDERR:", command.stderr.text(self._redactor), *notes]
        return "\n".join(parts)


def find_shell(environ: Mapping[str, str]) -> str:
    """The user's own shell where its `-c` can be relied on, else `bash`, else `sh`."""
    own = environ.get("SHELL", "")
    if os.path.basename(own) in _SHELLS and os.path.isabs(own) and os.access(own, os.X_OK):
        return own
    return find_program("bash", environ) or "/bin/sh"


def _timeout_ms(args: Mapping[str, Any]) -> int:
    value = args.get("timeout")
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return DEFAULT_TIMEOUT_MS
    return int(min(max(value, 1), MAX_TIMEOUT_MS))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # The real-time signals have numbers only.
        return f"signal {number}"


def _about_background(pids: list[int]) -> str:
    named = ", ".join(map(str, pids[:_NAMED_PIDS])) + (", ..." if len(pids) > _NAMED_PIDS else "")
    return f"[still running in the background: process {named}; ends with the session]"
