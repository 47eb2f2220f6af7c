"""Reads and checks the file of an exchange: gives `exchange.settings`, or everything that is wrong with it.

    [exchange]
    listen = "127.0.0.1:4400"
    [agents.helper]
    agent = "coder"
    [people.ana]
    token_env = "ANA_TOKEN"

The file is accepted as a whole or not at all. Paths are relative to it. Sections that other parts of the program read
are checked as well: a mistyped section must not go unnoticed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trunkline.agents import registry
from trunkline.base import config_addresses as addresses
from trunkline.base import exchange_home
from trunkline.base.config_file import ConfigFileError, TomlFile, read_toml
from trunkline.base.config_problems import Problem, by_place, problems_in
from trunkline.base.config_services import PATH, Setting
from trunkline.base.nearest import suggestion
from trunkline.core.approvals import unknown_tool
from trunkline.core.faults import ConfigError
from trunkline.exchange import config_secrets
from trunkline.exchange.config_schema import EVERYTHING, OPTIONS, WIRES, is_name, seconds
from trunkline.exchange.settings import (
    LISTEN,
    AgentBudget,
    AgentSettings,
    ClusterSettings,
    ExchangeSettings,
    PersonSettings,
    WireSettings,
)

#: Problems listed in one message. With more, it is probably the wrong file.
MOST_TOLD = 20
#: How somebody's token can be said.
_TOKENS = ("token_env", "token_keyring", "token_sha256")
#: The wire whose agents are those of a network, each with its own table.
RUNNER = "runner"

Table = Mapping[str, Any]


class WrongFile(ConfigError):
    """The file of an exchange cannot be used. `problems` lists everything that was found, in file order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = len(problems) - MOST_TOLD
        told = [str(problem) for problem in problems[:MOST_TOLD]] + ([f"And {more} more."] if more > 0 else [])
        super().__init__("\n".join(told))
        self.problems = tuple(problems)


#: Gives an entry of a keyring; raises `ConfigError` if there is none.
AskKeyring = Callable[[str], str]


def read(
    path: str, environ: Mapping[str, str] = os.environ, keyring: AskKeyring = config_secrets.from_keyring
) -> ExchangeSettings:
    """The settings in a file. A keyring that it names may take long.

    Raises:
        WrongFile: it does not exist, or something is wrong with it.
    """
    return _usable(checked(_found(path), environ, keyring))


def read_cluster(path: str, environ: Mapping[str, str] = os.environ) -> ClusterSettings | None:
    """What a file says of its cluster; None if it says nothing. What is wrong with the rest of it, or missing for that,
    such as people's tokens, does not matter.

    Raises:
        WrongFile: it does not exist, or something is wrong with that section.
    """
    file = _found(path)
    cluster = file.replace(table={name: said for name, said in file.table.items() if name == "cluster"})
    settings = _usable(checked(cluster, environ))
    return settings.cluster


def checked(
    file: TomlFile, environ: Mapping[str, str], keyring: AskKeyring = config_secrets.from_keyring
) -> ExchangeSettings | list[Problem]:
    """The settings, or everything that is wrong with them, in file order."""
    # Values of the wrong kind cannot be checked any further.
    problems = list(problems_in(file, EVERYTHING))
    reader = _Reader(file, environ, keyring)
    return sorted(problems or reader.problems(), key=by_place) or reader.settings()


def _found(path: str) -> TomlFile:
    try:
        file = read_toml(path)
    except ConfigFileError as error:
        raise WrongFile([Problem.of(error)]) from None
    if file is None:
        raise WrongFile([Problem(path, "does not exist", hint="`trunkline init` writes one.")])
    return file


def _usable(found: ExchangeSettings | list[Problem]) -> ExchangeSettings:
    if not isinstance(found, ExchangeSettings):
        raise WrongFile(found)
    return found


