"""The tools of one conversation: those that come with us, and those of MCP servers as they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from trunkline.agents.coder.diagnosing import Diagnosing
from trunkline.agents.coder.history import BACKGROUND, BROUGHT, History
from trunkline.agents.coder.server_tools import ServerTools
from trunkline.agents.coder.settings_web import NO_WEB, WebSettings
from trunkline.base.redact import Redactor
from trunkline.core.events import Event, Plan, ToolRequested
from trunkline.core.rules import Rules, holds_back, no_rules
from trunkline.tools.bash import BashTool, find_shell
from trunkline.tools.bash_background import BackgroundCommands, BashOutput, KillBash
from trunkline.tools.client_side import ClientSide
from trunkline.tools.exit_plan import ExitPlanMode, Planner
from trunkline.tools.files import REMEMBERED_FILES, FileMemory
from trunkline.tools.spawn import Spawner, SpawnTool
from trunkline.tools.todo_write import TodoWrite
from trunkline.tools.tool import Tool
from trunkline.tools.toolbox import Toolbox, standard_tools
from trunkline.tools.web_fetch import WebFetch
from trunkline.tools.web_search import WebSearch
from trunkline.tools.workspace import Workspace

if TYPE_CHECKING:
    from trunkline.tools.lsp.server import LanguageServer
    from trunkline.tools.sandbox.sandbox import Sandbox


class ConversationTools:
    """Makes the tools, and lets go of what they hold."""

    def __init__(
        self,
        workspace: str,
        announce: Callable[[Event], None],
        environ: Mapping[str, str],
        redactor: Redactor,
        *,
        trusted: bool = False,
        web: WebSettings = NO_WEB,
        lsp: Sequence[LanguageServer] = (),
        sandbox: Sandbox | None = None,
        rules: Callable[[], Rules] = no_rules,
    ) -> None:
        """`rules`, as they are when asked, say which files searches leave out and where pages may lead on to."""
        self.workspace = Workspace(workspace, rules)
        self._rules = rules
        self._redactor = redactor
        self._web = web
        self.shell = find_shell(environ)
        self.client = ClientSide()
        """What the client of the turn in progress offers."""
        self._bash = BashTool(workspace, shell=self.shell, redactor=redactor, client=self.client, sandbox=sandbox)
        self._memory = FileMemory()
        self._diagnosing = Diagnosing(lsp, self.workspace, self.client, announce, environ, redactor, trusted=trusted)
        self._lent: dict[str, Tool] = {}
        """Tools that come and go, and are not of servers."""
        self.toolbox = Toolbox(self._own_tools(self._memory), redactor)
        self.servers = ServerTools(workspace, self.toolbox, announce, environ, redactor, trusted=trusted)

    @property
    def background(self) -> BackgroundCommands:
        """The commands that run in the background."""
        return self._bash.background

    def add_own(self, spawner: Spawner, put_todos: Callable[[Plan], None], planner: Planner) -> None:
        """What sub-agents do not have: sub-agents, and a list and a plan that would take the place of those that people
        see."""
        for tool in (SpawnTool(spawner), TodoWrite(put_todos), ExitPlanMode(planner)):
            self.toolbox.add(tool)

    def for_subagents(self) -> Toolbox:
        """The same tools for somebody who has read nothing yet, without `add_own`."""
        toolbox = Toolbox([*self._own_tools(FileMemory()), *self._lent.values()], self._redactor)
        self.servers.put_into(toolbox)
        return toolbox

    def lend(self, tool: Tool, *, useful: bool) -> None:
        """Give a tool to the model and its sub-agents, or take it away where it is of no use: each costs attention."""
        if useful and tool.name not in self._lent:
            self._lent[tool.name] = tool
            self.toolbox.add(tool)
        elif not useful and self._lent.pop(tool.name, None) is not None:
            self.toolbox.remove(tool.name)

    async def close(self) -> None:
        """End commands and servers."""
        await asyncio.gather(self._bash.close(), self.servers.close(), self._diagnosing.close())

    def go_on(self, history: History) -> None:
        """Go on as the history says that earlier processes of the session did, and keep there what comes to it: how
        many commands were started in the background, and which tools were brought."""
        self.background.go_on(history.kept.get(BACKGROUND, 0), partial(history.keep, BACKGROUND))
        self.toolbox.bring(map(str, history.kept.get(BROUGHT, ())))
        self.toolbox.on_brought = lambda names: history.keep(BROUGHT, sorted(names))

    def keep_seen(self, history: History) -> Callable[[str], None]:
        """Know again which files the model has read, as the history has it. Gives who keeps it there: to be told of
        each file that was read or changed."""
        for path, digest in history.seen.items():
            # A log may be anybody's; and a path in it may be hidden.
            with suppress(ValueError):
                self._memory.restore(path, digest)

        def keep(path: str) -> None:
            state = self._memory.state(path)
            if state is not None and state.digest is not None:
                history.keep_seen(path, state.digest.hex(), REMEMBERED_FILES)

        return keep

    def forget_shown(self) -> None:
        """The model no longer has what it was shown: files that it reads again are shown again."""
        self._memory.forget_shown()

    def _own_tools(self, memory: FileMemory) -> list[Tool]:
        of_bash = (self._bash, BashOutput(self._bash.background), KillBash(self._bash.background))
        files = standard_tools(self.workspace, memory, self._redactor, self.client)
        found: list[Tool] = [*map(self._diagnosing.beside, files), *of_bash]
        found.append(WebFetch(private=self._web.private, may_follow=self._may_follow, redactor=self._redactor))
        if self._web.engine is not None:
            found.append(WebSearch(self._web.engine))
        return found

    def _may_follow(self, url: str) -> bool:
        call = ToolRequested("", WebFetch.name, WebFetch.category, {"url": url})
        return not holds_back(self._rules(), call, self.workspace.root)
