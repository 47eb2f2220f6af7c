"""Which keys the sections of the services may have: `[bridge]`, `[network]`, `[runner]`, `[tryll]`, and `[otel]`.

Every key is a `Setting`: besides what may stand there, it says what holds if nobody says anything, which flag and which
variable say the same, and what it is for. `config_settled` finds out what holds.

A variable is called `TRUNKLINE_SECTION_KEY`, unless the key has a name of its own from the protocol's original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.base import config_addresses as addresses
from trunkline.base.chat_platforms import PLATFORMS, wrong_sender
from trunkline.base.config_narrowing import less, only_off, stricter, within
from trunkline.base.config_runner import AGENT
from trunkline.base.config_schema import (
    ANY,
    COUNT,
    SERVICES,
    SWITCH,
    TEXT,
    TEXTS,
    URL,
    Kind,
    Schema,
    WholeTable,
    one_of,
)
from trunkline.base.vocabulary import MODES, STRICTEST_FIRST

#: How much of what is going on people want to see; the one that shows least first.
VERBOSITIES = ("quiet", "normal", "verbose")
LOG_LEVELS = ("debug", "info", "warning", "error")
#: More than any machine writes in a minute.
MAX_RATE = 1_000_000
#: What stands for no limit at all.
OFF = "off"


class Setting(Kind):
    """A key of a service."""

    about: str = ""
    default: Any = None
    otherwise: str = ""
    """The default in words, where it is no value."""
    flag: str | None = None
    variable: str | None = None
    reads: Callable[[str], Any] = str
    """What the text of a variable means."""
    form: Callable[[Any], Any] | None = None
    """The one form of a value that fits."""
    secret: bool = False
    is_path: bool = False
    """Whether it names a file or a directory, which lies relative to the file that names it."""

    def of(self, value: Any) -> Any:
        """A value that fits in its one form."""
        return self.form(value) if self.form is not None else value


def _setting(kind: Kind, about: str, default: Any = None, **more: Any) -> Setting:
    # A secret is what it is: whoever else reads the variable must come to the same one.
    reads = str if more.get("secret") else _READS.get(kind.wanted, str.strip)
    more = {"reads": reads, "is_path": kind is PATH, **more}
    return Setting(kind.wanted, kind.fits, kind.narrows, kind.slip, about, default, **more)


def _switched(text: str) -> Any:
    word = text.strip().lower()
    return True if word in ("1", "true", "yes", "on") else False if word in ("0", "false", "no", "off") else text


def _numbered(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def listed(text: str) -> list[str]:
    """Names with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _formed(wanted: str, form: Callable[[Any], Any]) -> Kind:
    """What has a form."""
    return Kind(wanted, lambda value: form(value) is not None)


def _all_formed(wanted: str, form: Callable[[Any], Any]) -> Kind:
    return Kind(wanted, lambda value: isinstance(value, list) and all(form(each) is not None for each in value))