class _Reader:
    """A file whose values are of the right kinds."""

    def __init__(self, file: TomlFile, environ: Mapping[str, str], keyring: AskKeyring) -> None:
        self._file = file
        self._environ = environ
        self._keyring = keyring
        self._kept: dict[str, str | ConfigError] = {}
        """What the keyring has said: it is asked once for each entry."""
        self._directory = os.path.dirname(os.path.abspath(file.path))
        self._exchange: Table = file.table.get("exchange", {})
        self._agents: dict[str, Table] = file.table.get("agents", {})
        self._wires: dict[str, Table] = file.table.get("wires", {})
        self._people: dict[str, Table] = file.table.get("people", {})
        self._cluster: Table = file.table.get("cluster", {})

    # What is wrong with it.

    def problems(self) -> Iterator[Problem]:
        """Problems beyond the kinds of values."""
        yield from self._secrets(("exchange",), self._exchange)
        yield from self._one_of(("exchange",), self._exchange, "webhook", "webhook_env", "webhook_keyring")
        yield from self._wrong_cluster()
        for name, table in self._agents.items():
            yield from self._wrong_name("agents", name)
            yield from self._wrong_agent(name, table)
        for name, table in self._wires.items():
            yield from self._secrets(("wires", name), table)
            for key in config_secrets.usual(name):
                yield from self._one_of(("wires", name), table, f"{key}_env", f"{key}_keyring")
            yield from self._wrong_wire(name, table)
        for name, table in self._people.items():
            yield from self._wrong_name("people", name)
            yield from self._wrong_person(name, table)
        yield from self._shared_tokens()

    def _wrong(self, problem: str, *keys: str, hint: str | None = None) -> Problem:
        return Problem.of(self._file.wrong(problem, keys), hint)

    def _wrong_name(self, section: str, name: str) -> Iterator[Problem]:
        if not is_name(name):
            problem = "must begin with a letter or a digit and have at most 64 letters, digits, `.`, `_` and `-`"
            yield self._wrong(problem, section, name)

    def _wrong_cluster(self) -> Iterator[Problem]:
        table = self._cluster
        if "cluster" not in self._file.table:
            return
        yield from self._secrets(("cluster",), table)
        for key, example in (("nats", "nats://127.0.0.1:4222"), ("postgres", "postgresql://127.0.0.1/trunkline")):
            yield from self._one_of(("cluster",), table, key, f"{key}_env")
            if key not in table and f"{key}_env" not in table:
                yield self._wrong(f'needs `{key}`, such as `{key} = "{example}"`', "cluster")
        node = table.get("node")
        if node is None:
            yield self._wrong('needs `node`, the name of this one, such as `node = "a"`', "cluster")
        for key in ("node", "name"):
            if key in table and not (is_name(table[key]) and "." not in table[key]):
                problem = "must begin with a letter or a digit and have at most 64 letters, digits, `_` and `-`"
                yield self._wrong(problem, "cluster", key)
        if (url := self._said(table, "postgres")) and not url.startswith(("postgresql://", "postgres://")):
            yield self._wrong("must be an address such as `postgresql://127.0.0.1/trunkline`", "cluster", "postgres")
        for url in filter(None, map(str.strip, (self._said(table, "nats") or "").split(","))):
            if not url.startswith(("nats://", "tls://")):
                yield self._wrong(
                    f"holds `{url}`, and an address is written like `nats://127.0.0.1:4222`", "cluster", "nats"
                )

    def _said(self, table: Table, key: str) -> str | None:
        """What a key says, or the variable that it names."""
        return table.get(key) or self._environ.get(table.get(f"{key}{config_secrets.ENV}", "")) or None

    def _wrong_agent(self, name: str, table: Table) -> Iterator[Problem]:
        spec = table.get("agent")
        if spec is None:
            yield self._wrong('needs `agent`, such as `agent = "coder"`', "agents", name)
            return
        kind, colon, rest = spec.partition(":")
        if colon and not (kind and rest.strip()):
            yield self._wrong(f"is `{spec}`, which names nothing after the colon", "agents", name, "agent")
        elif not colon and spec not in registry.names():
            hint = f"{suggestion(spec, registry.names()).strip()} There are {', '.join(registry.names())}; "
            hint = f"{hint}{', '.join(registry.FORMS)} name yours.".strip()
            yield self._wrong(f"is `{spec}`, and there is no such agent", "agents", name, "agent", hint=hint)
        if kind == "coder":
            for tool in table.get("allow", ()):
                if problem := unknown_tool(tool, more_tools=True):
                    yield self._wrong(f"holds `{tool}`", "agents", name, "allow", hint=problem)

    def _wrong_wire(self, name: str, table: Table) -> Iterator[Problem]:
        for key, names in _agents_of(table).items():
            for each in names:
                if each not in self._agents:
                    hint = suggestion(each, self._agents).strip() or f"Write `[agents.{each}]`, or another name."
                    yield self._wrong(f"names `{each}`, and there is no such agent here", "wires", name, key, hint=hint)

        if name == RUNNER:
            # Imported only if there is one: runners take long to import.
            from trunkline.exchange.config_runner import slips

            for who, told in table.get("agents", {}).items():
                for slip in slips(told, self._agents, self._environ):
                    yield self._wrong(slip.problem, "wires", name, "agents", who, *slip.keys, hint=slip.hint)

    def _wrong_person(self, name: str, table: Table) -> Iterator[Problem]:
        if not any(key in table for key in _TOKENS):
            yield self._wrong("needs `token_env`, `token_keyring` or `token_sha256`", "people", name)
        yield from self._one_of(("people", name), table, *_TOKENS)
        yield from self._secrets(("people", name), table)

    def _one_of(self, path: tuple[str, ...], table: Table, *keys: str) -> Iterator[Problem]:
        """Keys that say what another one says already."""
        said = [key for key in keys if key in table]
        for key in said[1:]:
            yield self._wrong(f"is one too many: there is `{said[0]}` already", *path, key)

    def _secrets(self, path: tuple[str, ...], table: Table) -> Iterator[Problem]:
        """Variables and entries of the keyring that are named and hold nothing."""
        for key, name in table.items():
            if key.endswith(config_secrets.ENV) and not self._environ.get(name):
                hint = f"Set it before the exchange is started: `export {name}=...`."
                yield self._wrong(f"names `{name}`, which is not set", *path, key, hint=hint)
            elif key.endswith(config_secrets.KEYRING) and isinstance(error := self._entry(name), ConfigError):
                told = f"names `{name}`, which is not available: {error.message.rstrip('.')}"
                yield self._wrong(told, *path, key, hint=error.hint)

    def _entry(self, name: str) -> str | ConfigError:
        if name not in self._kept:
            try:
                self._kept[name] = self._keyring(name)
            except ConfigError as error:
                self._kept[name] = error
        return self._kept[name]

    def _secret(self, table: Table, key: str) -> str | None:
        """The secret of a key, from where the table says that it is."""
        if (name := table.get(f"{key}{config_secrets.KEYRING}")) is not None:
            found = self._entry(name)
            return found if isinstance(found, str) else None
        return self._environ.get(table.get(f"{key}{config_secrets.ENV}", "")) or None

    def _shared_tokens(self) -> Iterator[Problem]:
        owners: dict[str, str] = {}
        for name in self._people:
            digest = self._digest(name)
            if digest is None:
                continue
            if digest in owners:
                yield self._wrong(
                    f"has the same token as `{owners[digest]}`: they could not be told apart", "people", name
                )
            owners.setdefault(digest, name)

    # What it says.

    def settings(self) -> ExchangeSettings:
        """All of it."""
        table = self._exchange
        return ExchangeSettings(
            os.path.abspath(self._file.path),
            exchange_home.home_in(self._file, self._environ),
            listen=addresses.listening(table.get("listen")) or LISTEN,
            hosts=tuple(table.get("hosts", ())),
            agents={name: self._agent(name, table) for name, table in self._agents.items()},
            wires={name: self._wire(name, table) for name, table in self._wires.items()},
            people={
                name: PersonSettings(name, self._digest(name) or "", table.get("role", "talker"))
                for name, table in self._people.items()
            },
            webhook=self._secret(table, "webhook") or table.get("webhook"),
            approvals_expire_seconds=seconds(table.get("approvals_expire", "")),
            metrics_without_token=table.get("metrics_without_token", False),
            otel=self._file.table.get("otel", {}),
            evict_seconds=seconds(table.get("idle_after", "")) or ExchangeSettings.__defaults__["evict_seconds"],
            variables=tuple(dict.fromkeys(config_secrets.variables(table, self._wires, self._people))),
            kept=tuple(found for found in self._kept.values() if isinstance(found, str)),
            cluster=self._clustered(),
            file=self._file,
        )

    def _clustered(self) -> ClusterSettings | None:
        table = self._cluster
        if not table:
            return None
        servers = tuple(filter(None, map(str.strip, (self._said(table, "nats") or "").split(","))))
        return ClusterSettings(
            servers, self._said(table, "postgres") or "", table["node"], table.get("name", "trunkline")
        )

    def _agent(self, name: str, table: Table) -> AgentSettings:
        options = {key: value for key, value in table.items() if key in OPTIONS}
        if "models_dir" in table:
            options["models_dir"] = self._path(table["models_dir"])
        return AgentSettings(
            name,
            self._spec(table["agent"]),
            self._path(table.get("workspace", os.curdir)),
            table.get("mode"),
            tuple(table["allow"]) if "allow" in table else None,
            table.get("description", ""),
            AgentBudget(**table.get("budget", {})),
            options,
            tuple(table["nodes"]) if "nodes" in table else None,
        )

    def _spec(self, spec: str) -> str:
        """An agent's name, with the path in it made absolute."""
        kind, _, rest = spec.partition(":")
        if kind not in registry.FILE_FORMS or registry.is_bundled(kind, rest):
            return spec
        return f"{kind}:{self._path(rest)}"

    def _wire(self, name: str, table: Table) -> WireSettings:
        named = _agents_of(table)
        keys = {
            key: self._value(name, key, value) for key, value in table.items() if key not in named or key == "agent"
        }
        # A wire that names a single agent, and no list, offers only that agent.
        agents = [*named.get("agent", ()), *named.get("agents", ())]
        secrets = [key for key in config_secrets.usual(name) if f"{key}{config_secrets.KEYRING}" in table]
        kept = {key: self._secret(table, key) or "" for key in secrets}
        return WireSettings(name, tuple(dict.fromkeys(agents)) if named else None, keys, kept)

    def _value(self, wire: str, key: str, value: Any) -> Any:
        if wire == RUNNER and key == "agents":
            from trunkline.runner.config import relocated

            return {name: relocated(told, self._path) for name, told in value.items()}
        kind = WIRES[wire].get(key)
        is_path = kind is PATH or (isinstance(kind, Setting) and kind.is_path)
        return self._path(value) if is_path else value

    def _path(self, path: str) -> str:
        return os.path.abspath(os.path.join(self._directory, os.path.expanduser(path)))

    def _digest(self, person: str) -> str | None:
        table = self._people[person]
        if "token_sha256" in table:
            return str(table["token_sha256"]).lower()
        token = self._secret(table, "token")
        return None if not token else hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _agents_of(table: Table) -> dict[str, Sequence[str]]:
    """The agents that a wire names, with the key of each. The first one answers by default."""
    found: dict[str, Sequence[str]] = {}
    if isinstance(table.get("agent"), str):
        found["agent"] = (table["agent"],)
    # The runner's agents are tables: they are those of a network.
    if isinstance(table.get("agents"), list):
        found["agents"] = table["agents"]
    return found
