"""The language servers of one conversation, and what they say about a file that was changed.

A server that hangs, dies or speaks nonsense costs a notice and some seconds, and after a few times nothing any more;
what was changed stays changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.tools.client_side import ClientSide, read_text
from trunkline.tools.files import read_whole
from trunkline.tools.lsp.messages import Diagnostic
from trunkline.tools.lsp.server import LanguageServer, RunningServer, ServerFailed, ServerLate
from trunkline.tools.threads import in_thread
from trunkline.tools.workspace import Workspace

#: Failures of one server after which it is left alone.
MOST_FAILURES = 3
#: Diagnostics of one change that are told.
MOST_TOLD = 20


class Findings(Value):
    """What a server said about a change."""

    server: str
    diagnostics: tuple[Diagnostic, ...]
    before: tuple[Diagnostic, ...] | None
    """What it had said of the file before; None: it had not seen it."""

    @property
    def fresh(self) -> tuple[Diagnostic, ...]:
        """What it had not said before, as far as that is known."""
        known = [each.gist for each in self.before or ()]
        found = []
        for each in self.diagnostics:
            if each.gist in known:
                known.remove(each.gist)
            elif self.before is not None:
                found.append(each)
        return tuple(found)


class _Kept:
    """A server, and how it has done so far."""

    def __init__(self, spec: LanguageServer) -> None:
        self.spec = spec
        self.running: RunningServer | None = None
        self.failures = 0
        self.is_awaited = True
        """Whether people have not been told yet that nobody waits for it."""
        self.turn = asyncio.Lock()
        """Held by whoever has it look at a change: sub-agents work side by side."""
        self.said: dict[str, tuple[Diagnostic, ...]] = {}


class LanguageServers:
    """Starts servers when they are needed. Call `close` at the end.

    Programs get the variables that `env` gives when they are started, and no others; unless the workspace is `trusted`,
    Pythons take no modules from there. `on_problem` hears what goes wrong, for people.
    """

    def __init__(
        self,
        specs: Sequence[LanguageServer],
        workspace: Workspace,
        client: ClientSide,
        *,
        env: Callable[[], Mapping[str, str]],
        redactor: Redactor,
        on_problem: Callable[[str], None],
        trusted: bool = False,
    ) -> None:
        self._servers = [_Kept(spec) for spec in specs]
        self._workspace = workspace
        self._client = client
        self._env = env
        self._redactor = redactor
        self._on_problem = on_problem
        self._trusted = trusted
        self._closed = False

    async def changed(self, path: str) -> list[Findings]:
        """What all servers for such files say about one that has just been changed."""
        servers = [kept for kept in self._servers if path.endswith(kept.spec.extensions)]
        servers = [kept for kept in servers if kept.failures < MOST_FAILURES]
        if self._closed or not servers or self._workspace.outside(path):
            return []
        try:
            text = await self._text(path)
        except (OSError, ValueError):
            # It is gone again, or no text. Whoever changed it will hear of that elsewhere.
            return []
        found = await asyncio.gather(*[self._look(kept, path, text) for kept in servers])
        return [each for each in found if each is not None]

    async def close(self) -> None:
        """End all of them."""
        self._closed = True
        running = [kept.running for kept in self._servers if kept.running is not None]
        await asyncio.gather(*[server.close() for server in running])

    async def _text(self, path: str) -> str:
        files = await self._client.files_for(self._workspace, path, read=True)
        data = (
            (await in_thread(lambda stop: read_whole(path, stop)))[0] if files is None else await read_text(files, path)
        )
        return data.decode("utf-8")

    async def _look(self, kept: _Kept, path: str, text: str) -> Findings | None:
        async with kept.turn:
            try:
                server = await self._running(kept)
                found = await server.changed(path, text)
            except ServerLate as error:
                self._late(kept, str(error))
                return None
            except ServerFailed as error:
                await self._failed(kept, str(error))
                return None
            kept.is_awaited = True
            kept.failures = 0
            before, kept.said[path] = kept.said.get(path), found
            return Findings(kept.spec.name, found, before)

    async def _running(self, kept: _Kept) -> RunningServer:
        if kept.running is None:
            kept.said.clear()
            kept.running = await RunningServer.start(
                kept.spec, self._workspace.root, self._env(), self._redactor, trusted=self._trusted
            )
            if self._closed:
                # While it was starting, the conversation ended.
                await kept.running.close()
        return kept.running

    def _late(self, kept: _Kept, reason: str) -> None:
        if self._closed or not kept.is_awaited:
            return
        kept.is_awaited = not (kept.running is not None and kept.running.is_late)
        not_awaited = "" if kept.is_awaited else " It is not waited for until it says something."
        self._on_problem(f"The language server `{kept.spec.name}` gives no diagnostics: {reason}.{not_awaited}")

    async def _failed(self, kept: _Kept, reason: str) -> None:
        kept.failures += 1
        if kept.running is not None and kept.running.ended:
            await kept.running.close()
            kept.running = None
        if self._closed:
            return
        given_up = " It is not used any more." if kept.failures >= MOST_FAILURES else ""
        self._on_problem(f"The language server `{kept.spec.name}` gives no diagnostics: {reason}.{given_up}")


def told(path: str, findings: Sequence[Findings]) -> str:
    """What servers found, for a model: the new ones first, no more than it can use. Nothing where nothing is wrong."""
    lines = []
    for found in findings:
        fresh = found.fresh
        others = [each for each in found.diagnostics if each not in fresh]
        ordered = [*((each, "new: ") for each in fresh), *((each, "") for each in others)]
        # Errors before warnings, among the new ones and among the others.
        ordered.sort(key=lambda pair: (not pair[1], pair[0].severity))
        if not ordered:
            if found.before:
                lines.append(f"{found.server}: no errors or warnings in {path} any more.")
            continue
        lines.append(f"{found.server} finds in {path}:")
        lines += [f"- {mark}{each.told}" for each, mark in ordered[:MOST_TOLD]]
        if len(ordered) > MOST_TOLD:
            lines.append(f"- and {len(ordered) - MOST_TOLD} more")
    return "\n".join(lines)
