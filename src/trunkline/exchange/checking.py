"""Finds what would keep an exchange from working, without starting it, and how to fix each problem."""

from __future__ import annotations

import asyncio
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

from trunkline.base import asgi, local_socket, paths
from trunkline.base.chat_platforms import PLATFORMS
from trunkline.base.config import USER_FILE
from trunkline.base.exchange_home import API_SOCKET
from trunkline.base.extras import install_hint, missing
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.agent import Agent
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.usage import Usage
from trunkline.exchange import config
from trunkline.exchange.config import RUNNER
from trunkline.exchange.exchange import by_registry, database_path
from trunkline.exchange.schema import FORM
from trunkline.exchange.settings import EXTRA, AgentSettings, ExchangeSettings, WireSettings
from trunkline.models import catalog_json, prices
from trunkline.models.catalog_entry import OPENAI, CatalogEntry
from trunkline.store.database.sqlite import examine_sqlite

#: A running exchange accepts connections at once.
CONNECT_SECONDS = 1.0
#: For finding out whether an agent is available: it may look for a model on this machine.
AGENT_SECONDS = 20.0

#: What an exchange needs to go on for a while: a few of its write-ahead log's pages, and the words of some turns.
FEWEST_FREE_BYTES = 8 * 1024 * 1024

#: The permissions that others must not have in a home.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class DoctorFinding(Value):
    """One thing that was checked."""

    what: str
    ok: bool
    told: str
    mend: str = ""
    """A command, or what to do."""


async def examine(path: str, environ: Mapping[str, str]) -> list[DoctorFinding]:
    """All checks that are possible. Those that depend on something broken are skipped."""
    try:
        settings = await asyncio.to_thread(config.read, path, environ)
    except config.WrongFile as wrong:
        return [_wrong("file", str(each.replace(hint=None)), each.hint or "") for each in wrong.problems]
    found = [
        DoctorFinding("file", True, path),
        _packages(),
        *_home(settings),
        *await asyncio.to_thread(_database, settings.home),
        await asyncio.to_thread(_address, settings),
    ]
    redactor = Redactor.from_environ(environ)
    for agent in settings.agents.values():
        found.append(await examine_agent(agent, redactor))
    if not settings.agents:
        found.append(_wrong("agents", "there are none", f"Write `[agents.NAME]` into `{path}`."))
    for wire in settings.wires.values():
        found += _wire(settings, wire, environ)
    found += await _models(settings)
    if not settings.people:
        note = "no person has a token: the exchange can be used through the socket in its home, but not over HTTP"
        found.append(DoctorFinding("people", True, note))
    return found


def _wrong(what: str, told: str, mend: str = "") -> DoctorFinding:
    return DoctorFinding(what, False, told, mend)


def _packages() -> DoctorFinding:
    if (module := missing(EXTRA)) is not None:
        return _wrong("packages", f"`{module}` is not installed", install_hint(EXTRA))
    return DoctorFinding("packages", True, "all are here")


def _home(settings: ExchangeSettings) -> Iterator[DoctorFinding]:
    home = settings.home
    try:
        mode = os.stat(home).st_mode
    except FileNotFoundError:
        yield _missing(home)
        return
    except OSError as error:
        yield _wrong("home", f"{home}: {error.strerror or error}", _another(home))
        return
    if not stat.S_ISDIR(mode):
        yield _wrong("home", f"{home} is not a directory", _another(home))
    elif not os.access(home, os.W_OK | os.X_OK):
        yield _wrong("home", f"{home} cannot be written to", f"chmod u+rwx {shlex.quote(home)}")
    elif (free := free_bytes(home)) < FEWEST_FREE_BYTES:
        yield _wrong(
            "home", f"{home} has {free // 1024:,} KiB of free space", f"Free some space: df -h {shlex.quote(home)}"
        )
    elif mode & _OTHERS:
        # Its contents cannot: this is merely untidy.
        yield DoctorFinding("home", True, f"{home}, which others can look into", f"chmod 700 {shlex.quote(home)}")
    else:
        yield DoctorFinding("home", True, home)


