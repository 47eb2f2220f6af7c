"""What an exchange is told: the values behind its configuration file. `exchange.config` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode

Role = Literal["observer", "talker", "approver", "admin"]

#: Each may do what those before it may.
ROLES: tuple[Role, ...] = ("observer", "talker", "approver", "admin")

#: Where people look for it.
LISTEN = ("127.0.0.1", 4400)


class AgentBudget(Value):
    """The most that an agent may use. None: no limit. A day is one of UTC."""

    tokens_per_day: int | None = None
    usd_per_day: float | None = None
    turns_per_hour: int | None = None
    seconds_per_turn: float | None = None


class AgentSettings(Value):
    """One agent of the exchange."""

    name: str
    agent: str
    """As the registry names it: `coder`, `graph:FILE`, `agentproc:PROFILE`, ..."""
    workspace: str = "."
    mode: Mode | None = None
    allow: tuple[str, ...] | None = None
    """The tools that need no approval; None: as the agent's own configuration says."""
    description: str = ""
    budget: AgentBudget = AgentBudget()
    options: Mapping[str, Any] = {}
    """Provider, model and so on: what `trunkline chat` takes."""

    @property
    def kind(self) -> str:
        """What stands before the colon."""
        return self.agent.partition(":")[0]


class PersonSettings(Value):
    """Somebody with a token."""

    name: str
    token_sha256: str
    """Hexadecimal."""
    role: Role = "talker"


class WireSettings(Value):
    """A wire that is served, with its own keys as they were written."""

    name: str
    agents: tuple[str, ...] | None = None
    """Who can be reached there; None: all."""
    keys: Mapping[str, Any] = {}
    kept: Mapping[str, str] = {}
    """What the keyring has for it: secrets, by their keys."""

    def __repr__(self) -> str:
        return f"WireSettings(name={self.name!r}, agents={self.agents!r}, keys={self.keys!r})"


class ExchangeSettings(Value):
    """All of it. `path` is the file that it was read from."""

    path: str
    home: str
    listen: tuple[str, int] = LISTEN
    hosts: tuple[str, ...] = ()
    """More names that it answers to."""
    agents: Mapping[str, AgentSettings] = {}
    wires: Mapping[str, WireSettings] = {}
    people: Mapping[str, PersonSettings] = {}
    webhook: str | None = None
    """Who is told that something waits for approval."""
    approvals_expire_seconds: float | None = None
    metrics_without_token: bool = False
    evict_seconds: float = 900.0
    """How long a session that nobody uses keeps its agent."""
    variables: tuple[str, ...] = ()
    """Those that hold a secret of the file: nothing for agents."""
    kept: tuple[str, ...] = ()
    """The secrets that the keyring has, in order to know them when they are seen."""

    def __repr__(self) -> str:
        return f"ExchangeSettings(path={self.path!r}, home={self.home!r})"
