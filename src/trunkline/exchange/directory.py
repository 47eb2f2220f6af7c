"""The agents of an exchange, by name: made when they are first needed, and healthy or not, and why.

An agent whose conversations cannot be opened is tried again after a delay that doubles with each failure in a row. Who
asks before that is told what is wrong, and when to come back. Programs that die in a turn are started again by the
conversations that they belong to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trunkline.base.nearest import suggestion
from trunkline.core.agent import Agent, Capabilities
from trunkline.core.faults import AgentFailed, Fault, UnknownAgent
from trunkline.exchange.settings import AgentSettings

#: Before the second try: soon, since most crashes are accidents.
FIRST_DELAY_MS = 250
#: However long the row of failures: what comes back is noticed within half a minute.
LONGEST_DELAY_MS = 30_000
#: Failures in a row that are counted: the delay does not grow any more long before.
_COUNTED_FAILURES = 16
#: How long a text of an error may be that is shown in lists.
SHOWN_CHARS = 500

#: Makes an agent of a name of the registry and options; gives the options that it has come to, too.
Make = Callable[[str, dict[str, Any]], Awaitable[Agent]]


class AgentEntry:
    """One agent: what it was told, the agent itself once it was made, and how it does."""

    def __init__(self, settings: AgentSettings, make: Make, clock: Callable[[], int]) -> None:
        self.settings = settings
        self.healthy = True
        """Whether the last that was heard of it was good."""
        self.last_error = ""
        self._make = make
        self._clock = clock
        self._agent: Agent | None = None
        self._making = asyncio.Lock()
        self.options = {**settings.options, "workspace": settings.workspace}
        """What its conversations are opened with; once it was made, with the model that was found for it."""
        self._failures = 0
        self._not_before = 0

    @property
    def name(self) -> str:
        """What it is called here."""
        return self.settings.name

    @property
    def capabilities(self) -> Capabilities | None:
        """What it can do; None: it has not been made yet."""
        return None if self._agent is None else self._agent.capabilities

    async def agent(self) -> Agent:
        """The agent, made if need be.

        Raises:
            ConfigError: it cannot be made.
            AgentFailed: it has just failed; a next try is not due yet.
        """
        wait = self._not_before - self._clock()
        if wait > 0:
            soon = f"The agent `{self.name}` has failed, and its next try is in {wait / 1000:.1f} s"
            raise AgentFailed(f"{soon}: {self.last_error}", retryable=True)
        async with self._making:
            if self._agent is None:
                self._agent = await self._made()
            return self._agent

    async def _made(self) -> Agent:
        try:
            return await self._make(self.settings.agent, self.options)
        except Fault as fault:
            self.could_not_open(fault)
            raise

    def worked(self) -> None:
        """It has opened a conversation, or answered."""
        self._failures = self._not_before = 0
        self.healthy = True

    def failed(self, fault: Fault) -> None:
        """A turn of it ended badly. Its other conversations, which have programs of their own, do not notice."""
        self.healthy = False
        self.last_error = str(fault)[:SHOWN_CHARS]

    def could_not_open(self, fault: Fault) -> None:
        """It could not open a conversation: the next try is put off."""
        self.failed(fault)
        delay = min(FIRST_DELAY_MS * 2**self._failures, LONGEST_DELAY_MS)
        self._failures = min(self._failures + 1, _COUNTED_FAILURES)
        self._not_before = self._clock() + delay


class Directory:
    """All agents."""

    def __init__(self, agents: Mapping[str, AgentSettings], make: Make, clock: Callable[[], int]) -> None:
        self._make = make
        self._clock = clock
        self._entries = {name: AgentEntry(settings, make, clock) for name, settings in agents.items()}

    @property
    def entries(self) -> tuple[AgentEntry, ...]:
        """In the order of the configuration."""
        return tuple(self._entries.values())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def find(self, name: str) -> AgentEntry:
        """The agent of that name.

        Raises:
            UnknownAgent: there is none.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise UnknownAgent(f"There is no agent `{name}` here.{suggestion(name, list(self._entries))}")
        return entry

    def take_up(self, agents: Mapping[str, AgentSettings]) -> None:
        """New settings. Agents that did not change stay; conversations go on with the one that they began with."""
        old, self._entries = self._entries, {}
        for name, settings in agents.items():
            known = old.get(name)
            if known is None or known.settings != settings:
                known = AgentEntry(settings, self._make, self._clock)
            self._entries[name] = known