def free_bytes(path: str) -> int:
    """How much the user may still write where a directory is."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _missing(home: str) -> DoctorFinding:
    """Only trying shows whether it can be created: permissions do not tell everything, and root passes every check."""
    try:
        made = paths.ensure_dir(home)
    except OSError as error:
        return _wrong("home", f"{home} cannot be made: {error.strerror or error}", _another(home))
    for directory in reversed(made):
        # Somebody may be using it by now.
        with suppress(OSError):
            os.rmdir(directory)
    return DoctorFinding("home", True, f"{home}, which will be made")


def _another(home: str) -> str:
    return paths.elsewhere(home) or "Name another `home` in the file."


def _database(home: str) -> list[DoctorFinding]:
    """Only what is wrong with it. That of a running exchange is in use, so it is fine."""
    if _runs(home):
        return []
    try:
        examine_sqlite(database_path(home), FORM)
    except ConfigError as error:
        return [_wrong("database", error.message, error.hint or "")]
    return []


def _address(settings: ExchangeSettings) -> DoctorFinding:
    host, port = settings.listen
    if _runs(settings.home):
        return DoctorFinding("address", True, "the exchange is running")
    try:
        with asgi.listening(host, port):
            return DoctorFinding("address", True, f"{host}:{port} is free")
    except asgi.CannotListen as error:
        return _wrong(
            "address",
            f"{host}:{port}: {error.strerror}",
            f"Choose another `listen` in the section `[exchange]` of `{settings.path}`.",
        )


def _runs(home: str) -> bool:
    try:
        local_socket.connected(home, API_SOCKET, CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


async def examine_agent(settings: AgentSettings, redactor: Redactor) -> DoctorFinding:
    """Whether an agent could begin a conversation, as far as that can be told without one."""
    what = f"agent {settings.name}"
    place = settings.workspace
    if not await asyncio.to_thread(os.path.isdir, place):
        return _wrong(what, f"its workspace {place} is not a directory", f"mkdir -p {shlex.quote(place)}")
    try:
        async with asyncio.timeout(AGENT_SECONDS):
            agent = await by_registry(settings.agent, {**settings.options, "workspace": place})
        problem = getattr(agent, "problem", lambda: None)()
        problem = problem or getattr(agent, "problem_in", lambda workspace: None)(place)
    except Fault as fault:
        return _wrong(what, redactor.text(fault.message), redactor.text(fault.hint or ""))
    except TimeoutError:
        return _wrong(what, f"it could not be made within {AGENT_SECONDS:g} seconds")
    if problem:
        return _wrong(what, redactor.text(problem))
    if settings.budget.usd_per_day is not None and (model := _without_price(agent)) is not None:
        told = f"its `usd_per_day` cannot be enforced: the price of `{model}` is not known"
        place = os.path.join(paths.config_dir(), USER_FILE)
        return _wrong(what, told, f'Write `[prices."{model}"]` into `{place}`, or use `tokens_per_day`.')
    return DoctorFinding(what, True, settings.agent)


def _without_price(agent: Agent) -> str | None:
    """The agent's model, if its price is unknown."""
    settings = getattr(agent, "settings", None)
    model = getattr(getattr(settings, "model", None), "model", None)
    own = getattr(settings, "prices", {})
    if model is None or prices.cost(model, Usage(1, 1), own.get(model)) is not None:
        return None
    return str(model)


def _wire(settings: ExchangeSettings, wire: WireSettings, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    what = f"wire {wire.name}"
    entry = PLATFORMS.get(wire.name)
    if entry is not None and entry.secrets:
        names = [wire.keys.get(f"{key}_env", variable) for key, variable in entry.secrets.items()]
        if not wire.kept and not any(environ.get(name) for name in names):
            yield _wrong(what, f"{' and '.join(names)} not set", f"export {names[0]}=...")
            return
        if entry.extra is not None and (module := missing(entry.extra)) is not None:
            yield _wrong(what, f"`{module}` is not installed", install_hint(entry.extra))
            return
    if wire.name == RUNNER:
        yield _runners(what, settings, wire, environ)
        return
    yield DoctorFinding(what, True, "configured")


async def _models(settings: ExchangeSettings) -> list[DoctorFinding]:
    """What is wrong with the folders of models, and with servers that they name: these are asked."""
    keys = [*(agent.options for agent in settings.agents.values()), *(wire.keys for wire in settings.wires.values())]
    found: list[DoctorFinding] = []
    for folder in dict.fromkeys(each["models_dir"] for each in keys if "models_dir" in each):
        if not await asyncio.to_thread(os.path.isdir, folder):
            found.append(_wrong("models", f"{folder} is not a directory", f"mkdir -p {shlex.quote(folder)}"))
            continue
        try:
            entries = await asyncio.to_thread(catalog_json.listed, folder)
        except ConfigError as error:
            found.append(_wrong("models", error.message))
            continue
        found += await asyncio.gather(*(_servers(entry, folder) for entry in entries if entry.engine == OPENAI))
    return found


async def _servers(entry: CatalogEntry, folder: str) -> DoctorFinding:
    from trunkline.agents.graph.pool_engines import remote_of

    remote = remote_of(entry)
    try:
        found = await remote.examine()
    finally:
        await remote.close()
    problems = [f"{place}: {why.rstrip('.')}" for place, why in found.items() if why]
    what, many = f"model {entry.name}", len(found) > 1
    if not problems:
        return DoctorFinding(what, True, f"its {len(found)} servers work" if many else "its server works")
    told = f"{len(problems)} of its {len(found)} servers cannot be used" if many else "its server cannot be used"
    mend = f"Start what is missing, or correct `{os.path.join(folder, catalog_json.FILE)}`."
    return _wrong(what, f"{told} ({'; '.join(problems)})", mend)


def _runners(what: str, settings: ExchangeSettings, wire: WireSettings, environ: Mapping[str, str]) -> DoctorFinding:
    from trunkline.exchange.lines.runner import setup

    try:
        found = setup(settings, wire, environ)
    except Fault as fault:
        return _wrong(what, Redactor.from_environ(environ).text(fault.message), fault.hint or "")
    told = [f"runs {', '.join(found.names.values())}"] if found.names else []
    if found.launcher is not None:
        told.append(f"launcher on {found.launcher.host}:{found.launcher.port}")
    return DoctorFinding(what, True, "; ".join(told))
