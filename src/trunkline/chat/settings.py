"""What the bridge is told: by flags, by variables, by `[bridge]` of the user's file, and a little of a workspace's.

    [bridge]
    agent = "claude"
    allow = ["telegram:12345"]

    [bridge.agents]
    claude = "agentproc:claude-code"
    mine = "agentproc:my-agent.yaml"

    [bridge.telegram]
    token_env = "TELEGRAM_BOT_TOKEN"

A profile or a script that is named by a path lies relative to the file that names it, wherever the bridge was started.

A workspace's file comes with a repository that somebody else may have written: unless the user trusts the directory, it
may only narrow what is set, as the schema says for each key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from trunkline.base.chat_platforms import EVERYBODY, PLATFORMS, wrong_sender
from trunkline.base.config import user_file
from trunkline.base.config_settled import EffectiveConfig
from trunkline.base.environ_secrets import names_a_secret
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError

__all__ = [
    "DEFAULT_AGENT",
    "EVERYBODY",
    "BridgeSettings",
    "Verbosity",
    "check_senders",
    "load",
    "with_file",
]

Verbosity = Literal["quiet", "normal", "verbose"]

DEFAULT_AGENT = "coder"
#: How the names of profiles and scripts end.
_FILES = (".yaml", ".yml", ".json")
#: Keys that are taken as they are.
_PLAIN = ("mode", "instructions", "verbosity", "rate", "queue", "max_chars")


class BridgeSettings(Value):
    """Everything that the bridge needs to know. The defaults let nobody in."""

    agent: str = DEFAULT_AGENT
    """The name of the agent that answers where nobody chose another."""
    insist: bool = False
    """Whether that holds for conversations, too, in which another agent answered before."""
    agents: Mapping[str, str] = {DEFAULT_AGENT: DEFAULT_AGENT}
    """Those that people may choose: a name, and what the registry of agents calls it."""
    allow: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    """Who may answer what an agent asks; with none, all who are allowed."""
    workspace: str = "."
    mode: Mode = "default"
    instructions: str | None = None
    verbosity: Verbosity = "normal"
    rate: int = 20
    """Messages a minute that one sender may send."""
    queue: int = 10
    """Messages that may wait in one conversation."""
    max_chars: int = 32_000
    """The longest message. People write less, and agents take no more in one environment variable."""
    approval_seconds: float = 600.0
    """Infinite: what is asked waits for ever."""
    idle_seconds: float = 1800.0
    """A session that nobody used for so long is closed; it goes on with the next message."""
    platforms: Mapping[str, Mapping[str, Any]] = {}
    """The tables of the platforms, each as its own module understands it."""
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # The platforms' tables hold tokens.
        return f"BridgeSettings(agent={self.agent!r}, allow={self.allow!r}, platforms={tuple(self.platforms)!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of the platforms' tables that must not be shown."""
        return tuple(_secrets(self.platforms))


def load(
    workspace: str | None = None, agent: str | None = None, environ: Mapping[str, str] = os.environ
) -> BridgeSettings:
    """What holds. A given workspace or agent beats the one that files name, and a given agent is insisted on.

    Raises:
        ConfigError: a file or a variable cannot be used, or there is no such agent.
    """
    # The user's own file says which workspace; to be sent elsewhere by the one that lies there would be odd.
    own = settled("bridge", {"workspace": workspace}, environ, workspace=None)
    where = os.path.realpath(os.path.expanduser(own["workspace"] or os.curdir))
    if not os.path.isdir(where):
        raise ConfigError(f"The workspace `{where}` is not a directory.", hint="Say which with `--workspace DIR`.")
    return _made(settled("bridge", {"agent": agent}, environ, where), where, agent)


def _made(found: EffectiveConfig, workspace: str, flag: str | None) -> BridgeSettings:
    agents = {name: _placed(spec, _folder(found, "agents", name)) for name, spec in found.table("agents").items()}
    chosen = _chosen(found["agent"], agents)
    return BridgeSettings(
        agent=chosen,
        insist=flag is not None,
        agents={chosen: _spec(found, chosen), **agents},
        allow=tuple(found["allow"]),
        approvers=tuple(found["approvers"]),
        workspace=workspace,
        approval_seconds=found["approval_minutes"] * 60.0,
        idle_seconds=found["idle_minutes"] * 60.0,
        platforms={name: found.table(name) for name in PLATFORMS if found.config.get("bridge", name) is not None},
        warnings=found.config.all_warnings(),
        **{key: found[key] for key in _PLAIN},
    )


def _folder(found: EffectiveConfig, *path: str) -> str:
    """Where the file lies that says something."""
    origin = found.config.origin("bridge", *path)
    return os.path.dirname(origin.file) if origin is not None else os.getcwd()


def _spec(found: EffectiveConfig, chosen: str) -> str:
    """What the agent that was chosen is, wherever the bridge is started the next time."""
    if found.source("agent").kind == "file":
        return _placed(chosen, _folder(found, "agent"))
    # What a flag names lies where the flag was typed, also a file whose name is not like one.
    from trunkline.agents import registry

    kind, _, path = chosen.partition(":")
    # What only names a program of the `PATH`, a module or one of ours does not become a file that lies here.
    is_file = kind in registry.FILE_FORMS and not registry.is_bundled(kind, path) and os.path.isfile(path)
    return _placed(f"{kind}:{os.path.join(os.curdir, path)}" if is_file else chosen, os.getcwd())


def _chosen(name: str | None, agents: Mapping[str, str]) -> str:
    """Who answers first: one of the names, or anything that the registry of agents understands.

    Raises:
        ConfigError: it is neither.
    """
    if name is None:
        return next(iter(agents), DEFAULT_AGENT)
    from trunkline.agents import registry

    if name in agents or ":" in name or name in registry.names():
        return name
    known = dict.fromkeys([*agents, *registry.names()])
    raise ConfigError(
        f"There is no agent `{name}`.{suggestion(name, known)} "
        f"The agents are {', '.join(f'`{each}`' for each in known)}.",
        hint="Others are named in `[bridge.agents]`.",
    )


def with_file(problem: str, environ: Mapping[str, str] = os.environ) -> str:
    """A complaint about a key, with the file where the user writes it, if it does not name one."""
    file = user_file(environ)
    return f"{problem} The file is `{file}`." if "`bridge." in problem and file not in problem else problem


def check_senders(senders: Sequence[str]) -> tuple[str, ...]:
    """Senders as a flag names them.

    Raises:
        ConfigError: one of them names nobody.
    """
    for sender in senders:
        if (problem := wrong_sender(sender)) is not None:
            raise ConfigError(f"`--allow` {problem}.")
    return tuple(senders)


def _placed(spec: str, directory: str) -> str:
    """An agent as a file in that directory names it, with the path that it may hold in full."""
    from trunkline.agents import registry

    kind, _, path = spec.partition(":")
    if kind not in registry.FILE_FORMS or not (os.sep in path or path.startswith("~") or path.endswith(_FILES)):
        return spec
    return f"{kind}:{os.path.normpath(os.path.join(directory, os.path.expanduser(path)))}"


def _secrets(table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and names_a_secret(key):
            yield value
