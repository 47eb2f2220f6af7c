"""Where one check plays: as many connections to the server as the check asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.conform.kit import Broken, NotApplicable, NotExercised
from trunkline.conform.mcp.link import HttpLink, McpLink, StdioLink, hello, unreachable
from trunkline.conform.mcp.vocabulary import Json
from trunkline.conform.record import Roles
from trunkline.conform.stage import ProgramStage, ProgramTarget

#: How long a server may take for one answer, or to start.
TIMEOUT_SECONDS = 15.0
#: How long the kit listens where nothing must happen. A program that does not wait acts at once, so this is plenty.
QUIET_SECONDS = 0.3
#: How long a server may take to end.
PATIENCE_SECONDS = 5.0

ROLES: Roles = ("client", "server")


class Target(ProgramTarget):
    """What is under test: how to start it, or where it is, and what may be done with it."""

    url: str | None = None
    headers: Mapping[str, str] = {}
    cwd: str | None = None
    timeout: float = TIMEOUT_SECONDS
    patience: float = PATIENCE_SECONDS
    quiet: float = QUIET_SECONDS
    tool: str | None = None
    """A tool that may be called; without one, a tool that says that it only reads, and needs nothing."""
    arguments: Mapping[str, Any] = {}
    slow_tool: str | None = None
    """A tool that takes its time."""
    slow_arguments: Mapping[str, Any] = {}


class Stage(ProgramStage):
    """The place of one check."""

    def __init__(self, target: Target, name: str) -> None:
        super().__init__(name, ROLES, target.cwd)
        self.target = target

    @property
    def was_reached(self) -> bool:
        """Whether the command was started, or the URL has answered."""
        return any(not isinstance(each, HttpLink) or each.statuses for each in self._opened)

    async def connect(self) -> McpLink:
        """A connection on which nothing was said."""
        if self.target.url is not None:
            record = self.record((self.target.url,))
            return self.opened(record, HttpLink(record, self.target.url, self.target.headers))
        record = self.record(self.target.argv)
        link = StdioLink(record)
        link.process = await self.run(record, self.environment(self.target), "pipe", link.hear)
        return link

    async def ready(self, version: str | None = None) -> McpLink:
        """A connection after the handshake.

        Raises:
            NotExercised: there was none.
        """
        link = await self.connect()
        try:
            await self.shake_hands(link, version)
        except Broken as problem:
            raise NotExercised(str(problem)) from None
        return link

    async def shake_hands(self, link: McpLink, version: str | None = None) -> None:
        """The handshake.

        Raises:
            Broken: the server did not take part.
            SpawnError: it cannot be reached at all.
        """
        params = hello() if version is None else hello(version)
        id = link.begin("initialize", params)
        try:
            answer = await link.answer(id, self.target.timeout, "`initialize`")
        except Broken:
            if isinstance(link, HttpLink) and link.failure is not None and self.target.url:
                raise unreachable(self.target.url, link.failure) from None
            raise
        result = answer.get("result")
        if not isinstance(result, dict):
            raise Broken(f"`initialize` was answered with {answer!a:.160}")
        link.info = result
        if isinstance(link, HttpLink) and isinstance(result.get("protocolVersion"), str):
            link.version = result["protocolVersion"]
        link.notify("notifications/initialized")
        if isinstance(link, HttpLink):
            await link.settled()

    async def lives(self, link: McpLink, after: str) -> None:
        """The connection still serves.

        Raises:
            Broken: it does not.
        """
        try:
            answer = await link.ask("ping", None, self.target.patience)
        except Broken as problem:
            raise Broken(f"after {after}, {problem}") from None
        if "error" in answer:
            raise Broken(f"after {after}, `ping` was answered with {answer!a:.160}")

    async def result(self, link: McpLink, method: str, params: Mapping[str, Any] | None = None) -> Json:
        """The result of a request that must work.

        Raises:
            Broken: it is an error, or there is none.
        """
        answer = await link.ask(method, params, self.target.timeout)
        result = answer.get("result")
        if not isinstance(result, dict):
            raise Broken(f"`{method}` was answered with {answer!a:.160}")
        return result

    async def listed(self, link: McpLink, capability: str, method: str, member: str) -> list[Any]:
        """What a list of the server has on its first page.

        Raises:
            NotApplicable: the server does not offer it.
        """
        self.offers(link, capability)
        found = (await self.result(link, method)).get(member)
        if not isinstance(found, list):
            raise Broken(f"the result of `{method}` has no list `{member}`")
        return found

    def offers(self, link: McpLink, capability: str) -> None:
        """The server says that it has this.

        Raises:
            NotApplicable: it does not.
        """
        capabilities = link.info.get("capabilities")
        if not isinstance(capabilities, dict) or capability not in capabilities:
            raise NotApplicable(f"the server does not offer `{capability}`")

    async def tools(self, link: McpLink) -> list[Json]:
        """The tools."""
        found = await self.listed(link, "tools", "tools/list", "tools")
        return [each for each in found if isinstance(each, dict)]

    async def harmless(self, link: McpLink) -> tuple[Json, Mapping[str, Any]]:
        """A tool that may be called, and its arguments.

        Raises:
            NotApplicable: there is none of which that is known.
        """
        tools = await self.tools(link)
        for tool in tools:
            if tool.get("name") == self.target.tool:
                return tool, self.target.arguments
            reads = (tool.get("annotations") or {}).get("readOnlyHint") is True
            if self.target.tool is None and reads and not (tool.get("inputSchema") or {}).get("required"):
                return tool, {}
        if self.target.tool is not None:
            raise NotApplicable(f"there is no tool `{self.target.tool}`")
        raise NotApplicable("no tool says that it only reads and needs no arguments: name one with --tool")

    def slow_tool(self) -> str:
        """The tool that takes its time. Nothing need be started to know that there is none.

        Raises:
            NotApplicable: nobody said which one does.
        """
        if self.target.slow_tool is None:
            raise NotApplicable("no tool is known that takes its time: name one with --slow-tool")
        return self.target.slow_tool

    async def slow(self, link: McpLink, meta: Mapping[str, Any] | None = None) -> Any:
        """The id of a request that is under way for a while.

        Raises:
            NotApplicable: nobody said which tool takes its time.
        """
        slow_tool = self.slow_tool()
        self.offers(link, "tools")
        params: Json = {"name": slow_tool, "arguments": dict(self.target.slow_arguments)}
        if meta:
            params["_meta"] = dict(meta)
        id = link.begin("tools/call", params)
        if await link.until(lambda: link.answer_to(id) is not None, self.target.quiet):
            raise NotExercised(f"`{slow_tool}` was over before the kit could act")
        return id
