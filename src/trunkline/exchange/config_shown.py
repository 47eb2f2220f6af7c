"""The settings of an exchange as they are in force, one by one, with who says so.

No secret is among them: of a token there is only that it is set, and where; of an address only the part that tells
which server it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from trunkline.base.config_file import TomlFile, dotted
from trunkline.base.config_schema import Keys, Schema
from trunkline.base.config_services import SECTIONS, Setting
from trunkline.base.environ_secrets import names_a_secret
from trunkline.base.values import Value
from trunkline.exchange import config_secrets
from trunkline.exchange.config_schema import OWN, WIRES
from trunkline.exchange.settings import AgentSettings, ExchangeSettings

#: What stands for a secret.
SET = "set"

#: Takes secrets that are known out of a value.
Clean = Callable[[Any], Any]


class ShownOrigin(Value):
    """Who says what holds."""

    kind: Literal["file", "default", "environment", "keyring", "found"]
    """`found`: an agent has looked for it on this machine."""
    name: str = ""
    """Of the variable, or of the keyring's entry."""
    path: str = ""
    line: int | None = None


DEFAULT = ShownOrigin("default")


class ShownSetting(Value):
    """One setting. `section` is what it is listed under; `key` is how a file would say it."""

    section: str
    key: str
    value: Any
    """None: nothing is set."""
    origin: ShownOrigin


class SettingsView:
    """The settings of an exchange, for people."""

    def __init__(self, settings: ExchangeSettings, environ: Mapping[str, str], clean: Clean = lambda value: value):
        """`environ` is what the settings were read with; `clean` takes secrets out of a value."""
        self._settings = settings
        self._environ = environ
        self._clean = clean
        self._file = settings.file

    def rows(self) -> Iterator[ShownSetting]:
        """All that is in force, section by section."""
        settings = self._settings
        host, port = settings.listen
        said = _at(self._file, ("exchange",))
        exchange = {
            "listen": f"{f'[{host}]' if ':' in host else host}:{port}",
            "home": settings.home,
            "hosts": list(settings.hosts),
            "webhook": None,
            "approvals_expire": said.get("approvals_expire"),
            "idle_after": said.get("idle_after", f"{settings.evict_seconds:g}s"),
            "metrics_without_token": settings.metrics_without_token,
        }
        yield from self._section(("exchange",), OWN, exchange)
        if settings.cluster is not None:
            yield from self._section(("cluster",), OWN, {"node": settings.cluster.node, "name": settings.cluster.name})
        for name, agent in settings.agents.items():
            yield from self._section(("agents", name), OWN, _in_force(agent))
        for name, wire in settings.wires.items():
            defaults = {key: kind.default for key, kind in WIRES[name].items() if isinstance(kind, Setting)}
            known = {key: value for key, value in defaults.items() if value not in (None, [])}
            yield from self._section(("wires", name), OWN, {**known, **wire.keys}, config_secrets.usual(name))
        for name, person in settings.people.items():
            yield from self._section(("people", name), OWN, {"role": person.role})
        yield from self._telemetry()

    def _section(
        self, path: Keys, schemas: Schema, values: Mapping[str, Any], variables: Mapping[str, str] | None = None
    ) -> Iterator[ShownSetting]:
        """One table: `values` are in force, `variables` hold the secrets of which the file says nothing."""
        said = _at(self._file, path)
        schema = _schema(schemas, path)
        secret = {key for key in schema if f"{key}{config_secrets.ENV}" in schema}
        named = {f"{key}{end}" for key in secret for end in (config_secrets.ENV, config_secrets.KEYRING)}
        for key in dict.fromkeys((*schema, *values, *said)):
            if key in secret:
                yield from self._secret(path, key, said, (variables or {}).get(key, ""), listed=key in values)
            elif key not in named and key != "token_sha256" and (key in values or key in said):
                yield from self._leaves((*path, key), values.get(key, said.get(key)), dotted(path))

    def _leaves(self, path: Keys, value: Any, section: str) -> Iterator[ShownSetting]:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield from self._leaves((*path, str(key)), inner, section)
        else:
            yield ShownSetting(section, dotted(path), self._clean(shown(path, value)), self._origin(path))

    def _secret(
        self, path: Keys, key: str, said: Mapping[str, Any], variable: str, *, listed: bool
    ) -> Iterator[ShownSetting]:
        def row(value: Any, origin: ShownOrigin) -> ShownSetting:
            return ShownSetting(dotted(path), dotted((*path, key)), value, origin)

        entry, env = f"{key}{config_secrets.KEYRING}", f"{key}{config_secrets.ENV}"
        if entry in said:
            yield row(SET, self._origin((*path, entry)).replace(kind="keyring", name=said[entry]))
        elif env in said:
            yield row(SET, self._origin((*path, env)).replace(kind="environment", name=said[env]))
        elif key in said:
            yield row(self._clean(place_only(str(said[key]))), self._origin((*path, key)))
        elif f"{key}_sha256" in said:
            yield row(SET, self._origin((*path, f"{key}_sha256")))
        elif variable and self._environ.get(variable):
            yield row(SET, ShownOrigin("environment", variable))
        elif listed:
            yield row(None, DEFAULT)

    def _telemetry(self) -> Iterator[ShownSetting]:
        for key, kind in SECTIONS["otel"].items():
            if not isinstance(kind, Setting):
                continue
            path, variable = ("otel", key), kind.variable or ""
            if key in self._settings.otel:
                yield ShownSetting("otel", dotted(path), self._told(self._settings.otel[key]), self._origin(path))
            elif value := self._environ.get(variable):
                yield ShownSetting("otel", dotted(path), self._told(value), ShownOrigin("environment", variable))

    def _told(self, text: str) -> Any:
        return self._clean(place_only(text) if "://" in text else text)

    def _origin(self, path: Keys) -> ShownOrigin:
        if self._file is None or not _says(self._file, path):
            return DEFAULT
        place = self._file.place_of(path)
        return ShownOrigin("file", path=self._file.path, line=place.line if place else None)


