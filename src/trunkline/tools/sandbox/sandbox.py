"""The sandbox of one session: the commands of Bash run in it.

They write to the workspace and to temporary files of their own, reach no network but what is allowed by name, and have
no variable that opens something. `docs/explanation/sandbox.md` says what that keeps out, and what it does not.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence

from trunkline.base.own_python import script_command
from trunkline.base.process import SpawnError
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.secret_shapes import masked
from trunkline.core.faults import ToolError
from trunkline.tools.sandbox import launcher_path, seccomp
from trunkline.tools.sandbox.launcher import COMPLAINT, READY, READY_ALONE
from trunkline.tools.sandbox.place import SandboxPlace
from trunkline.tools.sandbox.placeholders import Placeholders
from trunkline.tools.sandbox.policy import Walls, nested_repositories, walls
from trunkline.tools.sandbox.proxy import AllowedHosts, SandboxProxy

#: How long the namespaces of a session may take to be made: a thousand times what they take.
HOLD_SECONDS = 20.0
#: The words of programs that were refused something, or found no network.
_READ_ONLY = re.compile(r"read-only file system|EROFS|not in the sandbox's allow-list", re.IGNORECASE)
_REFUSED = re.compile(
    r"Permission denied|Operation not permitted|Device or resource busy|Invalid cross-device link|EACCES|EPERM|EXDEV|"
    r"Network is unreachable|Could(?: not|n't) (?:resolve|connect)|failure in name resolution|"
    r"Name or service not known|Connection refused|Failed to connect|getaddrinfo|ENETUNREACH|EAI_AGAIN",
    re.IGNORECASE,
)
#: Variables that name a way to a service of the user's, or a place for temporary files that is not the sandbox's.
_WAYS_OUT = frozenset(
    {
        "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "DISPLAY",
        "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST", "KUBECONFIG", "NETRC", "PGPASSFILE",
        "SUDO_ASKPASS", "SSH_ASKPASS", "GIT_ASKPASS", "VSCODE_GIT_IPC_HANDLE", "VSCODE_IPC_HOOK_CLI", "TMUX", "STY",
    }
)  # fmt: skip
#: Words that names of secrets have, wherever they stand in them: `MY_PRIVATE_KEY_BASE64`.
_SECRET_WORDS = frozenset(
    {
        "AUTH", "COOKIE", "JWT", "KEY", "KEYS", "PAT", "PIN", "PWD", "SALT", "SIGNING", "TOKEN", "TOKENS", "WEBHOOK",
        "WEBHOOKS",
    }
)  # fmt: skip
#: The same where they are the last: `SHOP_SESSION`, and not `XDG_SESSION_TYPE`.
_LAST_SECRET_WORDS = frozenset({"SESSION", "SESSIONID"})
#: Names that have such words and hold no secret.
_NO_SECRETS = frozenset({"PWD", "DESKTOP_SESSION"})
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_LOOPBACK = "localhost,127.0.0.1,::1"


class Sandbox:
    """Made once, when it is known that it can be had. Call `close` at the end."""

    def __init__(
        self,
        workspace: str,
        *,
        network: Sequence[str] = (),
        clean: Callable[[Mapping[str, str]], dict[str, str]] = dict,
        ours: Sequence[str] = (),
        reserved: Sequence[str] = (),
    ) -> None:
        """`clean` takes out of an environment what opens something; `ours` are directories with files of our own, and
        `reserved` names at the top of the workspace that no command may give to anything."""
        self._workspace = os.path.realpath(workspace)
        self._allowed = AllowedHosts(network)
        self._clean = clean
        self._ours = tuple(ours)
        self._place: SandboxPlace | None = None
        self._alone = False
        """Whether its processes have a namespace of their own."""
        self._nested: list[str] = []
        self._reserved = tuple(reserved)
        self._placeholders = Placeholders(self._workspace)
        self._whole = False
        """Whether nothing in the workspace could be written by the last command."""
        self._holder: AsyncChild | None = None
        self._proxy: SandboxProxy | None = None
        self._preparing = asyncio.Lock()

    @property
    def temporary(self) -> str:
        """Where the commands may put temporary files; empty before the first."""
        return self._place.temporary if self._place is not None else ""

    @property
    def description(self) -> str:
        """For the model."""
        return (
            " Commands run in a sandbox: they may write only in the workspace and in $TMPDIR, not to `.git/hooks` or "
            f"`.git/config`, and each {self._reached}."
        )

    @property
    def _reached(self) -> str:
        return f"reaches only {self._allowed}" if self._allowed else "has no network"

    async def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs another one in the sandbox.

        Raises:
            ToolError: the sandbox cannot be made.
        """
        async with self._preparing:
            holder = await self._prepared()
        built = await asyncio.to_thread(self._walls)
        self._whole = built.whole
        options = [f"--join={holder.pid}", f"--cwd={self._workspace}", f"--seccomp={seccomp.program().hex()}"]
        options += ["--alone=yes"] if self._alone else []
        options += [f"--write={path}" for path in (self._workspace, self.temporary)]
        options += [f"--keep={path}" for path in built.keep]
        options += [f"--make={path}" for path in built.make]
        options += [f"--point={path}" for path in built.point]
        options += [f"--read={path}" for path in built.read]
        return [*script_command(launcher_path(), ["run", *options]), "--", *argv]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """An environment for a command: nothing in it opens anything."""
        dropped = {*_WAYS_OUT, *_PROXIES, *_NO_PROXY}
        cleaned = self._clean(environ).items()
        kept = {name: value for name, value in cleaned if name not in dropped and not _may_open(name, value)}
        if self._proxy is not None:
            kept |= dict.fromkeys(_PROXIES, self._proxy.url) | dict.fromkeys(_NO_PROXY, _LOOPBACK)
        # What was refused is known by its words, whatever the language of the user.
        return kept | dict.fromkeys(_TEMPORARY, self.temporary) | {"LANGUAGE": "en"}

    def why(self, text: str, *, failed: bool) -> str:
        """What to add to a command's result: that the sandbox was why it failed, if it looks like that."""
        notes = []
        known = _READ_ONLY.search(text)
        if self._proxy is not None and self._proxy.refused:
            notes.append(f"[The sandbox was why: {', '.join(self._proxy.refused)} cannot be reached from it.]")
            self._proxy.refused.clear()
        if known or (failed and (_REFUSED.search(text) or self._is_reserved(text))):
            # One that succeeds may have printed a text about it.
            was = "was" if known and failed else "may be"
            where = (
                f"$TMPDIR ({self.temporary}), since {self._workspace} has more repositories and files that make "
                "programs run than the sandbox tells apart"
                if self._whole
                else f"{self._workspace} and $TMPDIR ({self.temporary}), not to what makes programs run there "
                "(`.git/hooks`, `.git/config`, ...)"
            )
            notes.append(
                f"[The sandbox {was} why: a command may write only in {where}, "
                f"cannot reach Unix sockets or other processes, and {self._reached}.]"
            )
        return "".join(f"\n{note}" for note in notes)

    def _is_reserved(self, text: str) -> bool:
        """Whether a command has met the empty directory that keeps a file's name from it."""
        return any(name in text and "directory" in text for name in self._reserved)

    async def close(self) -> None:
        """Let go of everything, after the commands have ended. May be called again."""
        holder, self._holder = self._holder, None
        proxy, self._proxy = self._proxy, None
        place, self._place = self._place, None
        if proxy is not None:
            await proxy.close()
        if holder is not None:
            await holder.close()
        await asyncio.to_thread(self._placeholders.remove)
        if place is not None:
            await asyncio.to_thread(place.remove)

    async def _prepared(self) -> AsyncChild:
        """The process that holds the namespaces; it is started anew if somebody has ended it."""
        if self._holder is not None and self._holder.returncode is None:
            return self._holder
        await self.close()
        try:
            self._place = place = await asyncio.to_thread(SandboxPlace)
            self._nested = await asyncio.to_thread(nested_repositories, self._workspace)
            words = ["hold"]
            if self._allowed:
                self._proxy = SandboxProxy(self._allowed, place.path)
                words += [f"--proxy={self._proxy.path}", *(f"--forward={port}" for port in self._proxy.ports)]
            taking = asyncio.create_task(self._proxy.take()) if self._proxy else None
            try:
                self._holder, self._alone = await _hold(words)
                if taking is not None:
                    async with asyncio.timeout(HOLD_SECONDS):
                        await taking
            finally:
                if taking is not None:
                    taking.cancel()
                    await asyncio.wait({taking})
            return self._holder
        except (OSError, SpawnError, TimeoutError) as error:
            await self.close()
            raise ToolError(f"there is no sandbox: {error}", hint="Begin again with `--sandbox off`.") from None

    def _walls(self) -> Walls:
        built = walls(self._workspace, self._nested, self._ours, self._reserved)
        self._placeholders.expect(built)
        return built


def _may_open(name: str, value: str) -> bool:
    """Whether a variable looks as if it held a secret. Rather one too many: commands have no need of them."""
    words = name.upper().split("_")
    named = words[-1] in _LAST_SECRET_WORDS or any(
        word in _SECRET_WORDS or word.endswith(("PASS", "PW")) for word in words
    )
    return (named and name not in _NO_SECRETS) or "authorization:" in value.lower() or masked(value) != value


async def _hold(words: Sequence[str]) -> tuple[AsyncChild, bool]:
    """Make the namespaces of a session; whether its processes have one.

    Raises:
        OSError, SpawnError: they cannot be had.
        TimeoutError: not in time.
    """
    holder = await spawn_async(script_command(launcher_path(), words), stdin="pipe", cwd="/")
    complaint = holder.keep_stderr_tail()
    try:
        async with asyncio.timeout(HOLD_SECONDS):
            said = (await holder.read_stdout()).decode("ascii", "replace").strip()
            if said not in (READY, READY_ALONE):
                await holder.drained()
                raise OSError(complaint.text().removeprefix(COMPLAINT) or "its namespaces were not made")
    except BaseException:
        await holder.close()
        raise
    return holder, said == READY_ALONE
