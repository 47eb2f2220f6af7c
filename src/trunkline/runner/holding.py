"""The agents that launchers know, and the right to run one: whoever has it acts for the agent, and nobody else does.

A launcher that shares its agents with no other machine has a file and locks (`FileRoster`); for several, see `shared`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from trunkline.core.faults import AgentBusy
from trunkline.runner.chain.book import Books, FileBooks
from trunkline.runner.known import KnownAgent, KnownAgents
from trunkline.runner.state import AgentState, RunnerMemory
from trunkline.tools.threads import in_thread


class LeaseLost(AgentBusy):
    """This launcher no longer has the right to run the agent. Nothing more may be done for it here."""

    def __init__(self) -> None:
        super().__init__("Another launcher may run this agent now: nothing more is done for it here.")


Check = Callable[[], Awaitable[None]]
"""Sees that the right is still ours. To be awaited right before anything is done that others can see.

Raises:
    LeaseLost: it is not.
    StoreUnavailable: that cannot be found out.
"""


async def unshared() -> None:
    """The `Check` of a launcher that shares its agents with no other machine: its right is a lock of the system, which
    it has for as long as its process lives."""


class Hold(Protocol):
    """The right to run one agent, and what its runner finds there."""

    @property
    def idle_seconds(self) -> float | None:
        """How long ago the agent's last cycle began in another launcher; None if nothing is known of one."""

    @property
    def cycles_today(self) -> int:
        """Those in other launchers."""

    async def check(self) -> None:
        """See `Check`."""

    def memory(self) -> RunnerMemory:
        """What the agent's runner remembers. May wait for the disk.

        Raises:
            ConfigError: it cannot be opened.
        """

    def books(self) -> Books:
        """Where the ledgers of its wallet are."""


class Roster(Protocol):
    """The agents that launchers know, and who may run which."""

    async def all(self) -> list[KnownAgent]:
        """All of them, in the order in which they became known.

        Raises:
            ConfigError: they cannot be read.
        """

    async def keep(self, agent: KnownAgent) -> None:
        """Add one, or change it."""

    async def want(self, agent_id: str, wanted: bool) -> None:
        """Say whether it is to run again. One that is not known stays so."""

    async def hold(self, agent_id: str) -> Hold | None:
        """Take the right to run an agent, if nobody else has it."""

    async def let_go(self, agent_id: str) -> None:
        """Give that right back. May be called again."""


class FileHold:
    """A `Hold` of a launcher on one machine: what it finds is in its home."""

    idle_seconds = None
    cycles_today = 0

    def __init__(self, home: str, agent_id: str) -> None:
        self._home = home
        self._agent_id = agent_id

    async def check(self) -> None:
        await unshared()

    def memory(self) -> RunnerMemory:
        return AgentState(self._home, self._agent_id)

    def books(self) -> Books:
        return FileBooks(self._home)


class FileRoster:
    """A `Roster` in a home, for all launchers of that home."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._known = KnownAgents(home)

    async def all(self) -> list[KnownAgent]:
        return await in_thread(lambda _: self._known.all())

    async def keep(self, agent: KnownAgent) -> None:
        await in_thread(lambda _: self._known.keep(agent))

    async def want(self, agent_id: str, wanted: bool) -> None:
        await in_thread(lambda _: self._known.want(agent_id, wanted))

    async def hold(self, agent_id: str) -> Hold | None:
        held = await in_thread(lambda _: self._known.hold(agent_id))
        return FileHold(self._home, agent_id) if held else None

    async def let_go(self, agent_id: str) -> None:
        self._known.let_go(agent_id)
