"""The file of an exchange, read and checked: `exchange.settings`, or all that is wrong with it.

    [exchange]
    listen = "127.0.0.1:4400"
    [agents.helper]
    agent = "coder"
    [people.ana]
    token_env = "ANA_TOKEN"

It is taken whole or not at all. Paths in it are relative to it. Its other sections, which other parts of the program
read, are checked as well: a mistyped section must not be silence.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
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
from trunkline.exchange.config_schema import EVERYTHING, OPTIONS, WIRES, is_name, seconds
from trunkline.exchange.settings import (
    LISTEN,
    AgentBudget,
    AgentSettings,
    ExchangeSettings,
    PersonSettings,
    WireSettings,
)

#: Problems that one message tells. Whoever has more has given the wrong file.
MOST_TOLD = 20
#: The wire whose agents are those of a network, each with a table of its own.
RUNNER = "runner"

Table = Mapping[str, Any]


class WrongFile(ConfigError):
    """The file of an exchange cannot be used. `problems` are all that was found, in the order of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = len(problems) - MOST_TOLD
        told = [str(problem) for problem in problems[:MOST_TOLD]] + ([f"And {more} more."] if more > 0 else [])
        super().__init__("\n".join(told))
        self.problems = tuple(problems)


def read(path: str, environ: Mapping[str, str] = os.environ) -> ExchangeSettings:
    """The settings that a file holds.

    Raises:
        WrongFile: it is not there, or something is wrong with it.
    """
    try:
        file = read_toml(path)
    except ConfigFileError as error:
        raise WrongFile([Problem.of(error)]) from None
    if file is None:
        raise WrongFile([Problem(path, "is not there", hint="`trunkline init` writes one.")])
    found = checked(file, environ)
    if not isinstance(found, ExchangeSettings):
        raise WrongFile(found)
    return found


def checked(file: TomlFile, environ: Mapping[str, str]) -> ExchangeSettings | list[Problem]:
    """The settings, or all that is wrong with them, in the order of the file."""
    # What is of the wrong kind can be looked at no further.
    problems = list(problems_in(file, EVERYTHING))
    reader = _Reader(file, environ)
    return sorted(problems or reader.problems(), key=by_place) or reader.settings()


class _Reader:
    """One file whose values are of the right kinds."""

    def __init__(self, file: TomlFile, environ: Mapping[str, str]) -> None:
        self._file = file
        self._environ = environ
        self._directory = os.path.dirname(os.path.abspath(file.path))
        self._exchange: Table = file.table.get("exchange", {})
        self._agents: dict[str, Table] = file.table.get("agents", {})
        self._wires: dict[str, Table] = file.table.get("wires", {})
        self._people: dict[str, Table] = file.table.get("people", {})

    # What is wrong with it.

    def problems(self) -> Iterator[Problem]:
        """What no kind of a value tells."""
        yield from self._variables(("exchange",), self._exchange)
        if "webhook" in self._exchange and "webhook_env" in self._exchange:
            yield self._wrong("is one too many: there is `webhook` already", "exchange", "webhook_env")
        for name, table in self._agents.items():
            yield from self._wrong_name("agents", name)
            yield from self._wrong_agent(name, table)
        for name, table in self._wires.items():
            yield from self._variables(("wires", name), table)
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

    def _wrong_agent(self, name: str, table: Table) -> Iterator[Problem]:
        spec = table.get("agent")
        if spec is None:
            yield self._wrong('needs `agent`, such as `agent = "coder"`', "agents", name)
            return
        kind, colon, rest = spec.partition(":")
        if colon and not (kind and rest.strip()):
            yield self._wrong(f"is `{spec}`, which names nothing behind the colon", "agents", name, "agent")
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
            # Only who has one needs to know what a runner is.
            from trunkline.exchange.config_runner import slips

            for who, told in table.get("agents", {}).items():
                for slip in slips(told, self._agents, self._environ):
                    yield self._wrong(slip.problem, "wires", name, "agents", who, *slip.keys, hint=slip.hint)

    def _wrong_person(self, name: str, table: Table) -> Iterator[Problem]:
        said = [key for key in ("token_env", "token_sha256") if key in table]
        if not said:
            yield self._wrong("needs `token_env` or `token_sha256`", "people", name)
        elif len(said) > 1:
            yield self._wrong("is one too many: there is `token_env` already", "people", name, "token_sha256")
        yield from self._variables(("people", name), table)

    def _variables(self, path: tuple[str, ...], table: Table) -> Iterator[Problem]:
        """Variables that are named and hold nothing."""
        for key, variable in table.items():
            if key.endswith("_env") and not self._environ.get(variable):
                hint = f"Set it before the exchange is started: `export {variable}=...`."
                yield self._wrong(f"names `{variable}`, which is not set", *path, key, hint=hint)

    def _shared_tokens(self) -> Iterator[Problem]:
        owners: dict[str, str] = {}
        for name in self._people:
            digest = self._digest(name)
            if digest is None:
                continue
            if digest in owners:
                yield self._wrong(
                    f"has the same token as `{owners[digest]}`: nobody could tell them apart", "people", name
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
            webhook=self._environ.get(table.get("webhook_env", "")) or table.get("webhook"),
            approvals_expire_seconds=seconds(table.get("approvals_expire", "")),
            metrics_without_token=table.get("metrics_without_token", False),
            evict_seconds=seconds(table.get("idle_after", "")) or ExchangeSettings.__defaults__["evict_seconds"],
        )

    def _agent(self, name: str, table: Table) -> AgentSettings:
        return AgentSettings(
            name,
            self._spec(table["agent"]),
            self._path(table.get("workspace", os.curdir)),
            table.get("mode"),
            tuple(table["allow"]) if "allow" in table else None,
            table.get("description", ""),
            AgentBudget(**table.get("budget", {})),
            {key: value for key, value in table.items() if key in OPTIONS},
        )

    def _spec(self, spec: str) -> str:
        """An agent's name, with the file in it in full."""
        kind, _, rest = spec.partition(":")
        if kind not in registry.FILE_FORMS or registry.is_bundled(kind, rest):
            return spec
        return f"{kind}:{self._path(rest)}"

    def _wire(self, name: str, table: Table) -> WireSettings:
        named = _agents_of(table)
        keys = {
            key: self._value(name, key, value) for key, value in table.items() if key not in named or key == "agent"
        }
        # A wire that names one agent, and no list, is that agent's alone.
        agents = [*named.get("agent", ()), *named.get("agents", ())]
        return WireSettings(name, tuple(dict.fromkeys(agents)) if named else None, keys)

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
        token = self._environ.get(table.get("token_env", ""))
        return None if not token else hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _agents_of(table: Table) -> dict[str, Sequence[str]]:
    """The agents that a wire names, by the key that does. The first is who answers first."""
    found: dict[str, Sequence[str]] = {}
    if isinstance(table.get("agent"), str):
        found["agent"] = (table["agent"],)
    # The runner's agents are tables: those of a network.
    if isinstance(table.get("agents"), list):
        found["agents"] = table["agents"]
    return found