def shown(path: Keys, value: Any) -> Any:
    """A value that may be seen by whoever may see the settings."""
    from trunkline.runner.config_parts import SECRET_GROUPS

    last = path[-1]
    is_secret = isinstance(value, str) and names_a_secret(last)
    if is_secret or last.endswith("_sha256") or SECRET_GROUPS.intersection(path):
        return SET
    if isinstance(value, str):
        return place_only(value) if last in _ADDRESSES else value
    if isinstance(value, list | tuple):
        return [shown(path, each) for each in value]
    return value if value is None or isinstance(value, int | float | bool) else str(value)


#: Keys whose addresses may hold a password, or be a secret as a whole.
_ADDRESSES = frozenset(("webhook", "nats", "postgres", "endpoint"))


def place_only(addresses: str) -> str:
    """Addresses without whatever may be secret in them: the kind and the server of each."""
    return ", ".join(_place(address.strip()) for address in addresses.split(","))


def _place(address: str) -> str:
    try:
        parts = urlsplit(address)
        server, port = parts.hostname or "", parts.port
    except ValueError:
        return SET
    if not parts.scheme or not server:
        return SET
    host = f"[{server}]" if ":" in server else server
    rest = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{rest}"


def _in_force(agent: AgentSettings) -> dict[str, Any]:
    budget = {name: value for name in agent.budget.__fields__ if (value := getattr(agent.budget, name)) is not None}
    found = {
        "agent": agent.agent,
        "workspace": agent.workspace,
        "mode": agent.mode or "default",
        "allow": None if agent.allow is None else list(agent.allow),
        "description": agent.description,
        **agent.options,
        **({"budget": budget} if budget else {}),
    }
    return {**found, "nodes": list(agent.nodes)} if agent.nodes is not None else found


def _schema(schemas: Schema, path: Keys) -> Schema:
    found: Any = schemas
    for key in path:
        found = found.get(key, found.get("*", {}))
    return found if isinstance(found, Mapping) else {}


def _at(file: TomlFile | None, path: Keys) -> Mapping[str, Any]:
    found: Any = {} if file is None else file.table
    for key in path:
        found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _says(file: TomlFile, path: Keys) -> bool:
    return path[-1] in _at(file, path[:-1])
