"""What the bridge is told by the configuration files: `[bridge]` of the user's own, and a little of a workspace's.

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

from trunkline.base.config import PROJECT_FILE, user_file
from trunkline.base.config_file import ConfigFileError, TomlFile, read_toml
from trunkline.base.config_narrowing import less, stricter
from trunkline.base.config_schema import (
    ANY,
    ANYTHING,
    COUNT,
    TEXT,
    TEXTS,
    Kind,
    Schema,
    check,
    dotted,
    kind_at,
    one_of,
)
from trunkline.base.config_trust import is_trusted, leaves, restrict
from trunkline.base.environ_secrets import names_a_secret
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.base.vocabulary import MODES, Mode
from trunkline.core.faults import ConfigError

Verbosity = Literal["quiet", "normal", "verbose"]
#: The one that shows least first.
_VERBOSITIES: tuple[Verbosity, ...] = ("quiet", "normal", "verbose")

#: Everybody. Has to be written out: an empty list is nobody.
EVERYBODY = "*"
PLATFORMS = ("terminal", "telegram", "matrix")
DEFAULT_AGENT = "coder"
#: The one sender of that platform.
_AT_THE_TERMINAL = "you"
#: How the names of profiles and scripts end.
_FILES = (".yaml", ".yml", ".json")

# Which of them names nobody is told later, one by one.
_PLACES = Kind(
    'a list of senders such as "telegram:12345", or "*"',
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
)
_MINUTES = Kind("a number of minutes above 0", lambda value: type(value) in (int, float) and 0 < value < float("inf"))

_BRIDGE: dict[str, Kind | Schema] = {
    "agent": TEXT,
    "agents": {ANY: TEXT},
    "allow": _PLACES,
    "approvers": _PLACES,
    "workspace": TEXT,
    "mode": one_of(*MODES).narrowing(stricter(MODES)),
    "instructions": TEXT,
    "verbosity": one_of(*_VERBOSITIES).narrowing(stricter(_VERBOSITIES)),
    "rate": COUNT.narrowing(less),
    "queue": COUNT.narrowing(less),
    "max_chars": COUNT.narrowing(less),
    "approval_minutes": _MINUTES.narrowing(less),
    "idle_minutes": _MINUTES.narrowing(less),
    **{platform: {ANY: ANYTHING} for platform in PLATFORMS},
}
SCHEMA: Schema = {"bridge": _BRIDGE, "trust": TEXTS}


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


def _by_default() -> dict[str, Any]:
    """What holds for the keys that narrow where the user says nothing."""
    settings = BridgeSettings()
    plain = {key: getattr(settings, key) for key in ("mode", "verbosity", "rate", "queue", "max_chars")}
    minutes = {"approval_minutes": settings.approval_seconds / 60, "idle_minutes": settings.idle_seconds / 60}
    return {**plain, **minutes}


def load(
    workspace: str | None = None, agent: str | None = None, environ: Mapping[str, str] = os.environ
) -> BridgeSettings:
    """Read the files. A given workspace or agent beats the one that they name, and a given agent is insisted on.

    Raises:
        ConfigError: one of them cannot be used, or there is no such agent.
    """
    try:
        return _Reading(environ).settings(workspace, agent)
    except ConfigFileError as error:
        raise ConfigError(f"{error}.") from None


class _Reading:
    """Reads the user's file, then that of the workspace."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._user_file = user_file(environ)
        self._warnings: list[str] = []
        self._placed: dict[str, str] = {}

    def settings(self, workspace: str | None, agent: str | None) -> BridgeSettings:
        own = read_toml(self._user_file)
        whole = self._checked(own) if own else {}
        table: dict[str, Any] = whole.get("bridge", {})
        where = os.path.realpath(os.path.expanduser(workspace or table.get("workspace") or "."))
        if not os.path.isdir(where):
            raise ConfigError(f"The workspace `{where}` is not a directory.", hint="Say which with `--workspace DIR`.")
        trusted = is_trusted(where, whole.get("trust", ()))
        path = os.path.join(where, PROJECT_FILE)
        # A link out of a workspace that nobody trusts is not read.
        project = read_toml(path) if trusted or not leaves(path, where) else None
        if project is not None and project.path != self._user_file:
            table = {**table, **self._allowed(project, table, trusted=trusted)}
        return self._made(table, where, agent)

    def _checked(self, file: TomlFile) -> dict[str, Any]:
        # The other sections are none of our business.
        mine = {key: value for key, value in file.table.items() if key in SCHEMA}
        checked = check(mine, SCHEMA)
        for keys, problem in checked.wrong:
            raise ConfigFileError(file.path, problem, key=dotted(keys), line=file.line_of(keys))
        for keys, known in checked.unknown:
            error = ConfigFileError(file.path, "is not known", key=dotted(keys), line=file.line_of(keys))
            self._warnings.append(f"{error}.{suggestion(keys[-1], known)}")
        table: dict[str, Any] = checked.table.get("bridge", {})
        for key in ("allow", "approvers"):
            for sender in table.get(key, ()):
                if (nobody := _wrong_with(sender)) is not None:
                    keys = ("bridge", key)
                    raise ConfigFileError(file.path, nobody, key=dotted(keys), line=file.line_of(keys))
        self._place(table, os.path.dirname(file.path))
        return checked.table

    def _place(self, table: dict[str, Any], directory: str) -> None:
        """Find the files that a table names as agents, before another table is mixed with it."""
        if "agents" in table:
            table["agents"] = {name: _placed(spec, directory) for name, spec in table["agents"].items()}
        if "agent" in table:
            self._placed[table["agent"]] = _placed(table["agent"], directory)

    def _allowed(self, file: TomlFile, own: Mapping[str, Any], *, trusted: bool) -> dict[str, Any]:
        """What of a workspace's file is followed, beside the user's `own` table."""
        table: dict[str, Any] = self._checked(file).get("bridge", {})
        # It has been found; to be sent elsewhere by it would be odd.
        table.pop("workspace", None)
        if trusted:
            return table
        narrowing, refused = restrict({"bridge": table}, SCHEMA)
        followed: dict[str, Any] = {}
        defaults = _by_default()
        not_followed = [dotted(keys) for keys in refused]
        for key, value in narrowing["bridge"].items():
            kind = kind_at(("bridge", key), SCHEMA)
            if kind is None or kind.narrows is None:
                continue
            followed[key] = kind.narrows(own.get(key, defaults[key]), value)
            if followed[key] != value:
                not_followed.append(dotted(("bridge", key)))
        if not_followed:
            self._warnings.append(
                f"`{file.path}`: not followed: {', '.join(f'`{key}`' for key in not_followed)}. A workspace's file may "
                f"only narrow what you have set: less, fewer, stricter. If you trust this directory, say so at the top "
                f'of `{self._user_file}`: `trust = ["{os.path.dirname(file.path)}"]`.'
            )
        return followed

    def _made(self, table: Mapping[str, Any], workspace: str, agent: str | None) -> BridgeSettings:
        plain = ("mode", "instructions", "verbosity", "rate", "queue", "max_chars")
        given: dict[str, Any] = {key: table[key] for key in plain if key in table}
        agents: dict[str, str] = dict(table.get("agents", {}))
        chosen = _chosen(agent or table.get("agent"), agents)
        for key in ("approval", "idle"):
            if f"{key}_minutes" in table:
                given[f"{key}_seconds"] = table[f"{key}_minutes"] * 60.0
        return BridgeSettings(
            agent=chosen,
            insist=agent is not None,
            agents={chosen: self._spec(chosen, is_flag=agent is not None), **agents},
            allow=tuple(table.get("allow", ())),
            approvers=tuple(table.get("approvers", ())),
            workspace=workspace,
            platforms={name: table[name] for name in PLATFORMS if name in table},
            warnings=tuple(self._warnings),
            **given,
        )

    def _spec(self, chosen: str, *, is_flag: bool) -> str:
        """What the agent that was chosen is, wherever the bridge is started the next time."""
        if not is_flag:
            return self._placed.get(chosen, chosen)
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
        if (problem := _wrong_with(sender)) is not None:
            raise ConfigError(f"`--allow` {problem}.")
    return tuple(senders)


def _wrong_with(sender: str) -> str | None:
    """Why that is nobody, and what senders look like."""
    if not _is_sender(sender):
        return f"holds `{sender}`, which names no sender: write `PLATFORM:ID`, such as `telegram:12345`, or `*` for all"
    platform, _, id = sender.partition(":")
    user, colon, server = id.removeprefix("@").partition(":")
    if platform == "telegram" and not (id.isascii() and id.isdigit()):
        looks = "Telegram's ids are numbers, as in `telegram:12345`. Write to the bot, and it tells you yours"
    elif platform == "matrix" and not (id.startswith("@") and user and colon and server):
        looks = "Matrix ids look like `@user:server`, as in `matrix:@me:example.org`"
    elif platform == "terminal" and id != _AT_THE_TERMINAL:
        looks = f"at the terminal there is only `terminal:{_AT_THE_TERMINAL}`, who is let in anyway"
    else:
        return None
    return f"holds `{sender}`, which is nobody: {looks}"


def _is_sender(item: str) -> bool:
    platform, colon, sender = item.partition(":")
    return item == EVERYBODY or bool(colon and sender and platform in PLATFORMS)


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