def _forms(form: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda value: [form(each) for each in value]


def _wrong_senders(senders: list[str]) -> str | None:
    return next(filter(None, map(wrong_sender, senders)), None)


def _is_websocket(value: Any) -> bool:
    return type(value) is bool or addresses.listening(value) is not None


def _is_rate(value: Any) -> bool:
    return value == OFF or (type(value) is int and 0 < value <= MAX_RATE)


def _fewer_writes(ours: Any, theirs: Any) -> Any:
    return theirs if ours == OFF else ours if theirs == OFF else min(ours, theirs)


PATH = Kind("a path", lambda value: isinstance(value, str) and bool(value) and "\0" not in value)
LISTEN = _formed("an address such as 127.0.0.1:8080", addresses.listening)
ORIGIN = _formed("an origin, `https://HOST[:PORT]` and nothing more", addresses.origin)
ORIGINS = _all_formed("a list of origins such as https://game.example, and nothing more", addresses.origin)
WEBSOCKET = Kind("`true`, or an address such as 127.0.0.1:9101", _is_websocket)
WEB_ADDRESS = _formed("the address of a web server, `https://HOST[:PORT]`", addresses.web_address)
HOSTS = _all_formed("a list of names of hosts, such as net.example, without a port", addresses.host)
NETWORKS = _all_formed("a list of addresses, such as 127.0.0.1 or 10.0.0.0/8", addresses.network)
RATE = Kind(f'a whole number from 1 to {MAX_RATE}, or "{OFF}"', _is_rate, _fewer_writes)
MINUTES = Kind("a number of minutes above 0", lambda value: type(value) in (int, float) and 0 < value < float("inf"))
SENDERS = Kind('a list of senders such as "telegram:12345", or "*"', TEXTS.fits, slip=_wrong_senders)

_READS: Mapping[str, Callable[[str], Any]] = {
    SWITCH.wanted: _switched,
    COUNT.wanted: _numbered,
    MINUTES.wanted: _numbered,
    RATE.wanted: lambda text: OFF if text.strip().lower() == OFF else _numbered(text),
    TEXTS.wanted: listed,
    SENDERS.wanted: listed,
    HOSTS.wanted: listed,
    ORIGINS.wanted: listed,
    WEBSOCKET.wanted: _switched,
    NETWORKS.wanted: listed,
}

_METRICS = _setting(
    LISTEN, "the address of `/metrics` and `/healthz`; port 0 picks a free one", otherwise="none", flag="--metrics"
)

_BRIDGE: Schema = {
    "agent": _setting(
        TEXT,
        "the agent that answers in a new conversation",
        flag="--agent",
        otherwise="the first of `agents`, or `coder`",
    ),
    "agents": {ANY: TEXT},
    "allow": _setting(SENDERS, "who is let in: `PLATFORM:ID`, or `*`", [], otherwise="nobody", flag="--allow"),
    "approvers": _setting(SENDERS, "who may answer approval requests", [], otherwise="everyone who is let in"),
    "workspace": _setting(TEXT, "where agents work", flag="--workspace", otherwise="the current directory"),
    "mode": _setting(
        one_of(*MODES).narrowing(stricter(STRICTEST_FIRST, "default")), "what agents may do without asking", "default"
    ),
    "instructions": _setting(TEXT, "instructions for the agent, sent before the first message"),
    "verbosity": _setting(
        one_of(*VERBOSITIES).narrowing(stricter(VERBOSITIES)), "how much is shown in addition to the answer", "normal"
    ),
    "rate": _setting(COUNT.narrowing(less), "messages that one person may send per minute", 20),
    "queue": _setting(COUNT.narrowing(less), "messages that may wait in one conversation", 10),
    "max_chars": _setting(COUNT.narrowing(less), "the maximum length of a message, in characters", 32_000),
    "approval_minutes": _setting(MINUTES.narrowing(less), "how long an approval request waits", 10.0),
    "idle_minutes": _setting(
        MINUTES.narrowing(less), "how long an idle session stays open; the next message resumes it", 30.0
    ),
    **{name: entry.table for name, entry in PLATFORMS.items()},
}

_NETWORK: Schema = {
    "listen": _setting(LISTEN, "the address to listen on; port 0 picks a free one", "127.0.0.1:4317", flag="--listen"),
    "public": _setting(SWITCH.narrowing(only_off), "let other machines connect", False, flag="--public"),
    "db": _setting(
        TEXT, "`sqlite:///PATH` or `postgresql://...`", flag="--db", otherwise="SQLite in the state directory"
    ),
    "hosts": _setting(
        HOSTS,
        "more host names to answer to",
        [],
        otherwise="none",
        flag="--allow-host",
        form=_forms(addresses.host),
    ),
    "app_origin": _setting(
        ORIGIN,
        "the one other origin whose pages may call the API; links in issue drafts begin with it",
        otherwise="none",
        variable="SNS_APP_ORIGIN",
        form=addresses.origin,
    ),
    "admin_key": _setting(
        TEXT, "the administrator's key", otherwise="no administrator", variable="ADMIN_API_KEY", secret=True
    ),
    "proxies": _setting(
        NETWORKS,
        "proxies in front of the network, whose `X-Forwarded-For` is trusted",
        [],
        otherwise="none",
        form=_forms(addresses.network),
    ),
    "rate_limit": _setting(RATE, f'signed writes per agent and minute, or `"{OFF}"`', 120),
    "fixed_message_moderation": _setting(
        SWITCH.narrowing(only_off),
        "accept the fixed-message signature for closing communities and banning agents",
        False,
    ),
    "private_webhooks": _setting(
        SWITCH.narrowing(only_off), "let owners' webhooks point to this machine and to private networks", False
    ),
    "explorer_url": _setting(
        WEB_ADDRESS,
        "the explorer to fetch missing ABIs from",
        otherwise="none",
        variable="TRUNKLINE_EXPLORER_URL",
        form=addresses.web_address,
    ),
    "explorer_key": _setting(
        TEXT, "the key for the explorer", otherwise="none", variable="ETHERSCAN_API_KEY", secret=True
    ),
    "metrics": _METRICS,
}

_RUNNER: Schema = {
    "agents": {ANY: WholeTable(AGENT)},
    "db": _setting(
        TEXT, "a `postgresql://...` that launchers share their agents in", flag="--db", otherwise="files of this home"
    ),
    "listen": _setting(LISTEN, "the address to listen on, on this machine only", "127.0.0.1:4318", flag="--listen"),
    "secret": _setting(
        TEXT, "the secret that callers must send", flag="--secret", variable="RUNNER_LAUNCHER_SECRET", secret=True
    ),
    "secret_file": _setting(PATH, "a file that contains the secret", flag="--secret-file"),
    "allow_origin": _setting(
        ORIGIN,
        "the one origin whose pages may call the launcher",
        "http://127.0.0.1:4317",
        flag="--allow-origin",
        variable="RUNNER_ALLOWED_ORIGIN",
        form=addresses.origin,
    ),
    "metrics": _METRICS.replace(
        about="the address of `/metrics` and `/healthz`, on this machine only; port 0 picks a free one"
    ),
}

_TRYLL: Schema = {
    "listen": _setting(LISTEN, "the address to listen on; port 0 picks a free one", "127.0.0.1:9100", flag="--listen"),
    "ws": _setting(
        WEBSOCKET,
        "also listen for WebSockets: at this address, or with `true` at the port after that of `listen`",
        otherwise="no WebSockets",
        flag="--ws",
    ),
    "ws_origins": _setting(
        ORIGINS,
        "whose pages may open a WebSocket, besides those of this machine and of the server's own name",
        [],
        otherwise="no others",
        flag="--ws-origin",
        form=_forms(addresses.origin),
    ),
    "public": _setting(SWITCH.narrowing(only_off), "let other machines connect", False, flag="--public"),
    "token": _setting(TEXT, "the token that clients must send", otherwise="none", secret=True),
    "no_token": _setting(
        SWITCH.narrowing(only_off), "serve every client without a token, even with `public`", False, flag="--no-token"
    ),
    "tls_cert": _setting(PATH, "the certificate chain (PEM) for TLS", otherwise="no TLS", flag="--tls-cert"),
    "tls_key": _setting(PATH, "the key of the certificate, if it is in another file", flag="--tls-key"),
    "models_dir": _setting(PATH, "a folder with a `models.json` or GGUF files", flag="--models-dir"),
    "storage_root": _setting(
        PATH, "the folder whose files clients may name, and where memories are", otherwise="none", flag="--storage-root"
    ),
    "agents": _setting(TEXTS, "agents that clients may use as models", [], otherwise="`echo`", flag="--agent"),
    "workspace": _setting(PATH, "where these agents work", otherwise="the current directory", flag="--workspace"),
    "mode": _setting(
        one_of(*MODES).narrowing(stricter(STRICTEST_FIRST, "default")),
        "what these agents may do without asking",
        "default",
        flag="--mode",
    ),
    "allow": _setting(
        TEXTS.narrowing(within()), "tools that these agents may use in any mode", [], otherwise="none", flag="--allow"
    ),
    "sessions": _setting(SWITCH.narrowing(only_off), "save every conversation as a session", False, flag="--sessions"),
    "metrics": _METRICS,
    "max_clients": _setting(
        COUNT, "connections that there may be at once", otherwise="any number", flag="--max-clients"
    ),
    "max_agents": _setting(COUNT, "agents that one connection may have at once", otherwise="4096", flag="--max-agents"),
    "turns_per_minute": _setting(
        COUNT,
        "turns of one connection that may begin within a minute",
        otherwise="any number",
        flag="--max-turns-per-minute",
    ),
    "vectors_dir": _setting(
        PATH, "where the vectors of embedded storages are kept", otherwise="`tryll-vectors` in the cache"
    ),
    "log_level": _setting(one_of(*LOG_LEVELS), "how much is logged", "warning", flag="--log-level"),
    "log_file": _setting(PATH, "where the log goes", otherwise="standard error", flag="--log-file"),
}


_OTEL: Schema = {
    "endpoint": _setting(
        URL,
        "the OTLP receiver that traces go to, over HTTP; `/v1/traces` is added to it",
        otherwise="no traces",
        variable="OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    "service_name": _setting(TEXT, "what this service is called there", "trunkline", variable="OTEL_SERVICE_NAME"),
}


def _named(section: str, schema: Schema) -> Schema:
    """The same, with the names of variables."""
    return {
        key: kind.replace(variable=kind.variable or f"TRUNKLINE_{section}_{key}".upper())
        if isinstance(kind, Setting)
        else kind
        for key, kind in schema.items()
    }


SECTIONS: Mapping[str, Schema] = {
    name: _named(name, schema)
    for name, schema in zip(SERVICES, (_BRIDGE, _NETWORK, _RUNNER, _TRYLL, _OTEL), strict=True)
}


def schema_of(service: str) -> Schema:
    """What one service reads of the files."""
    return {"trust": TEXTS, service: SECTIONS[service]}


def settings_of(service: str) -> dict[str, Setting]:
    """The keys of a service that have one value each."""
    return {key: kind for key, kind in SECTIONS[service].items() if isinstance(kind, Setting)}
