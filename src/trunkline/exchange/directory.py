"""The agents of an exchange by name: created when first needed, with their health and the reason if it is bad.

An agent whose conversations cannot be opened is retried after a delay that doubles with each consecutive failure.
Requests before that get the same fault, with the time until then (`Fault.retry_after`). Programs that die during a turn
are restarted by the conversations that they belong to.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from trunkline.agents import registry
from trunkline.base import backoff, log_context, paths
from trunkline.base.nearest import suggestion
from trunkline.base.vocabulary import DEFAULT_ALLOW
from trunkline.core.agent import Agent, Capabilities
from trunkline.core.approvals import Policy
from trunkline.core.fault_kinds import of, of_kind
from trunkline.core.faults import ConfigError, Fault, SessionDamaged, SessionHeld, StoreUnavailable, UnknownAgent
from trunkline.core.rules import NO_RULES
from trunkline.exchange.agent_log import AgentLogs
from trunkline.exchange.settings import AgentSettings

#: Before the first retry: short, since most crashes are accidents.
FIRST_DELAY_MS = 250
#: The longest delay: an agent that works again is noticed within half a minute.
LONGEST_DELAY_MS = 30_000
#: How the names of plain models begin, and what lists say of them.
MODEL_PREFIX = "model:"
MODEL_DESCRIPTION = "a model of this machine"
#: How long somebody who only looks waits for agents that are made for the first time: some look for a model in the
#: network.
MAKING_SECONDS = 2.0
#: How often is looked whether an agent that lacks something has it by now: whoever waits for that looks on.
LOOK_AGAIN_MS = 10_000
#: The longest error text in lists.
SHOWN_CHARS = 500

#: Creates an agent from a registry name and options; also returns the options after defaults were filled in.
Make = Callable[[str, dict[str, Any]], Awaitable[Agent]]


class AgentEntry:
    """One agent: its settings, the agent itself once it was created, and its health."""

    def __init__(
        self,
        settings: AgentSettings,
        make: Make,
        clock: Callable[[], int],
        clean: Callable[[str], str] = str,
        logs: AgentLogs | None = None,
    ) -> None:
        """`clean` takes secrets out of a text. `logs`: where its failures are noted."""
        self.settings = settings
        self.healthy = True
        """Whether it succeeded the last time it was used."""
        self.last_error = ""
        self._make = make
        self._clock = clock
        self._clean = clean
        self._logs = logs
        self._agent: Agent | None = None
        self._making = asyncio.Lock()
        self.options = {**settings.options, "workspace": settings.workspace}
        """The options its conversations are opened with; once it was created, including the model found for it."""
        self._problem = ""
        """What was missing that it needs, when somebody last looked."""
        self._look_after = 0
        self._failures = 0
        self._not_before = 0
        self._kind, self._is_passing = "", False
        """Of the fault that postponed the next attempt: its kind, and whether another conversation may go better."""

    @property
    def name(self) -> str:
        """Its name in the exchange."""
        return self.settings.name

    @property
    def capabilities(self) -> Capabilities | None:
        """Its capabilities; None if it has not been created yet."""
        return None if self._agent is None else self._agent.capabilities

    @property
    def is_known(self) -> bool:
        """Whether it was tried: before, nobody can say how it does."""
        return self._agent is not None or not self.healthy

    @property
    def is_due(self) -> bool:
        """Whether it is not known how it does, or it may do better by now than when somebody last looked."""
        if not self.is_known:
            return True
        now = self._clock()
        return bool(self._problem or self._agent is None) and now >= max(self._not_before, self._look_after)

    async def look(self) -> None:
        """Find out how it does, for whoever wants to know: create it if need be, and see whether something is missing
        that it needs. What is wrong with it, `health` says."""
        self._look_after = self._clock() + LOOK_AGAIN_MS
        with suppress(Fault):
            agent = await self.agent()
            self._problem = await asyncio.to_thread(self._problem_of, agent)

    def _problem_of(self, agent: Agent) -> str:
        try:
            found = registry.problem(agent, self.settings.workspace) or ""
        except Exception as error:
            found = str(of(error))
        return self._clean(found)[:SHOWN_CHARS]

    async def agent(self) -> Agent:
        """The agent, created if need be.

        Raises:
            Fault: it cannot be created, or it has just failed and the next attempt is not due yet. Says when it is.
        """
        async with self._making:
            wait = self._not_before - self._clock()
            if wait > 0:
                soon = f"The agent `{self.name}` has failed, and its next try is in {wait / 1000:.1f} s"
                fault = of_kind(self._kind, f"{soon}: {self.last_error}", retryable=self._is_passing)
                fault.retry_after = wait / 1000
                raise fault
            if self._agent is None:
                self._agent = await self._made()
                # What it could not be created for is over.
                self.worked()
            return self._agent

    def policy(self, agent: Agent) -> Policy:
        """What is asked about in a conversation with it, as its settings say, else its own."""
        allow, own = self.settings.allow, getattr(agent, "settings", None)
        if allow is None:
            allow = getattr(own, "allow", None) or DEFAULT_ALLOW
        return Policy(self.settings.mode or "default", allow=allow, rules=getattr(own, "permissions", NO_RULES))

    async def _made(self) -> Agent:
        try:
            with log_context.about(agent=self.name):
                return await self._make(self.settings.agent, self.options)
        except Exception as error:
            self.could_not_open(fault := of(error), again=True)
            if fault is not error:
                raise fault from error
            raise

    async def place(self, workspace: str | None) -> str:
        """The directory of a new session: the one that it asks for, else the agent's own.

        Raises:
            ConfigError: it does not exist. The agent's own is expected to be created, and nothing is postponed.
        """
        # Its own is looked at here, as the agent itself will do; somebody else's may be anywhere.
        own = self.settings.workspace
        path, exists = await asyncio.to_thread(_looked_up, workspace) if workspace else _looked_up(own)
        if not exists:
            fault = ConfigError(f"The workspace `{path}` is not a directory.", hint="Create it, or name another.")
            if not workspace:
                fault.retry_after = FIRST_DELAY_MS / 1000
            raise fault
        return path

    async def health(self) -> tuple[bool, str]:
        """Whether it can be used, as far as is known, and its last error. Its workspace is looked at each time."""
        try:
            await self.place(self.settings.workspace)
        except ConfigError as fault:
            return False, str(fault)
        if self.healthy and self._problem:
            return False, self._problem
        return self.healthy, self.last_error

    def worked(self) -> None:
        """It has opened a conversation or answered."""
        self._problem = ""
        self._failures = self._not_before = 0
        self.healthy = True

    def failed(self, fault: Fault, *, again: bool = False) -> None:
        """One of its turns failed. Its other conversations have their own programs and are not affected. `again`: what
        its log says already need not be said once more, as when somebody only looks whether it can be created now."""
        before, self.healthy = "" if self.healthy else self.last_error, False
        self.last_error = str(fault)[:SHOWN_CHARS]
        if self._logs is not None and not (again and before == self.last_error):
            self._logs.note(self.name, "error", str(fault), str(log_context.known("").get("session") or ""))

    def could_not_open(self, fault: Fault, workspace: str | None = None, *, again: bool = False) -> None:
        """It could not open a conversation in that directory: the next attempt is postponed, and the fault says so.

        Not if the reason lies in the conversation: a log that cannot be read, or is another node's, or a directory of
        its own that is gone. `again`: as in `failed`.
        """
        # Everybody is told, and it may repeat what a program said that has the agent's secrets.
        fault.say(message=self._clean(fault.message), hint=None if fault.hint is None else self._clean(fault.hint))
        own = workspace is not None and workspace != os.path.realpath(os.path.expanduser(self.settings.workspace))
        of_log = isinstance(fault, SessionDamaged | SessionHeld | StoreUnavailable)
        if of_log or (own and not os.path.isdir(workspace or "")):
            return
        self.failed(fault, again=again)
        self._failures += 1
        # What it cannot be created for, no conversation can be opened for, either.
        self._kind, self._is_passing = fault.kind, fault.retryable or self._agent is not None
        delay = int(backoff.delay(self._failures, FIRST_DELAY_MS, LONGEST_DELAY_MS))
        self._not_before = self._clock() + delay
        fault.retry_after = delay / 1000


class Directory:
    """All agents."""

    def __init__(
        self,
        agents: Mapping[str, AgentSettings],
        make: Make,
        clock: Callable[[], int],
        clean: Callable[[str], str] = str,
        *,
        models_in: str | None = None,
    ) -> None:
        """`clean` takes secrets out of a text. `models_in`: the directory of sessions with the plain models of this
        machine, which are agents, too, without being configured; None: they are not."""
        self._make = make
        self._clock = clock
        self._clean = clean
        self.logs = AgentLogs(clock, clean)
        self._models_in = models_in
        self._entries: dict[str, AgentEntry] = {}
        self._models: dict[str, AgentEntry] = {}
        """The plain models that somebody has asked for."""
        self._looking: dict[AgentEntry, asyncio.Task[None]] = {}
        self.take_up(agents)

    @property
    def entries(self) -> tuple[AgentEntry, ...]:
        """In the order of the configuration."""
        return tuple(self._entries.values())

    @property
    def models(self) -> tuple[str, ...]:
        """The plain models of this machine, as agents: `model:NAME`. Looks at the disk, and loads nothing."""
        if self._models_in is None:
            return ()
        from trunkline.models.here import models_here

        return tuple(MODEL_PREFIX + name for name in models_here() if MODEL_PREFIX + name not in self._entries)

    async def look(self, seconds: float) -> None:
        """See how the agents do of which that is not known, or that may do better by now: as far as that is done within
        that time."""
        self.look_soon()
        if self._looking:
            await asyncio.wait(self._looking.values(), timeout=seconds)

    def look_soon(self) -> None:
        """The same, for those who will ask again: nobody waits for it."""
        for entry in self.entries:
            if entry.is_due and entry not in self._looking:
                task = asyncio.create_task(entry.look(), name=f"look at {entry.name}")
                self._looking[entry] = task
                task.add_done_callback(partial(self._looked, entry))

    def _looked(self, entry: AgentEntry, task: asyncio.Task[None]) -> None:
        del self._looking[entry]

    async def close(self) -> None:
        """Look at none any more. Idempotent."""
        for task in (looking := tuple(self._looking.values())):
            task.cancel()
        if looking:
            await asyncio.wait(looking)

    @property
    def names_in_words(self) -> str:
        """Which agents there are, as a sentence."""
        if not self._entries:
            return "The exchange has no agents."
        return f"The agents are {', '.join(f'`{name}`' for name in self._entries)}."

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def find(self, name: str) -> AgentEntry:
        """The agent with that name.

        Raises:
            UnknownAgent: there is none.
        """
        entry = self._find(name)
        if entry is None:
            known = suggestion(name, list(self._entries)) or f" {self.names_in_words}"
            raise UnknownAgent(f"There is no agent `{name}` here.{known}")
        return entry

    def _find(self, name: str) -> AgentEntry | None:
        found = self._entries.get(name) or self._models.get(name)
        if found is None and name.startswith(MODEL_PREFIX) and name in self.models:
            # Only those that are listed: in other names, whoever asks could name any file of this machine.
            place = self._models_in or ""
            with suppress(OSError):
                paths.ensure_dir(place)
            settings = AgentSettings(name, name, place, description=MODEL_DESCRIPTION)
            found = self._models[name] = self._entry(settings)
        return found

    def take_up(self, agents: Mapping[str, AgentSettings]) -> None:
        """Apply new settings. Unchanged agents stay; conversations keep the agent that they started with."""
        old, self._entries = self._entries, {}
        for name, settings in agents.items():
            known = old.get(name)
            if known is None or known.settings != settings:
                known = self._entry(settings)
            self._entries[name] = known

    def renew(self, name: str) -> None:
        """Make an agent anew when it is needed next: its files may say something else now. Conversations keep the agent
        that they started with. One that is not configured stays as it is."""
        if (known := self._entries.get(name)) is not None:
            self._entries[name] = self._entry(known.settings)

    def _entry(self, settings: AgentSettings) -> AgentEntry:
        return AgentEntry(settings, self._make, self._clock, self._clean, self.logs)


def _looked_up(path: str) -> tuple[str, bool]:
    found = os.path.realpath(os.path.expanduser(path))
    return found, os.path.isdir(found)
