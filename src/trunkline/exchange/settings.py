"""The settings of an exchange: the contents of its file, as `exchange.config` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base.config_file import TomlFile
from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode

Role = Literal["observer", "talker", "approver", "admin"]

#: Each role includes those before it.
ROLES: tuple[Role, ...] = ("observer", "talker", "approver", "admin")

#: The extra with the packages that serve HTTP.
EXTRA = "exchange"
#: The default address.
LISTEN = ("127.0.0.1", 4400)


class AgentBudget(Value):
    """The most that an agent may use. None: no limit. Days are in UTC."""

    tokens_per_day: int | None = None
    usd_per_day: float | None = None
    turns_per_hour: int | None = None
    seconds_per_turn: float | None = None


class AgentSettings(Value):
    """One agent of the exchange."""

    name: str
    agent: str
    """Its name in the registry: `coder`, `graph:FILE`, `agentproc:PROFILE`, ..."""
    workspace: str = "."
    mode: Mode | None = None
    allow: tuple[str, ...] | None = None
    """The tools that need no approval; None: those of the agent's own configuration."""
    description: str = ""
    budget: AgentBudget = AgentBudget()
    options: Mapping[str, Any] = {}
    """Provider, model and so on: the options of `trunkline chat`; and of a graph the folder of its models."""
    nodes: tuple[str, ...] | None = None
    """The nodes of a cluster that may run it, such as those that have its workspace; None: all."""

    def may_run(self, node: str) -> bool:
        """Whether a node may run it."""
        return self.nodes is None or node in self.nodes

    @property
    def kind(self) -> str:
        """The part before the colon."""
        return self.agent.partition(":")[0]


class PersonSettings(Value):
    """A person with a token."""

    name: str
    token_sha256: str
    """Hexadecimal."""
    role: Role = "talker"


class WireSettings(Value):
    """A wire to serve, with its own keys as they were written."""

    name: str
    agents: tuple[str, ...] | None = None
    """The agents that it offers; None: all."""
    keys: Mapping[str, Any] = {}
    kept: Mapping[str, str] = {}
    """What the keyring has for it: secrets, by their keys."""

    def __repr__(self) -> str:
        return f"WireSettings(name={self.name!r}, agents={self.agents!r}, keys={self.keys!r})"


class ClusterSettings(Value):
    """This exchange as one of several."""

    nats: tuple[str, ...]
    """The servers."""
    postgres: str
    """The database of the rows."""
    node: str
    """What this one is called."""
    name: str = "trunkline"
    """What the cluster is called: several may use the same servers."""

    def __repr__(self) -> str:
        return f"ClusterSettings(node={self.node!r}, name={self.name!r})"


class ExchangeSettings(Value):
    """All settings. `path` is the file that they were read from."""

    path: str
    home: str
    listen: tuple[str, int] = LISTEN
    hosts: tuple[str, ...] = ()
    """Additional host names that it answers to."""
    agents: Mapping[str, AgentSettings] = {}
    wires: Mapping[str, WireSettings] = {}
    people: Mapping[str, PersonSettings] = {}
    webhook: str | None = None
    """Called when something waits for approval."""
    approvals_expire_seconds: float | None = None
    metrics_without_token: bool = False
    otel: Mapping[str, str] = {}
    """Where traces go, as the section says it."""
    evict_seconds: float = 900.0
    """How long an unused session keeps its agent running."""
    variables: tuple[str, ...] = ()
    """Those that hold a secret of the file: nothing for agents."""
    kept: tuple[str, ...] = ()
    """The secrets that the keyring has, in order to know them when they are seen."""
    cluster: ClusterSettings | None = None
    file: TomlFile | None = None
    """What the file said, for those who want to know where; None: there was none."""

    def secrets(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """What must not be shown, besides what is seen to be a secret by its variable's name."""
        return (*self.kept, *(environ.get(name, "") for name in self.variables))

    def __repr__(self) -> str:
        return f"ExchangeSettings(path={self.path!r}, home={self.home!r})"
