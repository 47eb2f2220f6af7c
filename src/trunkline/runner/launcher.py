"""The launcher as a server: agents that keep running, and an API on this machine to look after them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from trunkline.base import asgi
from trunkline.base.keyring import system_keyring
from trunkline.base.values import Value
from trunkline.core.faults import Fault
from trunkline.core.starting import ANOTHER_ADDRESS, cannot_listen, lacks_package
from trunkline.runner.fleet import Fleet, FleetHome
from trunkline.runner.keys import Keys

logger = logging.getLogger(__name__)


class Launcher(Value):
    """How a launcher is set up."""

    home: str
    host: str
    port: int
    """0 for any that is free."""
    secret: str
    origin: str
    """The one origin whose pages may call."""

    def __repr__(self) -> str:
        return f"Launcher(host={self.host!r}, port={self.port!r})"


@asynccontextmanager
async def opened_fleet(place: FleetHome, keys: Keys, db: str | None) -> AsyncIterator[Fleet]:
    """A launcher's agents, which are not started yet.

    Args:
        db: the database in which it shares them with other launchers, if it does.

    Raises:
        ConfigError: the database cannot be used.
    """
    if not db:
        yield Fleet(place, keys)
        return
    # Here, since most launchers share nothing.
    from trunkline.runner.shared.fleet import SharedFleet
    from trunkline.runner.shared.roster import open_roster

    roster = await open_roster(db)
    try:
        yield SharedFleet(place, keys, roster)
    finally:
        await roster.close()


async def serve(
    launcher: Launcher, stop: asyncio.Event, reachable: Callable[[str, int], None], fleet: Fleet | None = None
) -> None:
    """Serve until `stop` is set; then end all agents, which run again after the next start.

    Args:
        fleet: the agents; those of the launcher's home, if left out.

    Raises:
        ConfigError: it cannot listen there, or a package is missing.
    """
    try:
        await _serve(launcher, stop, reachable, fleet or Fleet(FleetHome(launcher.home), Keys(system_keyring)))
    except ModuleNotFoundError as error:
        raise lacks_package("The launcher", error, "runner") from None
    except asgi.CannotListen as error:
        hint = f"Is a launcher running there already? {ANOTHER_ADDRESS}"
        raise cannot_listen(launcher.host, launcher.port, error, hint) from None


async def _serve(launcher: Launcher, stop: asyncio.Event, reachable: Callable[[str, int], None], fleet: Fleet) -> None:
    from trunkline.runner.launcher_app import LauncherApp

    app = LauncherApp(fleet, secret=launcher.secret, origin=launcher.origin, host=launcher.host)
    tasks: list[asyncio.Task[None]] = []

    def begun(host: str, port: int) -> None:
        fleet.port = port
        # Only when the port is ours: a second launcher on it must not run anything.
        tasks.append(asyncio.create_task(_restored(fleet), name="restore agents"))
        reachable(host, port)

    def ending() -> None:
        for task in tasks:
            task.cancel()
        # Beside the answers that have begun: some of them wait for an agent.
        tasks.append(asyncio.create_task(fleet.close(), name="stop agents"))

    try:
        await asgi.serve(app, launcher.host, launcher.port, stop, begun, stopping=ending)
    finally:
        await asyncio.gather(*tasks, return_exceptions=True)


async def _restored(fleet: Fleet) -> None:
    try:
        await fleet.begin()
        await fleet.restore()
    except (Fault, OSError) as error:
        logger.error("The agents of earlier runs are not started: %s", error)
